"""The processes that decode blocks, as the process that fetches and stores them sees them."""

import asyncio
import fcntl
import itertools
import multiprocessing
import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import msgspec

from icefall.evm.indexing.decoder import (
    SIZE,
    DecoderDied,
    RawChunk,
    Ticket,
    VerifiedChunk,
    decode_raw,
    derive_here,
    frame,
    parts_of,
    serve,
    verify_here,
)
from icefall.evm.model import ContractInfo, StoredRaw
from icefall.evm.packed import PackedBlock, from_bytes
from icefall.upstream.evm.block_parts import FetchedBlock

T = TypeVar("T")
_PROCESSES_MAX = 4  # by default; one writer can store what about as many decode
# Calls sent to a process, each through a pipe of its own, which takes it whole: while a step of a commit holds up our
# loop for some 50 ms, the process has enough to do.
_CALLS_SENT_MAX = 8
_PIPE_SIZE = 512 << 10  # more than a chunk or its rows
_PIPE_SIZE_MIN = 64 << 10  # the system's own
_ALL_PIPES_SIZE = 24 << 20  # where all pipes of a user have 64 MB, Linux gives each further one two pages
_READ_SIZE = 1 << 17
_PIECES_MAX = 1024  # written by one call; the system's limit


def default_processes() -> int:
    """The number of processes by default: one core is left for fetching and storing."""
    return max(1, min((os.cpu_count() or 1) - 1, _PROCESSES_MAX))


class ProcessBlockDecoder:
    """The decoder that works in other processes, one chunk after the other in each. One that died is replaced at the
    next call."""

    def __init__(self, processes: int = 1) -> None:
        pipe_size = pipe_size_for(processes)
        self._processes = [_DecoderProcess(pipe_size) for _ in range(processes)]
        self._tickets = itertools.count()

    def start(self) -> None:
        """Start the processes before the first call: meanwhile the first blocks are fetched."""
        for process in self._processes:
            process.start()

    async def verify(
        self, chain: int, blocks: Sequence[FetchedBlock], fixed: ContractInfo, *, roots: bool, raw: StoredRaw
    ) -> VerifiedChunk:
        ticket = chain, next(self._tickets)
        chunk, derived = await self._of(ticket).run(verify_here, ticket, parts_of(blocks), roots, raw, fixed)
        return msgspec.structs.replace(chunk, derived=from_bytes(derived))

    async def derive(self, ticket: Ticket, indices: range, info: ContractInfo) -> list[PackedBlock]:
        return from_bytes(await self._of(ticket).run(derive_here, ticket, indices, info))

    async def raw(self, blocks: Sequence[FetchedBlock], *, roots: bool, raw: StoredRaw) -> RawChunk:
        process = self._processes[next(self._tickets) % len(self._processes)]
        return await process.run(decode_raw, parts_of(blocks), roots, raw)

    def _of(self, ticket: Ticket) -> "_DecoderProcess":
        """The process of a chunk, the same for both steps: it holds the verified blocks in between."""
        return self._processes[ticket[1] % len(self._processes)]

    def close(self) -> None:
        for process in self._processes:
            process.close()


def pipe_size_for(processes: int) -> int:
    """The size of each pipe of each process; a power of two, as the system would round it up to one."""
    each = _ALL_PIPES_SIZE // (processes * (_CALLS_SENT_MAX + 1))
    return max(_PIPE_SIZE_MIN, min(_PIPE_SIZE, 1 << (each.bit_length() - 1)))


