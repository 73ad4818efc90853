"""Who made the request that is being answered: set by the gate, read by handlers of what belongs to one caller."""

from contextvars import ContextVar
from typing import NamedTuple


class Caller(NamedTuple):
    """`key`: the name of the key, empty without one. `is_trusted`: a caller on this machine, where limits are off and
    no key is required; it may see everything."""

    key: str = ""
    is_trusted: bool = False


_current: ContextVar[Caller] = ContextVar("caller")
_UNKNOWN = Caller()


class CurrentCaller:
    def get(self) -> Caller:
        return _current.get(_UNKNOWN)

    def put(self, caller: Caller) -> None:
        """For the task of this request alone."""
        _current.set(caller)
