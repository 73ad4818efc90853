"""The one error this package raises on bad input."""


class WireError(ValueError):
    """Invalid bytes or text. `str(error)` is the text a node would answer with."""