class _DecoderProcess:
    """A process that is started by its first call, or before."""

    def __init__(self, pipe_size: int) -> None:
        self._pipe_size = pipe_size
        self._running: _Running | None = None

    def start(self) -> "_Running":
        if self._running is None:
            self._running = _Running(self._pipe_size)
        return self._running

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        running = self.start()
        try:
            async with running.turns:
                answer: T = await running.call(work, args)
                return answer
        except DecoderDied:
            if running.has_died and running is self._running:  # it may have been replaced since
                self.close()
            raise

    def close(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None


class _Running:
    """A process and the pipes to and from it, which the event loop writes and reads: a thread would compete with it for
    the interpreter at every statement of the store. The process ends when they are closed."""

    def __init__(self, pipe_size: int) -> None:
        self.has_died = False
        self.turns = asyncio.Semaphore(_CALLS_SENT_MAX)
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._waiting: deque[asyncio.Future[Any]] = deque()  # in the order of their calls
        context = multiprocessing.get_context("spawn")
        pipes = [context.Pipe(duplex=False) for _ in range(_CALLS_SENT_MAX)]
        self._requests = [_RequestPipe(self._loop, ours, self.close) for _, ours in pipes]
        self._next_request = itertools.cycle(self._requests)
        self._answers, answers = context.Pipe(duplex=False)
        for ours in (self._answers, *(ours for _, ours in pipes)):
            _prepare(ours, pipe_size)
        resource_tracker.ensure_running()  # else starting a process does it, and takes the mask away
        # The process inherits the mask: a ^C in the terminal is ours to act on.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        requests = [theirs for theirs, _ in pipes]
        try:
            context.Process(target=serve, args=(requests, answers), daemon=True).start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for theirs in (*requests, answers):
            theirs.close()
        self._loop.add_reader(self._answers.fileno(), self._read)

    def call(self, work: Callable[..., Any], args: tuple[Any, ...]) -> "asyncio.Future[Any]":
        waiting = self._loop.create_future()
        if self.has_died:
            waiting.set_exception(_died())
            return waiting
        self._waiting.append(waiting)
        next(self._next_request).send(frame(work, args))
        return waiting

    def _read(self) -> None:
        try:
            more = os.read(self._answers.fileno(), _READ_SIZE)
        except BlockingIOError:
            return
        if not more:
            self.close()
            return
        self._received += more
        while (end := self._answer_end()) <= len(self._received):
            try:
                done, value = pickle.loads(self._received[SIZE.size : end])  # noqa: S301 - of our own process
            except Exception:  # an error that cannot be built again here; whoever waits must know
                self.close()
                return
            del self._received[:end]
            waiting = self._waiting.popleft()
            if not waiting.done():  # it may have been cancelled
                waiting.set_result(value) if done else waiting.set_exception(value)

    def _answer_end(self) -> int:
        """The end of the first answer in what was received, as far as that is known."""
        if len(self._received) < SIZE.size:
            return SIZE.size
        size: int = SIZE.unpack_from(self._received)[0]
        return SIZE.size + size

    def close(self) -> None:
        """Close the pipes; what was not answered fails."""
        if self.has_died:
            return
        self.has_died = True
        self._loop.remove_reader(self._answers.fileno())
        self._answers.close()
        for requests in self._requests:
            requests.close()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(_died())
        self._waiting.clear()


class _RequestPipe:
    """The calls on their way to a process."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, pipe: "Connection[Any, Any]", on_error: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._pipe = pipe
        self._on_error = on_error
        self._unsent: deque[memoryview] = deque()

    def send(self, pieces: Sequence[bytes | memoryview]) -> None:
        is_idle = not self._unsent
        self._unsent.extend([memoryview(piece) for piece in pieces if piece])
        if is_idle:
            self._write()

    def _write(self) -> None:
        """Write as much as the pipe takes."""
        where = self._pipe.fileno()
        try:
            while self._unsent:
                self._drop_sent(os.writev(where, list(itertools.islice(self._unsent, _PIECES_MAX))))
        except BlockingIOError:
            self._loop.add_writer(where, self._write)
        except OSError:
            self._on_error()
        else:
            self._loop.remove_writer(where)

    def _drop_sent(self, size: int) -> None:
        while size:
            piece = self._unsent.popleft()
            if len(piece) > size:
                self._unsent.appendleft(piece[size:])
            size -= min(size, len(piece))

    def close(self) -> None:
        self._loop.remove_writer(self._pipe.fileno())
        self._pipe.close()
        self._unsent.clear()


def _prepare(pipe: "Connection[Any, Any]", size: int) -> None:
    """Make our end of a pipe one that is never waited for, and as large as the system grants."""
    os.set_blocking(pipe.fileno(), False)
    with suppress(AttributeError, OSError):  # not on every system, and some limit it for each user
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, size)


def _died() -> DecoderDied:
    return DecoderDied("the process that decodes blocks has died")
