"""Guards of a listener: the allow-list of the Host header, cross-origin rules (CORS), and one timer for all bodies that
are slow to arrive.
"""

import asyncio
import ipaddress
import re
from collections.abc import Callable, Iterable
from typing import Any

Headers = list[tuple[str, str]]
_CACHE_MAX = 1024
_CACHED_SIZE_MAX = 255  # a port can be of any length
_REFUSED = re.compile(r"q\s*=\s*0(\.0*)?\s*(;|$)")
_NO_HEADER_NAME = re.compile(r"[^A-Za-z0-9._-]")


class Hosts:
    """The hosts that may be asked for. IP addresses and an empty Host are always allowed (no DNS rebinding); names must
    be listed; `*` allows all."""

    def __init__(self, allowed: Iterable[str]) -> None:
        names = {name.strip().lower() for name in allowed if name.strip()}
        self._all = "*" in names
        self._names = names
        self._allowed_before: set[str] = set()

    def allows(self, host: str) -> bool:
        if self._all or host in self._allowed_before:
            return True
        if not self._check(host):
            return False
        if len(self._allowed_before) < _CACHE_MAX and len(host) <= _CACHED_SIZE_MAX:
            self._allowed_before.add(host)
        return True

    def _check(self, host: str) -> bool:
        if not host or host.lower() in self._names or _is_ip(host):
            return True
        if host.startswith("["):
            name, bracket, port = host[1:].partition("]")
            return bool(bracket) and port.startswith(":") and _is_ip(name)
        name, colon, port = host.partition(":")
        return bool(colon) and ":" not in port and bool(name) and (name.lower() in self._names or _is_ip(name))


def takes_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header names gzip and does not refuse it (`gzip;q=0`)."""
    for one in accept_encoding.lower().split(","):
        name, _, rest = one.partition(";")
        if name.strip() == "gzip":
            return not _REFUSED.search(rest)
    return False


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


class Origins:
    """CORS: the headers that allow an origin to read an answer, and those of a preflight.

    `named` is true for calls that a pattern with `*` does not cover: there only origins listed by name are allowed."""

    METHODS = ("GET", "POST", "HEAD")

    def __init__(self, patterns: Iterable[str], headers: Iterable[str], exposed: Iterable[str] = ()) -> None:
        listed = [pattern for pattern in patterns if pattern]
        self._all = "*" in listed
        self._named = {pattern.lower() for pattern in listed if "*" not in pattern}
        self._patterns = [re.compile(re.escape(p.lower()).replace(r"\*", ".*") + r"\Z") for p in listed]
        self._headers = {name.lower(): name for name in headers}
        self._exposed = [("access-control-expose-headers", ", ".join(exposed))] if exposed else []

    def _allowed(self, origin: str, *, named: bool) -> str | None:
        if named:
            return origin if origin.lower() in self._named else None
        if self._all:
            return "*"
        return origin if any(pattern.match(origin.lower()) for pattern in self._patterns) else None

    def headers(self, origin: str, *, named: bool = False) -> Headers:
        allowed = self._allowed(origin, named=named)
        if allowed is None:
            return []
        return [
            ("access-control-allow-origin", allowed),
            ("access-control-allow-credentials", "true"),
            *self._exposed,
        ]

    def preflight(self, header: Callable[[str], str | None], method: str, *, named: bool = False) -> Headers:
        """The headers of the answer to a preflight. A browser blocks the request if none of them allows it."""
        vary = [("vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")]
        origin = header("origin") or ""
        allowed = self._allowed(origin, named=named) if origin else None
        listed = (header("access-control-request-headers") or "").replace(" ", ",").split(",")
        wanted = [name for name in (_NO_HEADER_NAME.sub("", word) for word in listed) if name]
        if allowed is None or method.upper() not in self.METHODS or any(n.lower() not in self._headers for n in wanted):
            return vary
        answer = [*vary, ("access-control-allow-origin", allowed), ("access-control-allow-methods", method.upper())]
        if wanted:
            answer.append(("access-control-allow-headers", ", ".join(self._headers[n.lower()] for n in wanted)))
        return [*answer, ("access-control-allow-credentials", "true")]


_CHECK_EVERY = 0.25  # of the limit


class BodyTimeout:
    """The limit on the time between `begin` and `end`: a task that waits for longer than `limit_s`, plus up to a
    quarter of it, is cancelled, and `end` raises TimeoutError. None is no limit."""

    def __init__(self, limit_s: float | None) -> None:
        self._limit_s = limit_s
        self._waiting: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._timer_runs = False

    def begin(self) -> asyncio.Task[Any] | None:
        task = asyncio.current_task()
        if self._limit_s is None or task is None:
            return None
        loop = asyncio.get_running_loop()
        self._waiting[task] = loop.time()
        if not self._timer_runs:
            self._timer_runs = True
            loop.call_later(self._limit_s * _CHECK_EVERY, self._check, loop)
        return task

    def end(self, task: asyncio.Task[Any] | None) -> None:
        if task is None:
            return
        del self._waiting[task]
        if task in self._late:
            self._late.discard(task)
            if task.uncancel() == 0:
                raise TimeoutError from None

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._limit_s is not None
        overdue = loop.time() - self._limit_s
        for task, began in list(self._waiting.items()):
            if began <= overdue and task not in self._late:
                self._late.add(task)
                task.cancel()
        self._timer_runs = bool(self._waiting)
        if self._timer_runs:
            loop.call_later(self._limit_s * _CHECK_EVERY, self._check, loop)
