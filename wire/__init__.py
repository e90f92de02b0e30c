"""Kafka's protocol and record formats as bytes: no sockets, files, clocks or tasks."""
