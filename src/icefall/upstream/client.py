"""JSON-RPC over HTTP to one upstream: bounded in time, size and number, tried again where that can help."""

import asyncio
import itertools
import random
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import aiohttp
import msgspec
from yarl import URL

from icefall.upstream.meter import Clock, Meter

_T = TypeVar("_T")
_EXCERPT_SIZE = 200
_COMPLAINT_SIZE = 10_000
_CHUNK_SIZE = 1 << 16
_UNPACKED_SIZE = 1 << 20
MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # the last: nested without end


class UpstreamFailure(Exception):
    """A call without a result. `again`: the same request may fare better; `sent`: the upstream may have got it."""

    again = False
    sent = True


class UpstreamDown(UpstreamFailure):
    """No answer: not reached, too slow, overloaded, or cut off. Another time may do, or another upstream."""

    again = True

    def __init__(self, text: str, *, sent: bool = True, timed_out: bool = False, after_s: float = 0.0) -> None:
        super().__init__(text)
        self.sent = sent
        self.timed_out = timed_out
        self.after_s = after_s  # how long it asked to be left alone


class UpstreamBusy(UpstreamDown):
    """Turned away at the door: we ask too much at once, or it has no time for anyone."""


class UpstreamError(UpstreamFailure):
    """It answered no. `str(error)` is its own text, `status` the HTTP status it came with."""

    def __init__(self, text: str, status: int = 200) -> None:
        super().__init__(text)
        self.status = status


class InvalidAnswer(UpstreamFailure):
    """An answer that means nothing: not JSON, the wrong shape, or without end."""

    def __init__(self, text: str, *, again: bool = False) -> None:
        super().__init__(text)
        self.again = again


class AnswerTooLong(InvalidAnswer):
    """More bytes than any honest answer has. Asking for less may do."""


class ByteBudgetExceeded(AnswerTooLong):
    """More bytes than the caller has room for."""


class ByteBudget:
    """How many bytes some answers may still fill, together."""

    def __init__(self, size: int) -> None:
        self.left = size


class Limits(msgspec.Struct, frozen=True):
    connect_s: float = 5.0
    total_s: float = 30.0
    calls_at_once: int = 8
    answer_size_max: int = 64 << 20


class Retry(msgspec.Struct, frozen=True):
    """The pause doubles from `first_s`; half of it is left to chance, so that many clients do not return together."""

    attempts: int = 4
    first_s: float = 0.25
    longest_s: float = 10.0
    asked_for_max_s: float = 30.0  # of what a retry-after header asks for

    def pause_s(self, attempt: int, after_s: float, chance: float) -> float:
        """Between attempt number `attempt` (from 1) and the next."""
        doubled = min(self.longest_s, self.first_s * 2.0 ** min(attempt - 1, 32))
        return max(doubled * (0.5 + chance / 2), min(after_s, self.asked_for_max_s))


LIMITS, RETRY = Limits(), Retry()


class RpcErrorObject(msgspec.Struct):
    message: str
    code: int = 0
    data: Any = None


class RpcAnswer(msgspec.Struct):
    id: Any = None
    result: msgspec.Raw = msgspec.Raw()
    error: RpcErrorObject | None = None


_DECODER = msgspec.json.Decoder(RpcAnswer)


