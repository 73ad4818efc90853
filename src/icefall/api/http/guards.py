"""The allow-list of the Host header, and cross-origin rules (CORS)."""

import ipaddress
import re
from collections.abc import Callable, Iterable

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
