"""JSON-RPC over HTTP to one upstream, with timeouts, size and concurrency limits, and retries where they can help."""

import asyncio
import itertools
import random
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from yarl import URL

from icefall.upstream.meter import Clock, Meter

if TYPE_CHECKING:  # importing it takes long, and most processes never call an upstream
    import aiohttp

_T = TypeVar("_T")
_EXCERPT_SIZE = 200
_ERROR_TEXT_MAX = 10_000
_CHUNK_SIZE_MAX = 1 << 20
_READ_SIZE = 1 << 16
_BUFFER_SIZE = 1 << 19  # of a connection; reading in larger pieces costs less
MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # the last: nested too deeply


class UpstreamFailure(Exception):
    """A call without a result. `retryable`: the same request may succeed later; `sent`: the upstream may have received
    it."""

    retryable = False
    sent = True


class UpstreamDown(UpstreamFailure):
    """No answer: not reached, too slow, overloaded, or disconnected. A retry or another upstream may help."""

    retryable = True

    def __init__(self, text: str, *, sent: bool = True, timed_out: bool = False, after_s: float = 0.0) -> None:
        super().__init__(text)
        self.sent = sent
        self.timed_out = timed_out
        self.after_s = after_s  # from its retry-after header


class UpstreamBusy(UpstreamDown):
    """It refused the request because of its rate limit or its load (429, 503)."""


class UpstreamError(UpstreamFailure):
    """It answered with an error. `str(error)` is the upstream's own text, `status` the HTTP status."""

    def __init__(self, text: str, status: int = 200) -> None:
        super().__init__(text)
        self.status = status


class WrongUpstream(UpstreamFailure):
    """It answers, but is not what is configured: waiting for it is of no use until its configuration changes."""


class InvalidAnswer(UpstreamFailure):
    """An answer that is not JSON, has the wrong shape, or is too long."""

    def __init__(self, text: str, *, retryable: bool = False) -> None:
        super().__init__(text)
        self.retryable = retryable


class AnswerTooLong(InvalidAnswer):
    """More bytes than any valid answer has. A smaller request may help."""


class ByteBudgetExceeded(AnswerTooLong):
    """More bytes than the caller allows."""


class ByteBudget:
    """The number of bytes that several answers together may still have."""

    def __init__(self, size: int) -> None:
        self.left = size


class Limits(msgspec.Struct, frozen=True):
    connect_s: float = 5.0
    total_s: float = 30.0
    calls_at_once: int = 8
    answer_size_max: int = 64 << 20


