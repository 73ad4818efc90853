"""Usage on its way from a worker to the store: counted once, whatever fails on the way, and nothing lost at a stop."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.forked import run_program
from tests.server import serving
from tests.waiting import LIMIT_S

from icefall.access import budget_server, usage_store
from icefall.access.budget_server import OwnedUsage, budget_socket, serve_budgets
from icefall.access.budgets import Budgets
from icefall.access.usage import AnsweredRequest
from icefall.access.usage_store import UsageRecorder, UsageStore
from icefall.compose.stores import Stores
from icefall.db.engine import Store, Transaction
from icefall.errors import Unavailable
from icefall.ipc.socket import SocketClient

T = TypeVar("T")
REQUEST = AnsweredRequest(time.time(), "wallet", "/v1/chains", "/v1/chains", "", 200, 1, 1.0, "::1", "", "")


def stored_calls(data_dir: Path) -> tuple[int, int]:
    """Requests counted, and requests logged."""
    with closing(sqlite3.connect(data_dir / "access.sqlite")) as connection:
        ((calls, logged),) = connection.execute(
            "select (select coalesce(sum(calls), 0) from usage_day), (select count(*) from request_log)"
        )
    return calls, logged


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    (tmp_path / "run").mkdir()
    stores = Stores(tmp_path)
    stores.access_writer().ensure()
    return stores


def test_a_batch_whose_answer_was_lost_is_counted_once(stores: Stores, tmp_path: Path) -> None:
    asyncio.run(_lose_answers(stores))
    assert stored_calls(tmp_path) == (2, 2)


async def _lose_answers(stores: Stores) -> None:
    store = UsageStore(stores.access_store())
    owned = OwnedUsage(Budgets(), store)
    lost = [True, True, False, True, False]

    async def call(command: str, **params: Any) -> None:
        assert command == "record"
        owned.record(**params)
        if lost.pop(0):
            raise Unavailable("the owner of the budgets did not answer in time")

    recorder = UsageRecorder(call)
    recorder.note(REQUEST)
    await recorder.flush()
    recorder.note(REQUEST)
    await recorder.flush()
    await recorder.flush()  # the first is taken, the second lost
    await recorder.flush()
    await owned.save()
    assert not lost
    store.close()


def test_what_was_not_taken_is_sent_again_without_another_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_store, "FLUSH_S", 0.01)
    asyncio.run(_fail_twice())


async def _fail_twice() -> None:
    taken = asyncio.Event()
    failing = [True, True, False]

    async def call(_: str, **params: Any) -> None:
        if failing.pop(0):
            raise Unavailable("the owner of the budgets cannot be reached")
        taken.set()

    recorder = UsageRecorder(call)
    recorder.note(REQUEST)
    await asyncio.wait_for(taken.wait(), LIMIT_S)


class SlowStore:
    """A store whose thread needs its time."""

    def __init__(self, store: Store, writing: asyncio.Event) -> None:
        self._store = store
        self._writing = writing

    async def write(self, change: Callable[[Transaction], T]) -> T:
        loop = asyncio.get_running_loop()

        def slow(tx: Transaction) -> T:
            loop.call_soon_threadsafe(self._writing.set)
            time.sleep(0.2)
            return change(tx)

        return await self._store.write(slow)

    def close(self) -> None:
        self._store.close()


def test_a_stop_while_usage_is_stored_counts_it_once(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_server, "_SAVE_S", 0.01)
    asyncio.run(_stop_while_storing(stores, tmp_path))
    assert stored_calls(tmp_path) == (1, 1)


async def _stop_while_storing(stores: Stores, data_dir: Path) -> None:
    writing = asyncio.Event()

    def opened() -> Any:
        return SlowStore(stores.access_store(), writing)

    owning = asyncio.create_task(serve_budgets(data_dir, opened, drops_old=False))
    while not budget_socket(data_dir).exists():
        await asyncio.sleep(0.01)
    client = SocketClient(budget_socket(data_dir), "the owner of the budgets")
    recorder = UsageRecorder(client.call)
    recorder.note(REQUEST)
    writing.clear()
    await recorder.flush()
    await writing.wait()
    owning.cancel()
    await asyncio.wait({owning})
    await client.close()


@pytest.mark.parametrize("verb", ["up", "data"])
def test_usage_of_the_last_second_is_stored_at_a_stop(verb: str, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    key = run_program("keys", "add", "--name=k", f"--data-dir={data_dir}").stdout.split()[0]
    with serving(verb, tmp_path, "--http-workers=2") as server:
        for _ in range(10):
            assert server.ask("GET", "/v1/chains", headers={"x-service-api-key": key}, listener="data").status == 200
    assert stored_calls(data_dir) == (10, 10)


def test_without_an_engine_too_it_goes_on_serving_after_the_stop_signal(tmp_path: Path) -> None:
    with serving("data", tmp_path, "--http-shutdown-wait=1s") as server:
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began >= 1
