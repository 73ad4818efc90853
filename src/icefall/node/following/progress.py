"""How far a follower is, how fast it is and how long the remainder will take."""

import msgspec


class Progress(msgspec.Struct, frozen=True):
    """`of` is None while no upstream has reported its tip, `eta_s` also while nothing moves."""

    done: int
    of: int | None
    per_second: float
    eta_s: float | None


def progress_of(done: int, of: int | None, per_second: float) -> Progress:
    if of is None:
        return Progress(done, of, per_second, None)
    missing = max(0, of - done)
    return Progress(done, of, per_second, 0.0 if missing == 0 else missing / per_second if per_second > 0 else None)
