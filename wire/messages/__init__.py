"""Generated message classes, one module per API."""
