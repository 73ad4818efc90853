"""A reverse proxy as people put one in front: it serves another server below a path, and nothing else."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@contextmanager
def behind_prefix(target_url: str, prefix: str) -> Iterator[str]:
    """The address of the proxied server, without a slash at its end."""
    target = urlsplit(target_url)

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith(prefix):
                self.send_error(404)
                return
            connection = HTTPConnection(target.hostname or "", target.port)
            connection.request("GET", f"/{self.path.removeprefix(prefix)}", headers=dict(self.headers))
            reply = connection.getresponse()
            body = reply.read()
            self.send_response(reply.status)
            for name, value in reply.getheaders():
                if name not in ("content-length", "date", "server"):
                    self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            connection.close()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{prefix.rstrip('/')}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
