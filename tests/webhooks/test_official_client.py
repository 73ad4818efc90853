"""The official client of the hosted service takes what a receiver got: its own check of signatures, and its types."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.counterparts import npm_project, program
from tests.waiting import LIMIT_S
from tests.webhooks.scene import Scene, blocks, busiest, receiver_access, transactions_of

CLIENT = Path(__file__).parent.parent / "e2e" / "avacloud"


class Receiver(ThreadingHTTPServer):
    """Takes every message, and notes it as the client is given it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[dict[str, str]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.got.append({"body": body, "signature": self.headers["x-signature"]})
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def verified(folder: Path, secret: bytes, messages: list[dict[str, str]]) -> list[dict[str, Any]]:
    """What the client says of messages."""
    project, out = npm_project(CLIENT), folder / "verified.json"
    subprocess.run(
        [program("node"), "verify.js", str(out)],
        input=json.dumps({"secret": secret.hex(), "messages": messages}),
        cwd=project,
        text=True,
        capture_output=True,
        check=True,
        timeout=LIMIT_S,
    )
    return list(json.loads(out.read_text()))


def test_the_client_takes_every_message_that_a_receiver_got(tmp_path: Path, receiver: Receiver) -> None:
    scene = Scene(tmp_path / "data")

    async def run() -> bytes:
        url = f"http://127.0.0.1:{receiver.server_port}/"
        await scene.webhook(busiest(), url=url, include_logs=1, include_internal_txs=1)
        await scene.put(blocks())
        await scene.delivery(receiver_access().send).drain()
        return (await scene.secrets.valid(""))[0]

    try:
        secret = asyncio.run(run())
    finally:
        scene.close()
    assert len(receiver.got) == len(transactions_of(busiest()))
    changed = {**receiver.got[0], "body": receiver.got[0]["body"].replace('"blockNumber":"', '"blockNumber":"9')}
    *found, forged = verified(tmp_path, secret, [*receiver.got, changed])
    assert [one for one in found if not one["isValid"] or one["error"]] == []
    assert [one["messageId"] for one in found] == [json.loads(one["body"])["messageId"] for one in receiver.got]
    assert any("logs" in json.loads(one["body"])["event"] for one in receiver.got)
    assert forged["isValid"] is False
