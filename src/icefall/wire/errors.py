"""The one error this package raises on bad input."""


class WireError(ValueError):
    """Bytes or text that do not mean what they should. `str(error)` is the text a node would answer with."""
