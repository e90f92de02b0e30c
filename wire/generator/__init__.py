"""Turns the schemas of ``wire/schemas`` into the classes of ``wire/messages``."""
