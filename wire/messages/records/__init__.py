"""Generated records of internal topics and files, one module per topic."""