class Client:
    """One upstream. `name` is its address without whatever may be secret in it."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
        limits: Limits = LIMITS,
        retry: Retry = RETRY,
        compressed: bool = False,
    ) -> None:
        base = URL(url)
        if base.scheme not in ("http", "https") or not base.host:
            raise ValueError("an upstream's address looks like http://host:9650")
        self.name = str(base.origin())
        self.clock = clock or Clock()
        self.meter = Meter(self.clock)
        self.limits = limits
        self.retry = retry
        self.chance = chance
        self._base = base
        self._compressed = compressed
        self._slots = asyncio.Semaphore(limits.calls_at_once)
        self._numbers = itertools.count(1)
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(
        self,
        path: str,
        method: str,
        params: dict[str, Any],
        result: type[_T],
        *,
        repeatable: bool = True,
        patient: bool = True,
    ) -> _T:
        """The result of a method, as `result`.

        What is not `repeatable` is tried again only if the upstream cannot have seen it. Without patience a call that
        timed out is not tried again: the caller would rather ask for less.
        """
        for attempt in itertools.count(1):
            try:
                async with self._slots:
                    return await self._attempt(path, method, params, result)
            except UpstreamFailure as failure:
                timed_out = isinstance(failure, UpstreamDown) and failure.timed_out
                useless = not failure.again or (failure.sent and not repeatable) or (timed_out and not patient)
                if useless or attempt >= self.retry.attempts:
                    raise
                after_s = failure.after_s if isinstance(failure, UpstreamDown) else 0.0
            await self.clock.sleep(self.retry.pause_s(attempt, after_s, self.chance()))
        raise AssertionError("unreachable")

    async def _attempt(self, path: str, method: str, params: dict[str, Any], result: type[_T]) -> _T:
        with self.metered():
            return await self._answer(path, method, params, result)

    @contextmanager
    def metered(self) -> Iterator[None]:
        """Around one attempt, from the request to the understood answer."""
        ticket = self.meter.begin()
        try:
            yield
        except UpstreamError as error:
            self.meter.end(ticket, failed=error.status != 200)
            raise
        except UpstreamFailure:
            self.meter.end(ticket, failed=True)
            raise
        except BaseException:
            self.meter.abandon(ticket)
            raise
        self.meter.end(ticket, failed=False)

    async def _answer(self, path: str, method: str, params: dict[str, Any], result: type[_T]) -> _T:
        number = next(self._numbers)
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        raw = await self.post(path, body)
        try:
            answer = _DECODER.decode(raw)
        except msgspec.ValidationError as error:
            raise InvalidAnswer(f"{self.name} answered {method} with something else: {error}") from error
        except MALFORMED as error:
            text = f"{self.name} answered {method} with something that is not JSON: {error}"
            raise InvalidAnswer(text, again=True) from error
        if answer.id != number:
            raise InvalidAnswer(f"{self.name} answered request {number} with the answer to {excerpt(answer.id)}")
        if answer.error is not None:
            raise UpstreamError(answer.error.message[:_COMPLAINT_SIZE])
        if not bytes(answer.result):
            raise InvalidAnswer(f"{self.name} answered {method} with neither a result nor an error")
        try:
            return msgspec.json.decode(answer.result, type=result)
        except MALFORMED as error:
            raise InvalidAnswer(f"{self.name} answered {method} with something else: {error}") from error

    async def post(self, path: str, body: bytes, room: ByteBudget | None = None) -> bytes:
        """One attempt: the body of an answer with status 200."""
        url = self._base
        if path:
            url = url.with_path(url.path.rstrip("/") + path).with_query(url.query)
        try:
            async with self._open().post(url, data=body, allow_redirects=False) as response:
                if response.status == 200:
                    return await self._read(response, room)
                raise await self._refusal(response, path)
        except TimeoutError as error:
            sent = not isinstance(error, aiohttp.ConnectionTimeoutError)
            waited_s = self.limits.total_s if sent else self.limits.connect_s
            text = f"{self.name} gave no answer within {waited_s:g} s"
            raise UpstreamDown(text, sent=sent, timed_out=sent) from error
        except aiohttp.ClientConnectorError as error:
            reason = getattr(error, "os_error", error)  # a bad certificate has none
            raise UpstreamDown(f"{self.name} cannot be reached: {reason}", sent=False) from error
        except (aiohttp.ClientError, OSError) as error:
            raise UpstreamDown(f"{self.name} broke off: {error or type(error).__name__}") from error

    async def _read(self, response: aiohttp.ClientResponse, room: ByteBudget | None) -> bytes:
        """The whole body, unless it is longer than any honest one, or than there is room for: that is left unread."""
        raw = bytearray()
        try:
            async for chunk in self._chunks(response):
                raw += chunk
                if len(raw) > self.limits.answer_size_max:
                    raise AnswerTooLong(f"{self.name} answered with more than {self.limits.answer_size_max} bytes")
                if room is not None:
                    room.left -= len(chunk)
                    if room.left < 0:
                        raise ByteBudgetExceeded(f"{self.name} answered with more bytes than there is room for")
        except BaseException:
            response.close()
            if room is not None:
                room.left += len(raw)
            raise
        return bytes(raw)

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """The body, piece by piece. It is unpacked only if we asked for it packed, and never much of it at once."""
        packed = self._compressed and response.headers.get("content-encoding", "").lower() == "gzip"
        unpack = zlib.decompressobj(31) if packed else None
        try:
            async for chunk in response.content.iter_chunked(_CHUNK_SIZE):
                rest = chunk
                while unpack is not None and rest:
                    yield unpack.decompress(rest, _UNPACKED_SIZE)
                    rest = unpack.unconsumed_tail
                if unpack is None:
                    yield chunk
            if unpack is not None:
                yield unpack.flush()
        except zlib.error as error:
            raise InvalidAnswer(f"{self.name} sent damaged gzip: {error}", again=True) from error
        if unpack is not None and not unpack.eof:
            raise InvalidAnswer(f"{self.name} sent half of some gzip", again=True)

    async def _refusal(self, response: aiohttp.ClientResponse, path: str) -> UpstreamFailure:
        status = response.status
        said = excerpt((await response.content.read(_EXCERPT_SIZE)).decode("utf-8", "replace"))
        text = f"{self.name}{path} answered {status}{': ' if said else ''}{said}"
        if status in (429, 503):
            return UpstreamBusy(text, sent=False, after_s=_seconds(response))
        if status >= 500:  # it may have been acted upon
            return UpstreamDown(text, after_s=_seconds(response))
        if 300 <= status < 400:
            text += f" (it points to {excerpt(response.headers.get('location', ''))}: give that address)"
        return UpstreamError(text, status)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            encoding = "gzip" if self._compressed else "identity"
            self._session = aiohttp.ClientSession(
                headers={"Content-Type": "application/json", "Accept-Encoding": encoding},
                timeout=aiohttp.ClientTimeout(total=self.limits.total_s, sock_connect=self.limits.connect_s),
                connector=aiohttp.TCPConnector(limit=self.limits.calls_at_once),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # a small body that grows is a trap: _chunks unpacks with a limit
            )
        return self._session


def _seconds(response: aiohttp.ClientResponse) -> float:
    """What a retry-after header asks for: seconds, or a date measured from the answer's own."""
    text = response.headers.get("retry-after", "")
    try:
        if text.isascii() and text.isdigit():
            return float(text[:9])
        date = response.headers.get("date", "")
        return max(0.0, (parsedate_to_datetime(text) - parsedate_to_datetime(date)).total_seconds())
    except (TypeError, ValueError):
        return 0.0


def excerpt(value: Any) -> str:
    """Something an upstream said, fit for a log line."""
    text = " ".join(str(value)[:_EXCERPT_SIZE].split())
    return "".join(char if char.isprintable() else "?" for char in text)
