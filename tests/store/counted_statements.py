"""The apps of all listeners in this process, on the demo's stores of one engine, with their queries counted."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from icefall.api.describing.examples import example_call
from icefall.api.http.answer_cache import AnswerCache, CacheKey
from icefall.api.http.app import App
from icefall.api.http.row import DATA, METRICS, NODE, Rest, Rpc, example_path
from icefall.compose.node_app import node_app
from icefall.compose.rest_apps import data_app, metrics_app
from icefall.compose.shared_chains import with_stored_chains
from icefall.compose.stores import Stores
from icefall.config.load import load
from icefall.db.postgres_pool import AsyncSessions, BlockingSessions
from icefall.db.postgres_version import VersionSession
from icefall.db.sqlite import SqliteReader
from icefall.node.health.runner import Freshness

HOST = "127.0.0.1"


class LocalRequest:
    def __init__(self, method: str, target: str, body: bytes = b"") -> None:
        self.method = method
        self.host = HOST
        self.peer = HOST
        self.path, _, self.query = target.partition("?")
        self._body = body

    def header(self, name: str) -> str | None:
        return {"content-type": "application/json"}.get(name) if self._body else None

    def headers(self, _: str) -> list[str]:
        return []

    async def body(self, _: int) -> bytes:
        return self._body

    def body_now(self, _: int) -> bytes:
        return self._body


class NothingCached(AnswerCache):
    def _is_repeated(self, key: CacheKey) -> bool:
        return False


_RELEASE_CHECKS = ("user_version", "schema_version")


class StatementCount:
    """Of all engines: what a reader sends to SQLite or to a server, but for the check of the release that wrote the
    store, once a second."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.total = 0
        for owner, name in (
            (SqliteReader, "read"),
            (AsyncSessions, "query"),
            (BlockingSessions, "query"),
            (VersionSession, "send"),
        ):
            patch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            self.total += not any(check in str(arg) for arg in args for check in _RELEASE_CHECKS)
            return method(*args)

        return counted


class CountedApps:
    """Each request is made three times and the last one counted: the first may open stores, and the second keeps what
    was read from an open store. So the number does not depend on the requests before it."""

    def __init__(self, apps: dict[str, App], count: StatementCount, run: Callable[[Awaitable[Any]], Any]) -> None:
        self._apps = apps
        self._count = count
        self._run = run

    def statements(self, listener: str, row: Rest | Rpc) -> tuple[int, int, bytes]:
        """How many statements the example of a row takes; the status and the beginning of the answer."""
        return self._run(self._statements(listener, row))  # type: ignore[no-any-return]

    async def _statements(self, listener: str, row: Rest | Rpc) -> tuple[int, int, bytes]:
        for _ in range(2):
            await self._answer(listener, row)
        before = self._count.total
        status, body = await self._answer(listener, row)
        return self._count.total - before, status, body

    async def _answer(self, listener: str, row: Rest | Rpc) -> tuple[int, bytes]:
        if isinstance(row, Rpc):
            request = LocalRequest("POST", row.path, json.dumps(example_call(row)).encode())
        else:
            example = {**row.body_example, "url": "https://10.0.0.1/"} if row.body is not None else None
            body = b"" if example is None else json.dumps(example).encode()
            request = LocalRequest(row.verb.replace("*", "GET"), example_path(row), body)
        response = await self._apps[listener].respond(request)
        body = response.body if isinstance(response.body, bytes) else await _first_block(response.body)
        return response.status, body


async def _first_block(pieces: AsyncGenerator[bytes, None]) -> bytes:
    """Of a stream: up to the position behind the first blocks."""
    text = b""
    async with aclosing(pieces):
        async for piece in pieces:
            text += piece
            if piece.startswith(b"id:"):
                break
    return text


@contextmanager
def counted_apps(data_dir: Path, stores: Stores) -> Iterator[CountedApps]:
    """`stores` are a copy that nothing changes. Calls to the engine go to the program that runs on `data_dir`."""
    store = [f"--store={stores.url}"] if stores.url else []
    config = load("up", [f"--data-dir={data_dir}", "--api-admin-enabled=true", *store], {}, data_dir).config
    config = msgspec.structs.replace(with_stored_chains(config, stores), http_host=HOST)
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        for module in ("node_app", "rest_apps"):  # theirs would stay open
            patch.setattr(f"icefall.compose.{module}.stores_of", lambda _: stores)
        patch.setattr(Freshness, "stale_result", lambda *_: None)  # the copy gets older while tests run
        patch.setattr("icefall.api.http.app.AnswerCache", NothingCached)  # statements are to be counted
        # A worker looks for the store of a node, and at what its chains are linked by, every few seconds.
        patch.setattr("icefall.compose.stored_platform._LOOK_EVERY_S", float("inf"))
        patch.setattr("icefall.evm.reading.directory.LINK_CHECK_S", float("inf"))
        apps = {
            NODE: node_app(config),
            DATA: data_app(config, with_engine=True),
            METRICS: metrics_app(config, with_engine=True),
        }
        try:
            yield CountedApps(apps, StatementCount(patch), runner.run)  # type: ignore[arg-type]
        finally:
            for app in apps.values():
                runner.run(app.close())
            stores.close()
