"""A receiver of messages on this machine, for tests of the running program."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Receiver(ThreadingHTTPServer):
    """Notes what it gets, and refuses the next `refusals` of them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.refusals = 0
        self.refusal = 410  # the status of a refusal

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"

    def ids(self) -> list[str]:
        return [json.loads(body)["messageId"] for _, body in self.got]


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        is_refused = self.server.refusals > 0
        self.server.refusals -= is_refused
        self.send_response(self.server.refusal if is_refused else 204)
        self.end_headers()
        self.server.got.append(({name.lower(): value for name, value in self.headers.items()}, body))

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver in a thread of its own."""
    with Receiver() as made:
        Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()
