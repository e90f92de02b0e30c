"""The transaction coordinator's machine: see README.md."""
