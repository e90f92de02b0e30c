"""Listeners and connections: bytes in, frames out, one request at a time per connection."""
