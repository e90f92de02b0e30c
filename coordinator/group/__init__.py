"""Groups and committed offsets: the machine behind one partition of `__consumer_offsets`."""
