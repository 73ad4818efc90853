"""The calls under /v1/operations of the running program: an export from its order to its download, with the process
that writes files killed in between, and what is refused."""

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.counterparts import npm_project, program
from tests.exports.scene import Scene, most_active, rows_in
from tests.forked import run_program
from tests.server import Reply, Server, launch, serving
from tests.waiting import LIMIT_S, until
from tests.webhooks.scene import ID, blocks

from icefall.exports.model import PRIMARY

SDK = Path(__file__).parents[1] / "e2e" / "avacloud"
UNKNOWN = "11111111-2222-4333-8444-555555555555"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    scene = Scene(folder / "data")
    asyncio.run(scene.put(blocks()))
    scene.close()
    (folder / "icefall.toml").write_text(f'[[chain]]\nid = "{ID}"\nrpc = "http://127.0.0.1:1"\n')
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with serving("data", folder, f"--config-file={folder / 'icefall.toml'}") as server:
        yield server


@pytest.fixture(scope="module")
def key(server: Server) -> dict[str, str]:
    done = run_program("keys", "add", "--name=alice", f"--data-dir={server.data_dir}")
    return {"x-service-api-key": done.stdout.split()[0]}


def has_id(lock: Path) -> bool:
    return lock.exists() and bool(lock.read_bytes())


def ask(server: Server, verb: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
    sent = b"" if body is None else json.dumps(body).encode()
    return server.ask(verb, f"/v1/operations/{path}", sent, headers, "data")


def wanted(count: int = 1, **fields: Any) -> dict[str, Any]:
    addresses = [f"0x{one.hex()}" for one in most_active(count)]
    options = {"addresses": addresses, "includeChains": [ID]}
    return {"type": "TRANSACTION_EXPORT_EVM", "options": options} | fields


def order(server: Server, headers: Mapping[str, str] | None = None, **fields: Any) -> Any:
    reply = ask(server, "POST", "transactions:export", wanted(**fields), headers)
    assert reply.status == 201, reply
    return reply.json()


def test_an_export_is_ordered_written_and_downloaded(server: Server, folder: Path, key: dict[str, str]) -> None:
    made = order(server, key)
    assert made["operationStatus"] == "RUNNING"
    assert made["metadata"] == {"progress": 0, "rows": 0}
    assert order(server, key)["operationId"] == made["operationId"]  # the same request is the same operation
    settings = (f"--config-file={folder / 'icefall.toml'}", "--export-rows-max=100000")
    killed = launch("exports", folder, *settings)
    lock = server.data_dir / "exports" / "lock"
    until(lambda: has_id(lock), "the lock of the folder")
    killed.process.kill()
    killed.process.wait()
    with serving("exports", folder, *settings, started=False):

        def now() -> Any:
            return ask(server, "GET", made["operationId"], headers=key).json()

        until(lambda: now()["operationStatus"] != "RUNNING", "the end of the export")
        done = now()
    assert done["operationStatus"] == "COMPLETED", done
    assert done["metadata"]["progress"] == 100
    assert done["metadata"]["rows"] > 0
    assert time.time() < done["metadata"]["expiresAt"] <= time.time() + 86_400
    base, _, path = done["metadata"]["downloadUrl"].partition("/v1/operations/")
    assert base == server.url("data")
    reply = ask(server, "GET", path)  # as a browser: without a key
    assert reply.status == 200
    assert reply.header("content-type") == "application/zip"
    assert reply.header("content-disposition") == "attachment"
    assert sum(map(len, rows_in(reply.body).values())) == done["metadata"]["rows"]
    assert int(reply.header("content-length") or 0) == len(reply.body)
    rest = ask(server, "GET", path, headers={"range": "bytes=100-", "if-range": reply.header("etag") or ""})
    assert (rest.status, rest.body) == (206, reply.body[100:])  # an interrupted download is continued
    name, _, query = path.partition("?")
    forged = query.replace("expires=", "expires=9")
    assert ask(server, "GET", f"{name}?{forged}").status == 403
    assert ask(server, "GET", f"{UNKNOWN}/files/{name.rpartition('/')[2]}?{query}").status == 403
    removed = ask(server, "DELETE", made["operationId"], headers=key).json()
    assert "downloadUrl" not in removed["metadata"]
    assert ask(server, "GET", path).status == 404


def test_operations_belong_to_their_owner_and_can_be_cancelled(server: Server, key: dict[str, str]) -> None:
    made = order(server, key, count=2)
    for verb in ("GET", "DELETE"):
        assert ask(server, verb, made["operationId"]).status == 404
        assert ask(server, verb, UNKNOWN, headers=key).status == 404
    ended = ask(server, "DELETE", made["operationId"], headers=key).json()
    assert (ended["operationStatus"], ended["message"]) == ("FAILED", "it was cancelled")
    assert order(server, key, count=2)["operationId"] != made["operationId"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"type": PRIMARY, "options": {"includeChains": ["p-chain"], "cChainEvmAddresses": ["0x"]}}, "cChainEvmAddr"),
        ({"type": "NONSENSE"}, "the body is invalid"),
        ({"firstDate": "2024-02-30"}, "firstDate must be a day"),
        ({"firstDate": "2024-02-02", "lastDate": "2024-02-01"}, "must not be after"),
        ({"startDate": "2024-02-02", "endDate": "2024-02-01"}, "must not be after"),
        ({"options": {"addresses": ["0x12"], "includeChains": [ID]}}, "0x and 40 hex digits"),
        ({"options": {"addresses": [], "includeChains": [ID]}}, "options.addresses is missing"),
        ({"options": {"tokens": ["0x12"], "includeChains": [ID]}}, "options.tokens must be addresses"),
        ({"options": {"addresses": ["0x" + "1" * 40], "includeChains": []}}, "the body is invalid"),
    ],
)
def test_bodies_that_make_no_sense_are_refused(server: Server, fields: dict[str, Any], words: str) -> None:
    reply = ask(server, "POST", "transactions:export", wanted(**fields))
    assert (reply.status, words in reply.json()["message"]) == (400, True), reply


