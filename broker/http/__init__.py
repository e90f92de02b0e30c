"""The control endpoint: what the wire has no API for, over HTTP on loopback, with a token."""
