"""Deciding state machines: values in, records and answers out; no I/O, clock or chance."""
