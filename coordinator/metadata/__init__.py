"""The cluster's metadata as one immutable value, and the one replay that makes it from records."""
