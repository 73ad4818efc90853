"""Health tells the truth: about a wrong chain at once, and with a status code for who asks for one."""

import socket
import struct
from pathlib import Path

from tests.e2e.test_indexing import config_for, index
from tests.server import Server, serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until

NO_CHECKS = "--health-check-frequency=1h"  # after the first, within the time of a test
WITH_RESET = struct.pack("ii", 1, 0)


def test_a_wrong_chain_is_reported_at_once_and_strictly_as_503(tmp_path: Path) -> None:
    with in_thread(EvmReplay("geth-1")) as geth:
        config = config_for(tmp_path, geth)
        config.write_text(config.read_text().replace(f'"{geth.chain_id}"', '"99"'))
        with serving("up", tmp_path, f"--config-file={config}", NO_CHECKS) as server:
            wrong = f"serves chain {geth.chain_id}, not 99"
            until(lambda: wrong in server.ask("GET", "/ext/health").body.decode(), "the wrong chain in health")
            loose = server.ask("GET", "/v1/health-check", listener="data")
            strict = server.ask("GET", "/v1/health-check?strict=true", listener="data")
            assert (loose.status, strict.status) == (200, 503)
            assert wrong in strict.json()["error"]["chain-99"]["message"]
            assert strict.json()["status"] == loose.json()["status"] == "error"
            assert strict.json()["details"]["store"] == {"status": "up"}


def test_a_node_is_healthy_though_a_listed_chain_is_not_indexed(tmp_path: Path) -> None:
    """The check of a chain fails only where it is indexed, or has been."""
    with in_thread(EvmReplay("geth-1")) as geth:
        config = config_for(tmp_path, geth)
        with serving("node", tmp_path, f"--config-file={config}", "--health-check-frequency=100ms") as server:
            health = server.ask("GET", "/ext/health")
            check = health.json()["checks"][f"chain-{geth.chain_id}"]
            assert (health.status, check["message"], "error" in check) == (200, {"indexed": False}, False)
            assert index(server.data_dir, config, "--to=3").returncode == 0

            def is_checked() -> bool:
                check = server.ask("GET", "/ext/health").json()["checks"][f"chain-{geth.chain_id}"]
                # No message while its store is there and its first status is not.
                return bool(check.get("message", {}).get("lastIndexedBlock") == 3)

            until(is_checked, "the check of the chain that is indexed now")


def test_strict_is_200_when_all_is_well(tmp_path: Path) -> None:
    with serving("data", tmp_path) as server:
        for query in ("", "?strict=true", "?strict=false"):
            assert server.ask("GET", f"/v1/health-check{query}", listener="data").status == 200
        assert server.ask("GET", "/v1/health-check?strict=maybe", listener="data").status == 400


def break_off(server: Server, sent: bytes) -> None:
    with socket.create_connection(server.wire().address) as connection:
        connection.sendall(sent)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, WITH_RESET)


def test_requests_that_clients_break_off_are_not_in_the_log(tmp_path: Path) -> None:
    head = b"POST /ext/info HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with serving("node", tmp_path) as server:
        until(lambda: "is up: " in server.output(), "the start text")
        before = server.output()
        for _ in range(10):
            break_off(server, head + b"Content-Length: 100\r\n\r\n{")
            break_off(server, head + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n')
            break_off(server, b"GET /docs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20)
        for _ in range(20):
            assert server.ask("GET", "/ext/health/liveness").status == 200
        assert server.output() == before