def test_a_chain_that_is_not_here_is_not_found(server: Server) -> None:
    body = wanted(options={"addresses": ["0x" + "1" * 40], "includeChains": ["99"]})
    assert ask(server, "POST", "transactions:export", body).status == 404
    of_network = wanted(type=PRIMARY, options={"cChainEvmAddresses": ["0x" + "1" * 40], "includeChains": ["p-chain"]})
    reply = ask(server, "POST", "transactions:export", of_network)
    assert (reply.status, "no" in reply.json()["message"]) == (404, True), reply


def test_two_processes_do_not_write_into_one_folder(folder: Path, server: Server) -> None:
    settings = (f"--config-file={folder / 'icefall.toml'}", f"--export-dir={folder / 'alone'}")
    with serving("exports", folder, *settings, started=False):
        until(lambda: has_id(folder / "alone" / "lock"), "the lock of the folder")
        done = run_program("exports", f"--data-dir={server.data_dir}", *settings)
        assert done.returncode == 1
        assert "another process writes exports" in done.stderr


def test_the_real_client_takes_the_answers(server: Server) -> None:
    """The SDK of the hosted service orders an export and asks for it; it checks every answer against its schemas."""
    project = npm_project(SDK)
    made = order(server, count=3)

    def called(method: str, request: Any) -> Any:
        command = [program("node"), str(project / "drive.js"), server.url("data"), json.dumps([(method, request)])]
        done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=True)
        [answer] = json.loads(done.stdout)
        assert "error" not in answer, answer
        return answer["pages"][0]

    sent = called("data.operations.exportTransactions", wanted(3))
    assert (sent["operationId"], sent["operationStatus"]) == (made["operationId"], "RUNNING")
    assert called("data.operations.getResult", {"operationId": made["operationId"]}) == sent