class Retry(msgspec.Struct, frozen=True):
    """The pause doubles from `first_s`; half of it is random, so that many clients do not retry at the same moment."""

    attempts: int = 4
    first_s: float = 0.25
    longest_s: float = 10.0
    retry_after_max_s: float = 30.0  # longer retry-after headers are cut to this

    def pause_s(self, attempt: int, after_s: float, chance: float) -> float:
        """Return the pause between attempt number `attempt` (from 1) and the next."""
        doubled = min(self.longest_s, self.first_s * 2.0 ** min(attempt - 1, 32))
        return max(doubled * (0.5 + chance / 2), min(after_s, self.retry_after_max_s))


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
    """One upstream. `name` is its address without parts that may be secret (path, query, password)."""

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
        retry_timeouts: bool = True,
    ) -> _T:
        """The result of a method, as `result`.

        A call that is not `repeatable` is retried only if the upstream cannot have seen it. Without `retry_timeouts` a
        call that timed out is not retried: the caller would rather send a smaller request.
        """
        for attempt in itertools.count(1):
            try:
                async with self._slots:
                    return await self._attempt(path, method, params, result)
            except UpstreamFailure as failure:
                timed_out = isinstance(failure, UpstreamDown) and failure.timed_out
                may_retry = failure.retryable and (repeatable or not failure.sent) and (retry_timeouts or not timed_out)
                if not may_retry or attempt >= self.retry.attempts:
                    raise
                after_s = failure.after_s if isinstance(failure, UpstreamDown) else 0.0
            await self.clock.sleep(self.retry.pause_s(attempt, after_s, self.chance()))
        raise AssertionError("unreachable")

    async def _attempt(self, path: str, method: str, params: dict[str, Any], result: type[_T]) -> _T:
        with self.metered():
            return await self._answer(path, method, params, result)

    @contextmanager
    def metered(self) -> Iterator[None]:
        """Counts one attempt, from the request to the decoded answer."""
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
            raise InvalidAnswer(text, retryable=True) from error
        if answer.id != number:
            raise InvalidAnswer(f"{self.name} answered request {number} with the answer to {excerpt(answer.id)}")
        if answer.error is not None:
            raise UpstreamError(answer.error.message[:_ERROR_TEXT_MAX])
        if not bytes(answer.result):
            raise InvalidAnswer(f"{self.name} answered {method} with neither a result nor an error")
        try:
            return msgspec.json.decode(answer.result, type=result)
        except MALFORMED as error:
            raise InvalidAnswer(f"{self.name} answered {method} with something else: {error}") from error

    async def post(self, path: str, body: bytes, budget: ByteBudget | None = None) -> bytes:
        """One attempt: the body of an answer with status 200."""
        import aiohttp  # noqa: PLC0415 - with the first call

        url = self._base
        if path:
            url = url.with_path(url.path.rstrip("/") + path).with_query(url.query)
        try:
            async with self._open().post(url, data=body, allow_redirects=False) as response:
                if response.status == 200:
                    return await self._read(response, budget)
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
            raise UpstreamDown(f"{self.name} disconnected: {error or type(error).__name__}") from error

    async def _read(self, response: "aiohttp.ClientResponse", budget: ByteBudget | None) -> bytes:
        """The whole body. One that is longer than allowed is not read to its end."""
        chunks: list[bytes] = []  # joined once: a block's parts are megabytes, and each copy of them counts
        size = 0
        is_gzip = self._compressed and response.headers.get("content-encoding", "").lower() == "gzip"
        try:
            async for chunk in body_chunks(response, is_gzip=is_gzip, chunk_size_max=_CHUNK_SIZE_MAX):
                chunks.append(chunk)
                size += len(chunk)
                if size > self.limits.answer_size_max:
                    raise AnswerTooLong(f"{self.name} answered with more than {self.limits.answer_size_max} bytes")
                if budget is not None:
                    budget.left -= len(chunk)
                    if budget.left < 0:
                        raise ByteBudgetExceeded(f"{self.name} answered with more bytes than the budget allows")
        except BaseException as error:
            response.close()
            if budget is not None:
                budget.left += size
            if isinstance(error, InvalidGzip):
                raise InvalidAnswer(f"{self.name} sent {error}", retryable=True) from error
            raise
        return b"".join(chunks)

    async def _refusal(self, response: "aiohttp.ClientResponse", path: str) -> UpstreamFailure:
        status = response.status
        body = excerpt((await response.content.read(_EXCERPT_SIZE)).decode("utf-8", "replace"))
        text = f"{self.name}{path} answered {status}{': ' if body else ''}{body}"
        if status in (429, 503):
            return UpstreamBusy(text, sent=False, after_s=retry_after_s(response.headers))
        if status >= 500:  # it may have processed the request
            return UpstreamDown(text, after_s=retry_after_s(response.headers))
        if 300 <= status < 400:
            text += f" (it points to {excerpt(response.headers.get('location', ''))}: give that address)"
        if status == 404 and not path:  # the name above hides the path, which may hold a key
            text += " (nothing is served at the path of its URL: a node serves a chain at a path like /ext/bc/C/rpc)"
        return UpstreamError(text, status)

    def _open(self) -> "aiohttp.ClientSession":
        import aiohttp  # noqa: PLC0415 - with the first call

        if self._session is None:
            encoding = "gzip" if self._compressed else "identity"
            self._session = aiohttp.ClientSession(
                headers={"Content-Type": "application/json", "Accept-Encoding": encoding},
                timeout=aiohttp.ClientTimeout(total=self.limits.total_s, sock_connect=self.limits.connect_s),
                connector=aiohttp.TCPConnector(limit=self.limits.calls_at_once),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # body_chunks decompresses with a limit
                read_bufsize=_BUFFER_SIZE,
            )
        return self._session


def retry_after_s(headers: Mapping[str, str]) -> float:
    """The retry-after header of an answer in seconds, 0 without one; a date is counted from the date header, or from
    now."""
    text = headers.get("retry-after", "")
    try:
        if text.isascii() and text.isdigit():
            return float(text[:9])
        date = headers.get("date", "")
        began = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return max(0.0, (parsedate_to_datetime(text) - began).total_seconds())
    except (TypeError, ValueError, OverflowError):
        return 0.0


def excerpt(value: Any) -> str:
    """A value from an upstream, shortened and printable, for a log line."""
    text = " ".join(str(value)[:_EXCERPT_SIZE].split())
    return "".join(char if char.isprintable() else "?" for char in text)


class InvalidGzip(Exception):
    """A body that is labelled gzip, but damaged or truncated."""


async def body_chunks(
    response: "aiohttp.ClientResponse", *, is_gzip: bool, chunk_size_max: int = _READ_SIZE
) -> AsyncIterator[bytes]:
    """The body, decompressed if it is gzip. InvalidGzip where that fails, possibly after some chunks."""
    if not is_gzip:
        async for chunk in response.content.iter_chunked(chunk_size_max):
            yield chunk
        return
    gunzip = zlib.decompressobj(31)
    try:
        async for chunk in response.content.iter_chunked(_READ_SIZE):
            rest = chunk
            while rest:
                yield gunzip.decompress(rest, chunk_size_max)
                rest = gunzip.unconsumed_tail
        yield gunzip.flush()
    except zlib.error as error:
        raise InvalidGzip(f"damaged gzip: {error}") from error
    if not gunzip.eof:
        raise InvalidGzip("truncated gzip")
