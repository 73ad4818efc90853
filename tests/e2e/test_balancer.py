"""deploy/container/nginx.conf in front of two readers that answer 503 for one path."""

import http.server
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from tests.counterparts import program
from tests.ports import hold_port, port_of
from tests.tidy.source import ROOT
from tests.waiting import until


class _Reader(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503 if self.path == "/unavailable" else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Not on the terminal."""


@contextmanager
def _reader() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Reader) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def _status(url: str) -> int:
    try:
        with urlopen(url, timeout=10) as answer:
            return int(answer.status)
    except HTTPError as error:
        error.close()
        return error.code
    except URLError:  # it does not listen yet
        return 0


def test_what_is_unavailable_takes_no_reader_out_of_service(tmp_path: Path) -> None:
    nginx = program("nginx")
    with ExitStack() as stack:
        ports = {f"reader-{number}:9652": f"127.0.0.1:{stack.enter_context(_reader())}" for number in (1, 2)}
        held = stack.enter_context(hold_port())
        text = (ROOT / "deploy" / "container" / "nginx.conf").read_text()
        text = re.sub(r"reader-\d:9652", lambda found: ports[found[0]], text)
        text = text.replace("listen 8080", f"listen 127.0.0.1:{port_of(held)}")
        text = text.replace("http {", f"http {{ access_log off; proxy_temp_path {tmp_path}/proxy;", 1)
        (tmp_path / "nginx.conf").write_text(f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/log;\n{text}")
        process = subprocess.Popen([nginx, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
        stack.callback(process.wait)
        stack.callback(process.terminate)
        url = f"http://127.0.0.1:{port_of(held)}"
        until(lambda: _status(f"{url}/blocks") == 200, "the balancer answers")
        assert [_status(f"{url}/unavailable") for _ in range(6)] == [503] * 6
        assert [_status(f"{url}/blocks") for _ in range(6)] == [200] * 6
