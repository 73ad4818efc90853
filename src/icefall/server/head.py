"""Reads the head of a request strictly: what a proxy in front reads differently would be a hole."""

import re
from urllib.parse import unquote_to_bytes

from icefall.errors import (
    HeadTooLarge,
    TransferEncodingUnsupported,
    UnreadableExpectation,
    UnreadableRequest,
    VersionUnsupported,
)

HEAD_MAX = 64 << 10  # bytes
HEADERS_MAX = 100
END_OF_HEAD = b"\r\n\r\n"
REMEMBERED_MAX = 1024  # connections whose last head is kept
_REMEMBERED_SIZE_MAX = 8 << 10  # bytes of memory of a head that is kept
_FIXED_SIZE = 1024  # bytes of memory of a request without headers
_HEADER_SIZE = 192  # bytes of memory of an empty header: two byte strings, their place in a dict or list
_DIGITS_MAX = 18  # of a Content-Length
_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
_HEADER = _TOKEN + rb"++:[\t -~\x80-\xff]*+\r\n"
HEADER_LINE = re.compile(_HEADER)
_HEAD = re.compile(rb"(" + _TOKEN + rb"++) ([!-~\x80-\xff]++) HTTP/([0-9])\.([0-9])\r\n((?:" + _HEADER + rb")*+)\r\n")
_HOST = re.compile(rb"[!$%&'()*+,\-.:;=\[\]_~0-9A-Za-z]*")
_LENGTH = re.compile(rb"\r\ncontent-length:[\t ]*([0-9]{1,%d})\r\n" % _DIGITS_MAX, re.IGNORECASE)
_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://([^/?]*)(.*)", re.DOTALL)


def too_many_headers() -> HeadTooLarge:
    return HeadTooLarge(f"a request may have {HEADERS_MAX} headers at most")


