"""A host that answers requests for pictures with what would harm a reader or a server, and counts the requests."""

import struct
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RUN = "window.attacked = true"
SCRIPT = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="{RUN}"><script>{RUN}</script></svg>'
PAGE = f"<!doctype html><script>{RUN}</script><img src=x onerror='{RUN}'>"
ENDLESS = 64 << 20  # more than any picture may have
TRICKLED = 300  # bytes, one every tenth of a second


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int, height: int) -> bytes:
    """A whole picture, black: some KB for any size."""
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(1 + (width + 7) // 8)) for _ in range(height)) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + head + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


class HostileHost:
    """`url`: where it is. `asked`: how often each path was asked for. `elsewhere`: where redirects lead to."""

    def __init__(self, address: str, elsewhere: str = "") -> None:
        self.asked: Counter[str] = Counter()
        self.elsewhere = elsewhere
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host.asked[self.path] += 1
                host.answer(self)

            def log_message(self, *_: object) -> None:
                """Nothing is logged."""

        self.server = ThreadingHTTPServer((address, 0), Handler)
        self.url = f"http://{address}:{self.server.server_address[1]}"

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        bodies = {
            "/script.svg": ("image/svg+xml", SCRIPT.encode()),
            "/script.png": ("image/png", SCRIPT.encode()),
            "/page.png": ("text/html", PAGE.encode()),
            "/huge.png": ("image/png", png(8_000, 8_000)),
            "/good-as-page": ("text/html", png(9, 9)),
            "/secret.png": ("image/png", png(9, 9)),
        }
        redirects = {"/private": f"{self.elsewhere}/secret.png", "/file": "file:///etc/passwd", "/loop": "/loop"}
        if to.path in redirects:
            to.send_response(302)
            to.send_header("location", redirects[to.path])
            to.end_headers()
            return
        media, body = bodies.get(to.path, ("image/png", b""))
        to.send_response(200)
        to.send_header("content-type", media)
        try:
            if to.path == "/slow.png":
                self._trickle(to)
            elif to.path == "/endless.png":
                self._flood(to)
            else:
                to.send_header("content-length", str(len(body)))
                to.end_headers()
                to.wfile.write(body)
        except OSError:  # the fetcher has had enough
            return

    @staticmethod
    def _trickle(to: BaseHTTPRequestHandler) -> None:
        body = png(9, 9)
        to.send_header("content-length", str(TRICKLED))
        to.end_headers()
        for at in range(TRICKLED):
            to.wfile.write(body[at : at + 1] or b"\0")
            to.wfile.flush()
            time.sleep(0.1)

    @staticmethod
    def _flood(to: BaseHTTPRequestHandler) -> None:
        to.end_headers()
        to.wfile.write(png(9, 9))
        for _ in range(ENDLESS >> 16):
            to.wfile.write(bytes(1 << 16))


@contextmanager
def hosting(address: str, elsewhere: str = "") -> Iterator[HostileHost]:
    host = HostileHost(address, elsewhere)
    thread = threading.Thread(target=host.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield host
    finally:
        host.server.shutdown()
        host.server.server_close()
        thread.join()
