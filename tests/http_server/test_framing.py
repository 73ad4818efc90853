"""Where a request ends: whatever is executed here, another strict parser (h11) reads as the same request.

What two servers in a row read differently can hide a request from the first (request smuggling). Requests are made of
valid and invalid parts, then damaged, all from fixed seeds.
"""

from random import Random
from typing import NamedTuple, cast

import h11
import pytest
from tests.http_server.serving import LIMITS

from icefall.errors import IcefallError
from icefall.server.connection import Connection
from icefall.server.head import HeadReader
from icefall.server.request import HttpRequest
from icefall.server.response import PackedHeads, Response

STREAMS_PER_SEED = 500
DAMAGE = [b"", b"\r", b"\n", b"\r\n", b" ", b"\t", b":", b";", b",", b"0", b"a", b"\0", b"\x0b"]
METHODS = [b"GET", b"POST", b"PUT"]
LENGTHS = [
    b"Content-Length: %d",
    b"content-length:%d",
    b"Content-Length: 0%d",
    b"Content-Length : %d",
    b"Content-Length: +%d",
]
CHUNKED = [
    b"Transfer-Encoding: chunked", b"transfer-encoding:\tCHUNKED ", b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: chunked\r\nContent-Length: 4",
    b"Transfer-Encoding : chunked", b"Transfer-Encoding: xchunked", b"Transfer-Encoding:\r\n chunked",
]  # fmt: skip
OTHERS = [
    b"X: y",
    b"Connection: close",
    b"X: a\r\nx: b",
    b"Upgrade: h2c",
    b"X:",
    b"Host: other",
    b"X: a\n b",
    b"Trailer: T",
]
SIZES = [b"%x", b"%X", b"0%x", b"%x;a=b", b"%x ", b" %x", b"0x%x", b"%x;\r", b"-%x"]
LINE_ENDS = [b"\r\n"] * 150 + [b"\n", b"\r", b"\r\r\n", b""]
TRAILERS = [b"", b"T: v\r\n", b"\n", b"T\r\n", b" T: v\r\n", b"T : v\r\n", b"T: v\n", b"Content-Length: 3\r\n"]


class Executed(NamedTuple):
    method: str
    target: str
    body: bytes


class RecordingTransport:
    """Counts as a connection to a client that reads everything."""

    def __init__(self) -> None:
        self.written = b""
        self.closing = False

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def get_extra_info(self, _name: str) -> None:
        return None

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def write_eof(self) -> None:
        pass


class RecordingOwner:
    """A listener for one connection, which executes each request as soon as its body is complete."""

    def __init__(self) -> None:
        self.limits = LIMITS
        self.held = 0
        self.is_stopping = False
        self.heads = PackedHeads()
        self.remembering: dict[HeadReader, None] = {}
        self.waiting: list[tuple[Connection, HttpRequest]] = []
        self.executed: list[Executed] = []

    def now(self) -> float:
        return 0.0

    def has_room(self, more: int = 0) -> bool:
        return more < LIMITS.held_max

    def add(self, connection: Connection) -> None:
        pass

    def remove(self, connection: Connection) -> None:
        pass

    def finished(self, connection: Connection) -> None:
        pass

    def report(self, request: str, bug: Exception) -> None:
        raise AssertionError(request) from bug

    def failure(self, error: IcefallError) -> Response:
        return Response(error.status, [], str(error).encode())

    def submit(self, connection: Connection, request: HttpRequest) -> None:
        self.waiting.append((connection, request))

    submit_whole = submit

    def execute(self) -> None:
        while self.waiting and self.waiting[0][1].is_complete:
            connection, request = self.waiting.pop()
            body = request.body_now(1 << 20)
            if body is not None:
                self.executed.append(Executed(request.method, request.path, body))
            connection.refuse(request, Response(200, [], b""))


