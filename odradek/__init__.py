"""The face of Odradek: command line, embedded broker for tests, pytest plugin."""