class RequestHead:
    """The parsed head of a request. What is not a valid head raises UnreadableRequest.

    `fields` has the first header of each name, in lower case, and `repeated` the others. `length` is the length of the
    body, None if it comes in chunks. `size` is the memory that the head takes, as an upper bound in bytes.
    """

    __slots__ = (
        "_fields_size",
        "_target_size",
        "_texts",
        "expects",
        "fields",
        "header_host",
        "host",
        "keep_alive",
        "length",
        "lines",
        "method",
        "minor",
        "path",
        "query",
        "repeated",
        "size",
    )

    def __init__(self, head: bytes | bytearray, last: "RequestHead | None" = None) -> None:
        """Parse `head`. `last` is the one before on the same connection: most clients repeat its headers."""
        found = _HEAD.fullmatch(head)
        if found is None:
            raise UnreadableRequest("the request line or a header is malformed")
        method, target, major, minor, lines = found.groups()
        if major != b"1":
            raise VersionUnsupported("only HTTP/1.0 and HTTP/1.1 are served")
        self._fields_size: int
        self.size: int
        self._texts: dict[str, str | None]
        self.fields: dict[bytes, bytes]
        self.repeated: list[tuple[bytes, bytes]]
        self.header_host: str
        self.length: int | None
        self.keep_alive: bool
        self.expects: bool
        self.method = method.decode("ascii")
        self.minor = int(minor)
        self.lines = lines
        if last is not None and lines == last.lines and self.method == last.method and self.minor == last.minor:
            self._texts, self.fields, self.repeated = last._texts, last.fields, last.repeated
            self.host = self.header_host = last.header_host
            self._read_target(target)
            self.length, self.keep_alive, self.expects = last.length, last.keep_alive, last.expects
            self._fields_size = last._fields_size
            self.size = last._fields_size + self._target_size
            return
        headers = lines.count(b"\n")
        if headers > HEADERS_MAX:
            raise too_many_headers()
        self._fields_size = _FIXED_SIZE + _HEADER_SIZE * headers + 2 * len(lines)  # as they came, and as fields
        self._texts = {}
        self._read_fields(lines)
        self.host = self.header_host = self._host()
        self._read_target(target)
        self.size = self._fields_size + self._target_size
        self.length = self._length()
        self.keep_alive = self._keep_alive()
        expected = self.fields.get(b"expect", b"").lower()
        if expected not in (b"", b"100-continue"):
            raise UnreadableExpectation("the only expectation that can be met is 100-continue", "")
        self.expects = bool(expected) and self.minor > 0 and self.length != 0

    def text(self, name: str) -> str | None:
        """Return the first header of that name. Texts are kept: the next request with this head needs the same ones."""
        try:
            return self._texts[name]
        except KeyError:
            value = self.fields.get(name.encode())
            text = self._texts[name] = None if value is None else value.decode("latin-1")
            return text

    def _read_fields(self, lines: bytes) -> None:
        self.fields = {}
        self.repeated = []
        for line in lines.split(b"\r\n")[:-1]:
            name, _, value = line.partition(b":")
            name, value = name.lower(), value.strip(b" \t")
            if name in self.fields:
                self.repeated.append((name, value))
            else:
                self.fields[name] = value

    def _host(self) -> str:
        host = self.fields.get(b"host")
        if host is None:
            if self.minor:
                raise UnreadableRequest("no Host header", "400 Bad Request: missing required Host header")
            return ""
        if any(name == b"host" for name, _ in self.repeated):
            raise UnreadableRequest("more than one Host header", "400 Bad Request: too many Host headers")
        if not _HOST.fullmatch(host):
            raise UnreadableRequest("the Host header is malformed", "400 Bad Request: malformed Host header")
        return host.decode("ascii")

    def _read_target(self, target: bytes) -> None:
        length = len(target)
        absolute = _ABSOLUTE.fullmatch(target)
        if absolute:
            authority, target = absolute.groups()
            if not _HOST.fullmatch(authority):
                raise UnreadableRequest("the target of the request is malformed")
            self.host = authority.decode("ascii")
            if target[:1] != b"/":
                target = b"/" + target
        elif target[:1] != b"/" and target != b"*" and self.method != "CONNECT":
            raise UnreadableRequest("the target of the request is malformed")
        path, _, query = target.partition(b"?")
        if b"%" in path:
            if _ESCAPE.search(path):
                raise UnreadableRequest("the path has a % that is no escape")
            path = unquote_to_bytes(path)
        self.path = path.decode("utf-8", "replace")
        # A path with a wide character has up to four bytes for each of its characters.
        self._target_size = 2 * length if self.path.isascii() else 5 * length
        self.query = query.decode("latin-1")

    def _length(self) -> int | None:
        if b"transfer-encoding" in self.fields:
            if self._all(b"transfer-encoding") != [b"chunked"] or not self.minor:
                raise TransferEncodingUnsupported("only chunked bodies are read", "Unsupported transfer encoding")
            return None
        if b"content-length" not in self.fields:
            return 0
        lengths = set(self._all(b"content-length"))
        (text,) = lengths if len(lengths) == 1 else (b"",)
        if not text.isdigit() or len(text) > _DIGITS_MAX:
            raise UnreadableRequest("the Content-Length is malformed")
        return int(text)

    def _all(self, name: bytes) -> list[bytes]:
        return [self.fields[name].lower(), *(value.lower() for field, value in self.repeated if field == name)]

    def _keep_alive(self) -> bool:
        if self.length is None and b"content-length" in self.fields:
            return False  # a proxy in front may have believed the length: nothing after this body is read
        if b"connection" not in self.fields and b"upgrade" not in self.fields:
            return self.minor > 0
        if self.method == "CONNECT" or b"upgrade" in self.fields:
            return False  # what follows may be another protocol
        options = {option.strip() for value in self._all(b"connection") for option in value.split(b",")}
        return b"close" not in options and (self.minor > 0 or b"keep-alive" in options)

    def announce(self, digits: bytes, lines: bytes) -> None:
        """Become the head with these lines, which announce a body of another length and are the same otherwise. The
        request that had this head is answered by then."""
        more = 2 * (len(lines) - len(self.lines))
        self.lines = lines
        self._fields_size += more
        self.size += more
        self.fields[b"content-length"] = digits
        self._texts.pop("content-length", None)
        self.length = int(digits)