def ours(pieces: list[bytes]) -> list[Executed]:
    owner, transport = RecordingOwner(), RecordingTransport()
    connection = Connection(owner)
    connection.connection_made(cast("h11.Connection", transport))  # type: ignore[arg-type]
    for piece in pieces:
        if not transport.closing:
            connection.data_received(piece)
            owner.execute()
    connection.connection_lost(None)
    owner.execute()
    return owner.executed


def reference(stream: bytes) -> list[Executed]:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    connection.receive_data(stream)
    executed: list[Executed] = []
    method, target, body = "", "", b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                method, target, body = event.method.decode(), event.target.decode(), b""
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                executed.append(Executed(method, target, body))
                connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                connection.send(h11.EndOfMessage())
                if connection.our_state is not h11.DONE:
                    return executed
                connection.start_next_cycle()
            else:
                return executed
    except h11.RemoteProtocolError:
        return executed


def likely(random: Random, parts: list[bytes]) -> bytes:
    """The first part in most cases, else any of them."""
    return parts[0] if random.random() < 0.85 else random.choice(parts)


def request(random: Random, number: int) -> bytes:
    body = random.randbytes(random.randrange(12)).hex().encode()
    line = b"%b /%d HTTP/1.1" % (random.choice(METHODS), number)
    lines = [line, b"Host: a"]
    kind = random.randrange(3)
    if kind == 1:
        lines.append(likely(random, LENGTHS) % len(body))
    elif kind == 2:
        lines.append(likely(random, CHUNKED))
        body = chunks(random, body)
    else:
        body = b""
    lines += random.choices(OTHERS, k=random.choice([0, 0, 0, 0, 1, 2]))
    return b"".join(one + random.choice(LINE_ENDS) for one in [*lines, b""]) + body


def chunks(random: Random, body: bytes) -> bytes:
    cut = random.randrange(len(body) + 1)
    made = b""
    for piece in (body[:cut], body[cut:]):
        if piece:
            made += likely(random, SIZES) % len(piece) + random.choice(LINE_ENDS) + piece + random.choice(LINE_ENDS)
    return made + b"0" + random.choice(LINE_ENDS) + likely(random, TRAILERS) + random.choice(LINE_ENDS)


def damaged(random: Random, stream: bytes) -> bytes:
    for _ in range(random.choice([0, 0, 0, 1, 2])):
        at = random.randrange(len(stream))
        stream = stream[:at] + random.choice(DAMAGE) + stream[at + random.randrange(3) :]
    return stream


def cut(random: Random, stream: bytes) -> list[bytes]:
    places = sorted(random.choices(range(len(stream) + 1), k=random.randrange(6)))
    return [stream[begin:end] for begin, end in zip([0, *places], [*places, len(stream)], strict=True)]


@pytest.mark.parametrize("seed", range(10))
def test_a_strict_parser_reads_the_same_requests(seed: int) -> None:
    random, compared = Random(seed), 0
    for _ in range(STREAMS_PER_SEED):
        stream = damaged(random, b"".join(request(random, number) for number in range(random.randrange(1, 5))))
        executed, expected = ours(cut(random, stream)), reference(stream)
        assert executed == expected[: len(executed)], stream
        compared += len(executed)
    assert compared > STREAMS_PER_SEED / 2, "many requests are valid"


@pytest.mark.parametrize("seed", range(2))
def test_what_is_valid_is_executed_however_it_is_cut(seed: int) -> None:
    """Without it, a parser that refuses everything would pass."""
    random = Random(seed)
    for _ in range(STREAMS_PER_SEED):
        bodies = [random.randbytes(random.randrange(1, 40)) for _ in range(4)]
        stream = b"".join(
            b"POST /%d HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\nT: v\r\n\r\n"
            % (number, len(body), body)
            for number, body in enumerate(bodies)
        )
        expected = [Executed("POST", f"/{number}", body) for number, body in enumerate(bodies)]
        assert ours(cut(random, stream)) == reference(stream) == expected
