"""One connection: requests are read as their bytes arrive and answered in their order, one at a time.

A client may send slowly, stop reading or say nothing. What it can hold of our memory is limited, and `deadline` is when
the listener closes the connection. What comes before the last answer was sent is kept as bytes, and parsed after it.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, suppress
from functools import partial
from math import inf
from typing import Any, cast

from icefall.errors import Unavailable, UnreadableRequest
from icefall.server.body import InvalidChunk
from icefall.server.first_steps import FirstSteps
from icefall.server.head import HeadReader
from icefall.server.owner import ConnectionOwner
from icefall.server.request import HttpRequest, cut_off, overloaded
from icefall.server.response import CLOSE, KEEP_ALIVE, SMALL_ANSWER_SIZE, WITHOUT_BODY, Output, Response

READ_AHEAD_MAX = 16 << 10  # bytes behind an unfinished request; then nothing more is read for now
SMALL_SIZE = 8 << 10  # bytes of memory that a connection may hold for requests when there is no room for more
_DISCARD_MAX = 4 << 20  # bytes of a refused body that are read, so that the client gets its answer
_DISCARD_S = 5.0

Respond = Callable[[HttpRequest], Awaitable[Response]]


class Connection(asyncio.Protocol):
    def __init__(self, listener: "ConnectionOwner[Connection]") -> None:
        self._listener = listener
        self._transport: asyncio.Transport
        self._output: Output
        self._peer = ""
        self._buffer = bytearray()  # what was received and is not part of a request yet
        self._heads = HeadReader(listener.remembering)
        self._current: HttpRequest | None = None  # waits for the app or is being answered
        self._reading: HttpRequest | None = None  # the current request, while its body is arriving
        self._task: asyncio.Task[None] | None = None
        self._streaming = False
        self._paused = False  # nothing is read
        self._ended = False  # the client sends no more
        self._discarded = -1  # bytes thrown away since the last answer; -1: the connection is in use
        self._held = 0  # bytes of memory that are counted for this connection
        self.deadline = inf

    @property
    def is_idle(self) -> bool:
        return self._current is None

    # -- what the event loop calls -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._output = Output(self._transport)
        peer = transport.get_extra_info("peername")
        self._peer = str(peer[0]) if peer else ""
        self.deadline = self._listener.now() + self._listener.limits.head_s
        self._listener.add(self)
        if self._listener.is_stopping:  # it was accepted just before
            self._close()

    def connection_lost(self, _: Exception | None) -> None:
        self._listener.remove(self)
        self._heads.forget()
        self._end_input()
        self._output.unsent = 0
        self._buffer.clear()
        self._count()

    def eof_received(self) -> bool:
        """Answer what the client has asked for, which it may still read."""
        self._end_input()
        self._close_if_done()
        return True

    def _end_input(self) -> None:
        """Break off the body that is arriving, and a stream, which would have no other end."""
        self._ended = True
        if self._reading is not None:
            self._reading.fail(cut_off())
        if self._streaming and self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._discarded >= 0:
            self._discarded += len(data)
            if self._discarded > _DISCARD_MAX:
                self.abort()
            return
        if self._ended:
            return  # after what could not be read, where a request begins is unknown
        if self._current is None and not self._buffer and self._output.stalled is None:
            if self._take_whole(data):
                return
            self.deadline = self._listener.now() + self._listener.limits.head_s
        self._buffer += data
        self._parse()

    def pause_writing(self) -> None:
        self._output.stall()
        self.deadline = self._listener.now() + self._listener.limits.write_s

    def resume_writing(self) -> None:
        self._output.resume()
        self._count()
        if self._discarded >= 0 or self._transport.is_closing():
            return
        if self._current is None:
            self._go_on()
        else:
            self.deadline = inf
            self._pause_reading(False)

    # -- memory --------------------------------------------------------------------------------------------------

    def _count(self) -> None:
        """Bring the listener's count of memory up to date with what this connection holds now."""
        held = self._output.unsent
        if self._buffer:
            held += self._buffer.__alloc__()  # more than its length while it grows, or when its start was taken
        if self._current is not None:
            held += self._current.held
        self._listener.held += held - self._held
        self._held = held

    def _count_unsent(self) -> None:
        """Count what the client does not read. If there is no room for it, the connection ends."""
        self._count()
        if not self._listener.has_room():
            self.abort()

    # -- from bytes to requests ----------------------------------------------------------------------------------

    def _parse(self) -> None:
        """Take from the buffer what can be taken now; the next head only when the last answer is on the way."""
        try:
            while self._buffer and self._discarded < 0:
                if self._reading is not None:
                    if not self._take_body(self._reading):
                        break
                elif self._current is not None or self._output.stalled is not None or not self._take_head():
                    break
            self._count()
            if len(self._buffer) > SMALL_SIZE and not self._listener.has_room():
                raise overloaded()
        except (UnreadableRequest, Unavailable) as error:
            self._ended = True
            self._buffer.clear()
            self._count()
            if self._current is None and self._output.stalled is None:
                self._refuse(self._listener.failure(error))
            else:
                self._pause_reading(True)  # the connection ends after the current answer
            return
        is_behind = self._current is not None and self._reading is None and len(self._buffer) > READ_AHEAD_MAX
        self._pause_reading(is_behind or self._output.stalled is not None)

    def _pause_reading(self, paused: bool) -> None:
        if paused != self._paused and not self._transport.is_closing():
            self._paused = paused
            if paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _take_whole(self, data: bytes) -> bool:
        """Take a small request in one piece whose head needs little reading: the usual case, at less cost."""
        found = self._heads.whole(data) if len(data) <= SMALL_SIZE else None
        if found is None:
            return False
        head, body = found
        size, body_max = len(body), self._listener.limits.body_max
        held = head.size + size
        if size != head.length or size > body_max or held > SMALL_SIZE:
            return False
        self._current = request = HttpRequest(head, self._peer, body_max, self._send_continue, whole=body)
        self._listener.held += held  # the connection has held nothing until now
        self._held = held
        self.deadline = inf
        self._listener.submit_whole(self, request)
        return True

    def _take_head(self) -> bool:
        """Begin the next request, and return False while its head is not complete."""
        head = self._heads.take(self._buffer)
        if head is None:
            return False
        self._current = request = HttpRequest(head, self._peer, self._listener.limits.body_max, self._send_continue)
        self._count()
        if head.size > SMALL_SIZE and not self._listener.has_room():
            self._current = None
            raise overloaded()
        self.deadline = inf
        if not request.is_complete:
            self._reading = request
            if self._buffer:
                self._take_body(request)
            if self._ended and not request.is_complete:
                request.fail(cut_off())
        self._listener.submit(self, request)
        return True

    def _take_body(self, request: HttpRequest) -> bool:
        """Add to the body what is there of it, and return False if nothing more can be done with the buffer."""
        try:
            used = request.take(self._buffer)
        except InvalidChunk:
            request.fail(cut_off())
            self._ended = True
            self._reading = None
            self._buffer.clear()
            return False
        del self._buffer[:used]
        self._count()
        if request.held > SMALL_SIZE and not self._listener.has_room():
            request.fail(overloaded())
        if request.is_complete:
            self._reading = None
        return used > 0

    def _send_continue(self) -> None:
        self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # -- from requests to answers --------------------------------------------------------------------------------

    def start(self, request: HttpRequest, respond: Respond) -> None:
        if self._transport.is_closing():  # no client waits for the answer
            self._listener.finished(self)
            self._finish(request)
            return
        self._task = asyncio.get_running_loop().create_task(self._answer(request, respond))

    def begin(
        self, request: HttpRequest, respond: Callable[[HttpRequest], Coroutine[Any, Any, Response]], steps: FirstSteps
    ) -> None:
        """Answer at once, if that takes a single step; else a task goes on with it."""
        try:
            response = steps.run(respond(request), partial(self._answer, request))
            if isinstance(response, asyncio.Task):
                self._task = response
                return
            if not isinstance(response.body, bytes):
                self.start(request, partial(_given, response))
                return
            self._send_answer(request, response, response.body)
        except Exception as bug:
            self._fail(request, bug)
        self._listener.finished(self)
        is_more = self._buffer or self._paused or self._output.stalled is not None
        if is_more or self._transport.is_closing() or self._is_last(request):
            self._finish(request)
        else:  # the usual end: nothing is left of this request, and nothing there of the next one
            self._current = None
            self._listener.held -= self._held
            self._held = 0
            self.deadline = self._listener.now() + self._listener.limits.idle_s

    def refuse(self, request: HttpRequest, response: Response) -> None:
        """Answer without asking the app."""
        assert isinstance(response.body, bytes)
        self._send_answer(request, response, response.body)
        self._finish(request)

    async def _answer(self, request: HttpRequest, respond: Respond) -> None:
        try:
            response = await respond(request)
            if isinstance(response.body, bytes):
                self._send_answer(request, response, response.body)
            else:
                await self._stream(request, response, response.body)
        except Exception as bug:
            self._fail(request, bug)
        finally:
            self._listener.finished(self)
            self._finish(request)

    def _fail(self, request: HttpRequest, bug: Exception) -> None:
        self._listener.report(f"{request.method} {request.path}", bug)
        self._transport.abort()

    def _send_answer(self, request: HttpRequest, response: Response, body: bytes) -> None:
        if self._transport.is_closing():
            return
        if len(body) > SMALL_ANSWER_SIZE and not self._listener.has_room(len(body)):
            response = self._listener.failure(overloaded())
            assert isinstance(response.body, bytes)
            body = response.body
        head = self._head_of(request, response, len(body))
        if request.method == "HEAD" or response.status in WITHOUT_BODY:
            body = b""
        self._output.send(head, body)
        if self._output.unsent:
            self._count_unsent()

    async def _stream(self, request: HttpRequest, response: Response, pieces: AsyncGenerator[bytes, None]) -> None:
        """Send pieces as they come, until the client is gone or does not read."""
        chunked = response.length is None and not request.is_http10
        request.is_last |= response.length is None and not chunked  # only the connection's end shows that of the body
        self._transport.write(self._head_of(request, response, response.length))
        self._streaming = True
        try:
            async with aclosing(pieces):
                if request.method != "HEAD":
                    await self._output.send_pieces(pieces, self._count_unsent, chunked=chunked)
        except asyncio.CancelledError:
            self._transport.abort()  # by `connection_lost` or at the stop of the listener
        finally:
            self._streaming = False

    def _head_of(self, request: HttpRequest, response: Response, length: int | None) -> bytes:
        """Return the head of an answer. `length` None: the body is sent in chunks, or until the connection ends."""
        how_it_ends = CLOSE if self._is_last(request) else KEEP_ALIVE if request.is_http10 else b""
        return self._listener.heads.pack(response, length, how_it_ends, chunked=not request.is_http10)

    def _is_last(self, request: HttpRequest) -> bool:
        """Tell whether the connection ends after this request."""
        return (self._ended and not self._buffer) or not request.keep_alive or self._listener.is_stopping

    def _finish(self, request: HttpRequest) -> None:
        self._current = self._task = None
        self._count()
        if self._transport.is_closing():
            return
        if not request.is_complete and not self._ended:
            self._discard()
        elif self._is_last(request):
            self._close()
        else:
            self._go_on()

    def _go_on(self) -> None:
        """Begin the next request of the connection, if it is there and the last answer was read."""
        if self._output.stalled is None:
            limits = self._listener.limits
            self.deadline = self._listener.now() + (limits.head_s if self._buffer else limits.idle_s)
        if self._buffer or self._paused:
            self._parse()
        if self._discarded < 0:
            self._close_if_done()

    def _close_if_done(self) -> None:
        if self._ended and self._current is None and self._output.stalled is None:
            self._close()

    def _discard(self) -> None:
        """Read the rest of a refused request for a while and throw it away.

        Closing at once would reset the connection, and the client might never see its answer.
        """
        self._discarded = 0
        self._buffer.clear()
        self._count()
        self._reading = None
        self.deadline = self._listener.now() + _DISCARD_S
        self._pause_reading(False)
        with suppress(OSError, RuntimeError):  # the transport is closing already
            self._transport.write_eof()

    def _close(self) -> None:
        if self._paused:  # there may be more to read
            self._discard()
            return
        self.deadline = self._listener.now() + self._listener.limits.write_s
        self._transport.close()

    def _refuse(self, response: Response) -> None:
        """Answer what is not HTTP."""
        assert isinstance(response.body, bytes)
        head = self._listener.heads.pack(response, len(response.body), CLOSE)
        self._transport.write(head + response.body)
        self._discard()

    # -- what the listener calls ---------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the connection now if it is idle or streams, else after its answer."""
        if self._streaming and self._task is not None:
            self._task.cancel()
        elif self._current is None:
            self._close()

    def abort(self) -> None:
        """End the connection at once and drop what its client has not received."""
        self.deadline = inf
        self._output.reset()


async def _given(response: Response, _request: HttpRequest) -> Response:
    return response