class HeadReader:
    """Reads the heads of one connection: clients repeat theirs, for a body of another length, or ask for another target
    with the same headers.

    The last head is kept for that, if it is small. `remembering` has the readers that keep one, of all connections, the
    oldest first: beyond REMEMBERED_MAX the oldest one forgets its head.
    """

    __slots__ = ("_bytes", "_digits", "_head", "_remembering", "_scanned")

    def __init__(self, remembering: "dict[HeadReader, None]") -> None:
        self._remembering = remembering
        self._bytes = b""
        self._head: RequestHead | None = None  # the last one
        self._digits = 0, 0  # where the body's length is in it, if that is all that may differ in the next one
        self._scanned = 0  # bytes of the buffer that were searched for the end of a head

    def take(self, buffer: bytearray) -> RequestHead | None:
        """Take the head at the start of `buffer` out of it; None while it is not complete.

        Only the new bytes are searched for its end: between two heads, `buffer` may only grow.
        """
        end = buffer.find(END_OF_HEAD, max(0, self._scanned - len(END_OF_HEAD) + 1))
        self._scanned = len(buffer)
        if end < 0 or end > HEAD_MAX:
            if self._scanned > HEAD_MAX:
                raise HeadTooLarge(f"the head of a request may be {HEAD_MAX} bytes long at most")
            return None
        self._scanned = 0
        if buffer.count(b"\n", 0, end) > HEADERS_MAX:  # counting them costs less than parsing
            raise too_many_headers()
        given = bytes(buffer[: end + len(END_OF_HEAD)])
        del buffer[: len(given)]
        return self.read(given)

    def read(self, given: bytes) -> RequestHead:
        if self._head is not None and self._end_of_same(given) == len(given):
            return self._head
        head = RequestHead(given, self._head)
        if head.size <= _REMEMBERED_SIZE_MAX:
            if self._head is None:
                self._remember()
            self._bytes, self._head = given, head
            is_plain = head.length is not None and not head.repeated and b"expect" not in head.fields
            found = _LENGTH.search(given) if is_plain else None
            self._digits = found.span(1) if found else (0, 0)
        return head

    def _end_of_same(self, data: bytes) -> int:
        """Return where the head ends with which `data` begins, if that is the last one but for the body's length, and 0
        if it is not. What was read of the last one is then that of this one."""
        if data.startswith(self._bytes):
            return len(self._bytes)
        begin, before = self._digits
        if not begin or not data.startswith(self._bytes[:begin]):
            return 0
        stop = data.find(b"\r", begin, begin + _DIGITS_MAX + 1)
        digits = data[begin:stop]
        if stop < 0 or not digits.isdigit() or not data.startswith(self._bytes[before:], stop):
            return 0
        assert self._head is not None
        end = stop + len(self._bytes) - before
        lines = data[len(self._bytes) - len(self._head.lines) - 2 : end - 2]
        self._head.announce(digits, lines)
        self._bytes, self._digits = data[:end], (begin, stop)
        return end

    def whole(self, data: bytes) -> tuple[RequestHead, bytes] | None:
        """Return the head and what follows it, of data that begins with the last head, or is a head and nothing else.

        Other data gives None.
        """
        end = self._end_of_same(data) if self._head is not None else 0
        if self._head is not None and end:
            return self._head, data[end:]
        if data.find(END_OF_HEAD) != len(data) - len(END_OF_HEAD):
            return None
        try:
            return self.read(data), b""
        except UnreadableRequest:
            return None

    def forget(self) -> None:
        """Release the last head."""
        if self._head is not None:
            self._bytes, self._head = b"", None
            del self._remembering[self]

    def _remember(self) -> None:
        self._remembering[self] = None
        if len(self._remembering) > REMEMBERED_MAX:
            next(iter(self._remembering)).forget()
