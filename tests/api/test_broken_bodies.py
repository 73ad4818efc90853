"""A request body that breaks off is never executed, however much of it has arrived."""

import json
import socket
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse

import pytest
from tests.server import Server, serving
from tests.waiting import LIMIT_S


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving("node", tmp_path_factory.mktemp("broken"), "--api-admin-enabled=true") as server:
        yield server


def status_of(node: Server, raw: bytes) -> int:
    """The status of the answer to bytes after which the sending side is closed; 0 when there is none."""
    with node.wire() as wire, socket.create_connection(wire.address, timeout=LIMIT_S) as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        response = HTTPResponse(connection, method="POST")
        try:
            response.begin()
            return response.status
        except (OSError, HTTPException):
            return 0
        finally:
            response.close()


def alias_call(alias: str) -> bytes:
    params = {"endpoint": "info", "alias": alias}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "admin.alias", "params": params}).encode()


HEAD = b"POST /ext/admin HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def is_alias(node: Server, alias: str) -> bool:
    return node.ask("POST", f"/ext/{alias}", b"{}").status == 200


def bodies(call: bytes) -> dict[str, bytes]:
    chunked, padded = HEAD + b"Transfer-Encoding: chunked\r\n\r\n", call + b" " * 100
    return {
        "no last chunk": chunked + chunk(call),
        "in the middle of a chunk": chunked + chunk(call) + b"64\r\n  ",
        "in a chunk's length": chunked + chunk(call) + b"1",
        "not a length": chunked + chunk(call) + b"zz\r\n",
        "in the last line": chunked + chunk(call) + b"0\r\n",
        "many chunks": chunked + b"".join(chunk(call[at : at + 5]) for at in range(0, len(call), 5)),
        "shorter than its length": HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(padded), padded[:-50]),
    }


@pytest.mark.parametrize("how", list(bodies(b"")))
def test_a_body_that_breaks_off_is_not_executed(how: str, node: Server) -> None:
    alias = how.replace(" ", "-").replace("'", "")
    assert status_of(node, bodies(alias_call(alias))[how]) == 400
    assert not is_alias(node, alias)


def test_a_whole_body_in_chunks_is_executed(node: Server) -> None:
    headers = {"Host": "localhost", "Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    with node.wire() as wire:
        reply = wire.send("POST", "/ext/admin", headers, chunk(alias_call("whole")) + b"0\r\n\r\n")
    assert reply.status == 200
    assert is_alias(node, "whole")
