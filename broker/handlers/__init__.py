"""One module per API; `dispatch` is the table that says which are served."""
