"""The one way in which a metadata log refuses to be loaded."""


class MetadataReplayError(Exception):
    """A record that is unknown or contradicts the records before it; the text is one sentence."""
