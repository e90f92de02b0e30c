"""The quorum of controllers that agrees on the metadata log (KRaft), as values."""
