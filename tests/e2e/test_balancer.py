"""deploy/container/nginx.conf in front of two readers that answer 503 for one path, of metrics and of a node."""

import http.server
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from email.message import Message
from functools import partial
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
from tests.counterparts import program
from tests.ports import hold_port, port_of
from tests.tidy.source import ROOT
from tests.waiting import until


class _Reader(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503 if self.path == "/unavailable" else 200)
        self.send_header("content-length", "0")
        self.send_header("x-port", str(self.connection.getsockname()[1]))
        self.send_header("x-forwarded-for", self.headers.get("x-forwarded-for", ""))
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


def _answer(url: str) -> tuple[int, Message]:
    """Status and headers; status 0 while it does not listen yet."""
    try:
        with urlopen(url, timeout=10) as answer:
            return int(answer.status), answer.headers
    except HTTPError as error:
        error.close()
        return error.code, error.headers
    except URLError:
        return 0, Message()


def _status(url: str) -> int:
    return _answer(url)[0]


LISTENS = {"data": 8080, "metrics": 8081, "node": 8082}
SERVERS = {"reader-1:9652": "data", "reader-2:9652": "data", "metrics:9653": "metrics", "node:9650": "node"}


class Balanced(NamedTuple):
    """`urls`: where the balancer listens, by listener. `ports`: those of the servers behind it."""

    urls: dict[str, str]
    ports: dict[str, set[str]]


@pytest.fixture(scope="module")
def balanced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Balanced]:
    nginx, folder = program("nginx"), tmp_path_factory.mktemp("balancer")
    with ExitStack() as stack:
        text = (ROOT / "deploy" / "container" / "nginx.conf").read_text()
        ports: dict[str, set[str]] = {}
        for name, listener in SERVERS.items():
            port = stack.enter_context(_reader())
            ports.setdefault(listener, set()).add(str(port))
            assert f"server {name} " in text
            text = text.replace(f"server {name} ", f"server 127.0.0.1:{port} ")
        urls = {}
        for listener, listens in LISTENS.items():
            held = port_of(stack.enter_context(hold_port()))
            urls[listener] = f"http://127.0.0.1:{held}"
            text = text.replace(f"listen {listens};", f"listen 127.0.0.1:{held};")
        text = text.replace("http {", f"http {{ access_log off; proxy_temp_path {folder}/proxy;", 1)
        (folder / "nginx.conf").write_text(f"daemon off; pid {folder}/pid; error_log {folder}/log;\n{text}")
        process = subprocess.Popen([nginx, "-p", str(folder), "-c", str(folder / "nginx.conf")])
        stack.callback(process.wait)
        stack.callback(process.terminate)
        for url in urls.values():
            until(partial(_answers, f"{url}/blocks"), "the balancer answers")
        yield Balanced(urls, ports)


def _answers(url: str) -> bool:
    return _status(url) == 200


def test_what_is_unavailable_takes_no_reader_out_of_service(balanced: Balanced) -> None:
    url = balanced.urls["data"]
    assert [_status(f"{url}/unavailable") for _ in range(6)] == [503] * 6
    assert [_status(f"{url}/blocks") for _ in range(6)] == [200] * 6


@pytest.mark.parametrize("listener", LISTENS)
def test_each_port_leads_to_its_listener(listener: str, balanced: Balanced) -> None:
    answers = [_answer(f"{balanced.urls[listener]}/v1/blocks")[1] for _ in range(8)]
    assert {headers["x-port"] for headers in answers} == balanced.ports[listener]
    assert {headers["x-forwarded-for"] for headers in answers} == {"127.0.0.1"}
    assert _status(f"{balanced.urls[listener]}/ext/metrics") == 404


def test_admin_is_not_served_through_the_balancer(balanced: Balanced) -> None:
    assert _status(f"{balanced.urls['node']}/ext/info") == 200
    assert _status(f"{balanced.urls['node']}/ext/admin") == 404
