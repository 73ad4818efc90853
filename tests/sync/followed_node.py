"""A node that has followed scenario-1, asked in process."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.sync.history import followed

from icefall.api.http.asgi import AsgiApp
from icefall.compose.worker import build_app
from icefall.config.settings import Config
from icefall.node.identity import ensure_identity

X, X_TX, X_VTX = "/ext/bc/X", "/ext/index/X/tx", "/ext/index/X/vtx"


class Answer(NamedTuple):
    """`result` is missing when there is an error."""

    value: dict[str, Any]
    headers: dict[str, str]

    @property
    def result(self) -> Any:
        return self.value["result"]

    @property
    def failed(self) -> str:
        """The error's message."""
        assert "result" not in self.value
        assert isinstance(self.value["error"]["code"], int)
        return str(self.value["error"]["message"])


class Node:
    """The followed store, queried in process."""

    def __init__(self, config: Config) -> None:
        self.config = config
        ensure_identity(Path(config.data_dir) / "staking")  # as the engine does
        self._app = AsgiApp(build_app("node", config, with_engine=True))

    def ask(self, path: str, method: str, **params: Any) -> Answer:
        return asyncio.run(self.asked(path, method, **params))

    async def asked(self, path: str, method: str, **params: Any) -> Answer:
        call = {"jsonrpc": "2.0", "id": 7, "method": method} | ({"params": params} if params else {})
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": json.dumps(call).encode()}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1:9650"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
        await self._app(scope, receive, send)
        start, body = sent
        assert start["status"] == 200, body
        value = json.loads(body["body"])
        assert set(value) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
        assert (value["jsonrpc"], value["id"]) == ("2.0", 7)
        return Answer(value, {name.decode(): text.decode() for name, text in start["headers"]})

    def walk(self, path: str, step: int = 100) -> Iterator[dict[str, Any]]:
        """A whole index, in ranges."""
        last = int(self.ask(path, "index.getLastAccepted", encoding="hex").result["index"])
        for start in range(0, last + 1, step):
            answer = self.ask(path, "index.getContainerRange", startIndex=start, numToFetch=step, encoding="hex")
            assert isinstance(answer.result, list)
            yield from answer.result


class Followed(NamedTuple):
    node: Node
    began: float
    ended: float


def node_after_following(folder: Path) -> Followed:
    began = time.time()
    config = asyncio.run(followed(folder))
    return Followed(Node(msgspec.structs.replace(config, dialect="interface")), began, time.time())
