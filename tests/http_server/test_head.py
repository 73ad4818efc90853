"""The head of a request is read strictly, and nothing that is sent breaks the parser."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefall.errors import (
    TransferEncodingUnsupported,
    UnreadableExpectation,
    UnreadableRequest,
    VersionUnsupported,
)
from icefall.server.body import Chunks, InvalidChunk
from icefall.server.head import HeadReader, RequestHead

HOST = b"Host: localhost\r\n"


def head(line: bytes = b"GET / HTTP/1.1", fields: bytes = HOST) -> RequestHead:
    return RequestHead(line + b"\r\n" + fields + b"\r\n")


def test_a_usual_head() -> None:
    read = head(b"POST /ext/bc/X?a=%20b HTTP/1.1", HOST + b"Content-Length: 12\r\nX-A:  one \r\nx-a: two\r\n")
    assert (read.method, read.path, read.query, read.host) == ("POST", "/ext/bc/X", "a=%20b", "localhost")
    assert (read.length, read.keep_alive, read.expects) == (12, True, False)
    assert (read.fields[b"x-a"], read.repeated) == (b"one", [(b"x-a", b"two")])


@pytest.mark.parametrize(
    ("target", "path", "host"),
    [
        (b"/a%20b%2Fc", "/a b/c", "localhost"),
        (b"/%ff", "/�", "localhost"),
        (b"/a#b", "/a#b", "localhost"),
        (b"*", "*", "localhost"),
        (b"http://other:1/a?b", "/a", "other:1"),
        (b"http://other", "/", "other"),
    ],
)
def test_targets(target: bytes, path: str, host: str) -> None:
    read = head(b"GET " + target + b" HTTP/1.1")
    assert (read.path, read.host) == (path, host)


@pytest.mark.parametrize(
    "line",
    [
        b"", b"GET", b"GET /", b"GET / HTTP", b"GET  / HTTP/1.1", b"GET / HTTP/1.1 ", b" GET / HTTP/1.1",
        b"GET a HTTP/1.1", b"GET /% HTTP/1.1", b"GET /%zz HTTP/1.1", b"GET /a b HTTP/1.1", b"G(T / HTTP/1.1",
        b"GET /\x00 HTTP/1.1", b"GET / http/1.1", b"GET / HTTP/1.10", b"GET http://a b/ HTTP/1.1",
    ],
)  # fmt: skip
def test_request_lines_that_are_none(line: bytes) -> None:
    with pytest.raises(UnreadableRequest):
        head(line)


@pytest.mark.parametrize(
    "fields",
    [
        HOST + HOST, b"Host: a\r\nHost: a\r\n", b"Host:\r\nHost:\r\n",
        b"", b"Host: a b\r\n", b"Host: a/b\r\n", b"Host: n\xc3\xb6de\r\n", b"Host : a\r\n",
        HOST + b"A\r\n", HOST + b" folded\r\n", HOST + b"A: \x00\r\n", HOST + b"A: a\nB: b\r\n", HOST + b": a\r\n",
        HOST + b"Content-Length: abc\r\n", HOST + b"Content-Length: -5\r\n", HOST + b"Content-Length: +5\r\n",
        HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n", HOST + b"Content-Length: 5, 5\r\n",
        HOST + b"Content-Length:\r\n", HOST + b"Content-Length: 9999999999999999999\r\n",
    ],
)  # fmt: skip
def test_fields_that_are_none(fields: bytes) -> None:
    with pytest.raises(UnreadableRequest):
        head(fields=fields)


def test_what_is_not_served() -> None:
    with pytest.raises(VersionUnsupported):
        head(b"GET / HTTP/2.0")
    with pytest.raises(UnreadableExpectation):
        head(fields=HOST + b"Expect: something\r\n")
    twice = [b"chunked\r\nTransfer-Encoding: " + another for another in (b"gzip", b"chunked")]
    for encoding in (b"gzip", b"gzip, chunked", b"chunked, chunked", *twice):
        with pytest.raises(TransferEncodingUnsupported):
            head(fields=HOST + b"Transfer-Encoding: " + encoding + b"\r\n")
    with pytest.raises(TransferEncodingUnsupported):
        head(b"GET / HTTP/1.0", b"Transfer-Encoding: chunked\r\n")


@pytest.mark.parametrize(
    ("line", "fields", "keep"),
    [
        (b"GET / HTTP/1.1", b"", True),
        (b"GET / HTTP/1.1", b"Connection: close\r\n", False),
        (b"GET / HTTP/1.1", b"Connection: x, Close\r\n", False),
        (b"GET / HTTP/1.0", b"", False),
        (b"GET / HTTP/1.0", b"Connection: keep-alive\r\n", True),
        (b"GET / HTTP/1.1", b"Connection: Upgrade\r\nUpgrade: h2c\r\n", False),
        (b"GET / HTTP/1.1", b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", False),
    ],
)
def test_whether_a_connection_is_kept(line: bytes, fields: bytes, keep: bool) -> None:
    assert head(line, HOST + fields).keep_alive is keep


@given(st.binary(max_size=300))
def test_whatever_is_sent_is_read_or_refused(data: bytes) -> None:
    for sent in (data + b"\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n" + data + b"\r\n\r\n"):
        with suppress(UnreadableRequest):
            assert RequestHead(sent).method


@given(st.binary(max_size=200))
def test_whatever_is_sent_as_chunks_is_read_or_refused(data: bytes) -> None:
    chunks = Chunks()
    try:
        piece, used = chunks.take(b"3\r\nabc\r\n" + data)
    except InvalidChunk:
        return
    assert piece.startswith(b"abc")
    assert used <= len(data) + 8


LINES = [
    b"GET / HTTP/1.1",
    b"GET /a%20b?c=d HTTP/1.1",
    b"GET http://other:1/a?b HTTP/1.1",
    b"GET /a HTTP/1.0",
    b"POST /a HTTP/1.1",
    b"CONNECT other:1 HTTP/1.1",
    b"GET a HTTP/1.1",
    b"GET / HTTP/2.0",
]
FIELDS = [
    HOST,
    b"Host: third\r\nX-A: one\r\nx-a: two\r\n",
    HOST + b"Content-Length: 5\r\nExpect: 100-continue\r\n",
    HOST + b"Content-Length: 0\r\nExpect: 100-continue\r\n",
    HOST + b"content-length:  7\r\nX-A: 1\r\n",
    HOST + b"content-length:  123\r\nX-A: 1\r\n",
    HOST + b"content-length:  123\r\nX-A: 2\r\n",
    HOST + b"content-length:  0\r\nX-A: 1\r\n",
    HOST + b"content-length:  1234567890123456789\r\nX-A: 1\r\n",
    HOST + b"content-length:  +7\r\nX-A: 1\r\n",
    HOST + b"content-length:  7\r\nContent-Length: 8\r\n",
    HOST + b"content-length:  8\r\nContent-Length: 8\r\n",
    HOST + b"content-length:  7\r\nTransfer-Encoding: chunked\r\n",
    HOST + b"Connection: close\r\n",
    HOST + b"Content-Length: x\r\n",
    HOST + b"X-Long: " + b"a" * 5000 + b"\r\n",
    b"",
]
HEADS = st.builds(b"%b\r\n%b\r\n".__mod__, st.tuples(st.sampled_from(LINES), st.sampled_from(FIELDS)))


def outcome(read: RequestHead | None) -> list[object] | None:
    asked = ("host", "x-a", "content-length", "expect")
    names = (name for name in RequestHead.__slots__ if name != "_texts")
    return None if read is None else [*(getattr(read, name) for name in names), *map(read.text, asked)]


def fresh(sent: bytes) -> RequestHead | None:
    try:
        return RequestHead(sent)
    except UnreadableRequest:
        return None


@given(st.lists(st.tuples(HEADS, st.sampled_from([b"", b"a", b"GET / HTTP/1.1\r\n\r\n"])), max_size=8))
def test_heads_are_read_as_if_none_had_come_before(sent: list[tuple[bytes, bytes]]) -> None:
    reader = HeadReader({})
    for head_bytes, rest in sent:
        found = reader.whole(head_bytes + rest)
        if found is not None:
            assert (outcome(found[0]), found[1]) == (outcome(fresh(head_bytes)), rest)
        with suppress(UnreadableRequest):
            assert outcome(reader.read(head_bytes)) == outcome(fresh(head_bytes))


def test_a_body_of_another_length_behind_the_same_head_is_taken_whole() -> None:
    reader = HeadReader({})
    head = b"POST /a HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\nX-A: 1\r\n\r\n"
    reader.read(head % 9)
    for length in (10, 3, 0, 123_456):
        body = b"\r\n\r\n"
        found = reader.whole(head % length + body)
        assert found is not None
        assert (outcome(found[0]), found[1]) == (outcome(fresh(head % length)), body)


def test_another_target_with_the_same_headers_is_taken_whole() -> None:
    reader = HeadReader({})
    for target in (b"/a", b"/b?c"):
        found = reader.whole(b"GET %b HTTP/1.1\r\n%b\r\n" % (target, HOST))
        assert found is not None
        assert found[0].path == target.partition(b"?")[0].decode()
    assert reader.whole(b"GET / HTTP/1.1\r\n" + HOST) is None
    assert reader.whole(b"GET / HTTP/1.1 \r\n\r\n") is None
