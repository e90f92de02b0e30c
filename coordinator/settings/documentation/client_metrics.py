"""What each setting of a client metrics subscription is for."""

SENTENCES = """\
interval.ms: How often clients push the metrics of this subscription, in milliseconds.
match: Which clients the subscription is for: attribute=pattern pairs that must all match; empty for every client.
metrics: The beginnings of the names of the metrics to push; * for all, empty for none.
"""
