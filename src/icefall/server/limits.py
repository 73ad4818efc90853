"""Limits of a listener's worker on its connections."""

import msgspec


class HttpLimits(msgspec.Struct, frozen=True):
    """Times in seconds. `head_s`: for the head of a request, from the connection or the request's first byte on;
    `held_max`: bytes of request bodies, and of answers that clients have not read yet."""

    head_s: float
    idle_s: float
    write_s: float
    connections_max: int
    held_max: int
    body_max: int
