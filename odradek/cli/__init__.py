"""One module for each command; `run(arguments)` parses, does, prints, and raises Failure where it cannot."""
