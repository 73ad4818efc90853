"""One connection: requests parsed as their bytes arrive, answered in their order, one at a time.

A client may send slowly, stop reading or say nothing: what it can hold of our memory is limited, and `deadline` is when
the listener closes the connection.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from math import inf
from typing import Protocol, cast

from icefall.errors import HeadTooLarge, IcefallError, Unavailable, UnreadableRequest
from icefall.server.body import InvalidChunk
from icefall.server.head import END_OF_HEAD, HEAD_MAX, HeadReader
from icefall.server.limits import HttpLimits
from icefall.server.request import HttpRequest, cut_off
from icefall.server.reset import abort
from icefall.server.response import CLOSE, KEEP_ALIVE, WITHOUT_BODY, PackedHeads, Response

PIPELINED_MAX = 8  # requests parsed before the first of them is answered
SMALL_SIZE = 16 << 10  # bytes; heads, bodies and answers up to this size are always taken and sent, and not counted
WRITE_BUFFER_MAX = SMALL_SIZE  # bytes that wait for a client before the connection counts as stalled
_DISCARD_MAX = 4 << 20  # bytes of a refused body that are read, so that the client gets its answer
_DISCARD_S = 5.0

Respond = Callable[[HttpRequest], Awaitable[Response]]


class ConnectionOwner(Protocol):
    """What a connection needs of the listener. `held`: bytes that all connections keep for their clients."""

    limits: HttpLimits
    held: int
    is_stopping: bool
    heads: PackedHeads

    def now(self) -> float: ...

    def add(self, connection: "Connection") -> None: ...

    def remove(self, connection: "Connection") -> None: ...

    def submit(self, connection: "Connection", request: HttpRequest) -> None: ...

    def finished(self, connection: "Connection") -> None: ...

    def failure(self, error: IcefallError) -> Response: ...

    def overloaded(self) -> IcefallError: ...

    def report(self, request: str, bug: Exception) -> None: ...


class Connection(asyncio.Protocol):
    def __init__(self, listener: ConnectionOwner) -> None:
        self._listener = listener
        self._transport: asyncio.Transport
        self._peer = ""
        self._buffer = bytearray()
        self._scanned = 0  # of the buffer, in search of the end of a head
        self._heads = HeadReader()
        self._reading: HttpRequest | None = None  # its body is arriving
        self._pending: deque[HttpRequest] = deque()
        self._current: HttpRequest | None = None  # being answered
        self._task: asyncio.Task[None] | None = None
        self._streaming = False
        self._paused = False  # nothing is read
        self._ended = False  # the client sends no more
        self._discarded = -1  # bytes thrown away since the last answer; -1: the connection is in use
        self._unparsed = 0  # bytes of the buffer that are counted as held
        self._unsent = 0  # bytes of answers that are
        self._stalled: asyncio.Future[None] | None = None  # until the client has read most of what was written
        self.deadline = inf

    @property
    def is_idle(self) -> bool:
        return self._current is None

    # -- what the event loop calls -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_MAX, low=WRITE_BUFFER_MAX // 4)
        peer = transport.get_extra_info("peername")
        self._peer = str(peer[0]) if peer else ""
        self.deadline = self._listener.now() + self._listener.limits.head_s
        self._listener.add(self)
        if self._listener.is_stopping:  # it was accepted just before
            self._close()

    def connection_lost(self, _: Exception | None) -> None:
        self._listener.remove(self)
        self._listener.held -= self._unsent + sum(request.held for request in self._pending)
        self._unsent = 0
        self._pending.clear()
        self._drop_buffer()
        self._ended = True
        if self._reading is not None:
            self._reading.fail(cut_off())
        if self._streaming and self._task is not None:
            self._task.cancel()

    def eof_received(self) -> bool:
        """The client may still read, so what it asked for is answered. A stream without end is not: it is gone."""
        self._ended = True
        if self._streaming and self._task is not None:
            self._task.cancel()
        if self._reading is not None:
            self._reading.fail(cut_off())
        self._close_if_done()
        return True

    def data_received(self, data: bytes) -> None:
        if self._discarded >= 0:
            self._discarded += len(data)
            if self._discarded > _DISCARD_MAX:
                self.abort()
            return
        if self._ended:
            return  # after what could not be read, where a request begins is unknown
        if self._current is None and not self._buffer and self._stalled is None:
            if self._take_whole(data):
                return
            self.deadline = self._listener.now() + self._listener.limits.head_s
        self._buffer += data
        self._parse()

    def pause_writing(self) -> None:
        self._stalled = asyncio.get_running_loop().create_future()
        self.deadline = self._listener.now() + self._listener.limits.write_s

    def resume_writing(self) -> None:
        stalled, self._stalled = self._stalled, None
        self._listener.held -= self._unsent
        self._unsent = 0
        if stalled is not None and not stalled.done():
            stalled.set_result(None)
        if self._discarded >= 0 or self._transport.is_closing():
            return
        if self._current is None:
            self._go_on()
        else:
            self.deadline = inf

    # -- from bytes to requests ----------------------------------------------------------------------------------

    def _parse(self) -> None:
        try:
            while self._buffer and self._discarded < 0 and len(self._pending) < PIPELINED_MAX:
                if not (self._take_head() if self._reading is None else self._take_body(self._reading)):
                    break
            self._count_buffer()
        except (UnreadableRequest, Unavailable) as error:
            self._ended = True
            self._drop_buffer()
            if self._current is None and not self._pending:
                self._refuse(self._listener.failure(error))  # otherwise the connection ends after the answers to come
            return
        is_full = len(self._pending) >= PIPELINED_MAX or self._stalled is not None
        if is_full != self._paused and not self._transport.is_closing():
            self._paused = is_full
            if is_full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _count_buffer(self) -> None:
        """A long head that is arriving, or requests behind those that are being answered."""
        size = len(self._buffer) if len(self._buffer) > SMALL_SIZE else 0
        if size != self._unparsed:
            self._listener.held += size - self._unparsed
            self._unparsed = size
            if self._reading is None:
                self._check_held(0)

    def _drop_buffer(self) -> None:
        self._buffer.clear()
        self._listener.held -= self._unparsed
        self._unparsed = 0

    def _check_held(self, more: int) -> None:
        """Raises Unavailable if that many bytes more would be too many."""
        if self._listener.held + more > self._listener.limits.held_max:
            raise self._listener.overloaded()

    def _take_whole(self, data: bytes) -> bool:
        """Whether it is a small request in one piece whose head needs little reading: the usual case, at less cost."""
        found, body_max = self._heads.whole(data) if len(data) <= SMALL_SIZE else None, self._listener.limits.body_max
        if found is None or len(found[1]) != found[0].length or len(found[1]) > body_max:
            return False
        head, body = found
        self._current = request = HttpRequest(head, self._peer, body_max, self._send_continue, whole=body)
        self._listener.held += request.size
        self.deadline = inf
        self._listener.submit(self, request)
        return True

    def _take_head(self) -> bool:
        """False while it is not complete."""
        end = self._buffer.find(END_OF_HEAD, max(0, self._scanned - 3))
        self._scanned = len(self._buffer)
        if end < 0 or end > HEAD_MAX:
            if self._scanned > HEAD_MAX:
                raise HeadTooLarge("the headers are too long")
            return False
        self._scanned = 0
        given = bytes(self._buffer[: end + 4])
        del self._buffer[: end + 4]
        head = self._heads.read(given)
        kept = len(given) if len(given) > SMALL_SIZE else 0
        if kept:
            self._check_held(kept - self._unparsed)
        self._listener.held += kept
        request = HttpRequest(head, self._peer, self._listener.limits.body_max, self._send_continue, kept)
        if not request.is_complete:
            self._reading = request
            if self._buffer:
                self._take_body(request)
        self._pending.append(request)
        self._begin_next()
        return True

    def _take_body(self, request: HttpRequest) -> bool:
        """False if nothing more can be done with the buffer."""
        before = request.size
        try:
            used = request.take(self._buffer)
        except InvalidChunk:
            request.fail(cut_off())
            self._ended = True
            self._reading = None
            self._drop_buffer()
            return False
        del self._buffer[:used]
        self._listener.held += request.size - before
        if request.size > SMALL_SIZE and self._listener.held > self._listener.limits.held_max:
            request.fail(self._listener.overloaded())
        if request.is_complete:
            self._reading = None
        return used > 0

    def _send_continue(self) -> None:
        self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # -- from requests to answers --------------------------------------------------------------------------------

    def _begin_next(self) -> None:
        """Begins the next request if there is one, and the last was answered and its answer read."""
        if self._pending and self._current is None and self._stalled is None:
            self._current = self._pending.popleft()
            self.deadline = inf
            self._listener.submit(self, self._current)

    def start(self, request: HttpRequest, respond: Respond) -> None:
        if self._transport.is_closing():  # no client waits for the answer
            self._listener.finished(self)
            self._finish(request)
            return
        self._task = asyncio.get_running_loop().create_task(self._answer(request, respond))

    def refuse(self, request: HttpRequest, response: Response) -> None:
        """Answers without asking the app."""
        assert isinstance(response.body, bytes)
        self._send(request, response, response.body)
        self._finish(request)

    async def _answer(self, request: HttpRequest, respond: Respond) -> None:
        try:
            response = await respond(request)
            if isinstance(response.body, bytes):
                self._send(request, response, response.body)
            else:
                await self._stream(request, response, response.body)
        except Exception as bug:
            self._listener.report(f"{request.method} {request.path}", bug)
            self._transport.abort()
        finally:
            self._listener.finished(self)
            self._finish(request)

    def _send(self, request: HttpRequest, response: Response, body: bytes) -> None:
        if self._transport.is_closing():
            return
        if len(body) > SMALL_SIZE and self._listener.held + len(body) > self._listener.limits.held_max:
            response = self._listener.failure(self._listener.overloaded())
            assert isinstance(response.body, bytes)
            body = response.body
        head = self._head_of(request, response, len(body))
        if request.method == "HEAD" or response.status in WITHOUT_BODY:
            body = b""
        if len(body) <= SMALL_SIZE:
            self._transport.write(head + body)
            return
        self._transport.writelines([head, body])
        if self._stalled is not None:
            self._unsent = self._transport.get_write_buffer_size()
            self._listener.held += self._unsent

    async def _stream(self, request: HttpRequest, response: Response, pieces: AsyncGenerator[bytes, None]) -> None:
        """Sends pieces as they come; ends when the client is gone or does not read."""
        chunked = not request.is_http10
        request.is_last |= not chunked  # only the end of the connection shows the end of the body
        self._transport.write(self._head_of(request, response, None))
        self._streaming = True
        try:
            async with aclosing(pieces):
                if request.method == "HEAD":
                    return
                async for piece in pieces:
                    self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                    if self._stalled is not None:
                        await self._stalled
            if chunked:
                self._transport.write(b"0\r\n\r\n")
        except asyncio.CancelledError:
            self._transport.abort()  # by `connection_lost` or at the stop of the listener
        finally:
            self._streaming = False

    def _head_of(self, request: HttpRequest, response: Response, length: int | None) -> bytes:
        """Status line and headers. `length` None: the body is sent in chunks, or until the connection ends."""
        how_it_ends = CLOSE if self._is_last(request) else KEEP_ALIVE if request.is_http10 else b""
        return self._listener.heads.pack(response, length, how_it_ends, chunked=not request.is_http10)

    def _is_last(self, request: HttpRequest) -> bool:
        """Whether the connection ends after this request."""
        no_more = self._ended and not self._pending and not self._buffer
        return no_more or not request.keep_alive or self._listener.is_stopping

    def _finish(self, request: HttpRequest) -> None:
        self._listener.held -= request.held
        self._current = self._task = None
        if self._transport.is_closing():
            return
        if not request.is_complete and not self._ended:
            self._discard()
        elif self._is_last(request):
            self._close()
        else:
            self._go_on()

    def _go_on(self) -> None:
        """To the next request of the connection."""
        if self._stalled is None:
            limits = self._listener.limits
            self.deadline = self._listener.now() + (limits.head_s if self._buffer else limits.idle_s)
            self._begin_next()
        if self._buffer or self._paused:
            self._parse()
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self._ended and self._current is None and not self._pending and self._stalled is None:
            self._close()

    def _discard(self) -> None:
        """The rest of a refused body is read and thrown away for a while: closing at once would reset the connection,
        and the client might never see its answer."""
        self._discarded = 0
        self._drop_buffer()
        self._reading = None
        self.deadline = self._listener.now() + _DISCARD_S
        self._transport.resume_reading()
        with suppress(OSError, RuntimeError):  # the transport is closing already
            self._transport.write_eof()

    def _close(self) -> None:
        self.deadline = self._listener.now() + self._listener.limits.write_s
        self._transport.close()

    def _refuse(self, response: Response) -> None:
        """For what is not HTTP."""
        assert isinstance(response.body, bytes)
        head = self._listener.heads.pack(response, len(response.body), CLOSE)
        self._transport.write(head + response.body)
        self._discard()

    # -- what the listener calls ---------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends the connection now if it is idle or streams, else after its answers."""
        if self._streaming and self._task is not None:
            self._task.cancel()
        elif self._current is None and not self._pending:
            self._close()

    def abort(self) -> None:
        self.deadline = inf
        abort(self._transport)
