"""Hypothesis as this folder wants it: no deadline on a busy machine, and what repeats a failure is printed."""

from hypothesis import settings

settings.register_profile("wire", deadline=None, print_blob=True)
settings.load_profile("wire")
