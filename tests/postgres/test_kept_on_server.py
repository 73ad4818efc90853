"""Answers from a server are given again only while its writer has committed nothing, and within their second."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.api.cache_scene import SetClock, StateOfNow, set_clock
from tests.api.data_scene import InProcess
from tests.api.made_chain import ANN, BEN, CHAIN, EVE, ID, ZERO_ADDRESS, erc20, of
from tests.postgres.citus import citus_nodes
from tests.postgres.server import new_prefix, server_url
from tests.waiting import LIMIT_S

from icefall.compose.stores import Stores
from icefall.db.engine import StoreBusy
from icefall.db.postgres_pool import AsyncSessions
from icefall.db.postgres_version import VersionSession
from icefall.evm.deriving.packing import packed
from icefall.evm.model import BlockRows
from icefall.evm.packed import ResolvedBlock
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter

PAGE = of(ANN, "/transactions:listErc20")
LAST = of(ANN, "/transactions:listErc20?pageSize=100")  # without a page token
FIRST_BLOCKS = [erc20(0, ZERO_ADDRESS, ANN, 100), *[erc20(number, ANN, BEN, 1) for number in range(1, 13)]]


class Scene:
    """A chain on the server with its only writer, and the app of a worker."""

    def __init__(self, stores: Stores, app: InProcess, statements: list[str]) -> None:
        self.app = app
        self.statements = statements  # `read` or `check`, as they were sent
        self._stores = stores
        self._store = self._opened()

    def _opened(self) -> ChainStore:
        return ChainStore(self._stores.chain_store(ID), [RollupWriter(lambda: 0.0)])

    async def commit(self, *blocks: BlockRows) -> None:
        await self._store.commit([ResolvedBlock(packed(rows), (), ()) for rows in blocks])

    def put(self, *blocks: BlockRows) -> None:
        self.app.run(self.commit(*blocks))

    def roll_back(self, ancestor: int) -> None:
        self.app.run(self._store.roll_back(ancestor))

    def newest(self, page: str = PAGE) -> int:
        return newest_of(self.app.result(page))

    def sent(self, page: str = PAGE) -> list[str]:
        """What is sent to the server for one request."""
        before = len(self.statements)
        assert self.app.get(page).status == 200
        return self.statements[before:]

    def begin_anew(self, *blocks: BlockRows) -> None:
        """The chain is forgotten, and indexed again."""
        self._store.close()
        self.on_server("drop schema {schema} cascade")
        self._store = self._opened()
        self.put(*blocks)

    def on_server(self, statement: str) -> None:
        with psycopg.connect(self._stores.url, autocommit=True) as session:
            session.execute(statement.format(schema=self._stores._schema(f"chain_{ID}")))

    def close(self) -> None:
        self._store.close()


def newest_of(page: Any) -> int:
    return int(page["transactions"][0]["blockNumber"])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    return set_clock(monkeypatch)


@pytest.fixture
def state() -> StateOfNow:
    return StateOfNow()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    for owner, name, what in ((AsyncSessions, "query", "read"), (VersionSession, "send", "check")):
        monkeypatch.setattr(owner, name, noted(getattr(owner, name), made, what))
    return made


@pytest.fixture
def scene(tmp_path: Path, clock: SetClock, state: StateOfNow, statements: list[str]) -> Iterator[Scene]:
    with opened(tmp_path, statements, state, server_url(), server_url()) as made:
        yield made


@contextmanager
def opened(folder: Path, statements: list[str], state: StateOfNow, written_at: str, read_at: str) -> Iterator[Scene]:
    (folder / "data").mkdir()
    prefix = new_prefix()
    with (
        closing(Stores(folder / "data", written_at, prefix)) as stores,
        closing(Stores(folder / "data", read_at, prefix)) as read,
        InProcess(folder, {CHAIN: ""}, state=state, stores=read) as app,
        closing(Scene(stores, app, statements)) as made,
    ):
        made.put(*FIRST_BLOCKS)
        assert app.get(of(BEN, "/transactions")).status == 200  # opens the store
        yield made


def noted(method: Any, statements: list[str], what: str) -> Any:
    def run(*args: Any) -> Any:
        statements.append(what)
        return method(*args)

    return run


def test_a_kept_answer_takes_one_statement(scene: Scene) -> None:
    first = scene.sent()
    assert set(first) == {"read"}
    assert scene.sent() == ["check", *first]
    assert scene.sent() == ["check"]
    assert scene.app.get(PAGE).body == scene.app.get(PAGE).body


def test_it_is_made_again_after_every_commit(scene: Scene) -> None:
    for number in range(13, 16):
        for _ in range(3):
            assert scene.newest() == number - 1
        scene.put(erc20(number, BEN, ANN, 1))
    assert scene.newest() == 15
    scene.roll_back(11)
    assert [scene.newest() for _ in range(3)] == [11, 11, 11]
    scene.put(erc20(12, BEN, ANN, 1))
    assert scene.newest() == 12


def test_it_is_made_again_for_a_chain_that_is_indexed_anew(scene: Scene) -> None:
    for _ in range(3):
        assert scene.newest() == 12
    scene.begin_anew(*FIRST_BLOCKS[:8])
    assert [scene.newest() for _ in range(3)] == [7, 7, 7]


@pytest.mark.parametrize("page", [PAGE, LAST])
def test_it_is_kept_within_its_second(scene: Scene, clock: SetClock, page: str) -> None:
    """Also without a page token: rows may have come from a replica that lags behind the one of the version."""
    read = scene.sent(page)
    scene.sent(page)
    clock.now += 0.9
    assert scene.sent(page) == ["check"]
    clock.now += 0.2
    assert scene.sent(page) == ["check", *read]


def test_a_commit_while_it_is_made_is_seen_by_the_next(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.newest()
    query, left = AsyncSessions.query, [erc20(13, BEN, ANN, 1)]

    async def then_commit(*args: Any) -> Any:
        rows = await query(*args)
        if left:
            await scene.commit(left.pop())
        return rows

    monkeypatch.setattr(AsyncSessions, "query", then_commit)
    assert scene.newest() == 12
    assert [scene.newest() for _ in range(3)] == [13, 13, 13]


def test_what_was_read_from_state_is_not_kept(scene: Scene, state: StateOfNow) -> None:
    native = of(EVE, "/balances:getNative")
    for balance in (5, 6, 7, 8):
        state.balance = balance
        assert scene.app.result(native)["nativeTokenBalance"]["balance"] == str(balance)


def test_no_answer_is_older_than_its_request(scene: Scene) -> None:
    """Many clients ask for the same pages while blocks are committed."""
    committed, asked, read = [12], [0], scene.statements.count("read")
    last = 42

    async def write() -> None:
        for number in range(13, last + 1):
            await scene.commit(erc20(number, BEN, ANN, 1))
            committed[0] = number
            await asyncio.sleep(0.01)

    async def ask(page: str) -> None:
        while committed[0] < last:
            at_least = committed[0]
            asked[0] += 1
            assert newest_of((await scene.app.ask(page)).json()) >= at_least

    async def all_of_them() -> None:
        await asyncio.gather(write(), *map(ask, [PAGE, LAST] * 8))

    scene.app.run(all_of_them())
    assert scene.newest() == last
    assert scene.statements.count("read") - read < asked[0] / 2  # most were kept
    assert scene.statements.count("check") < asked[0] / 2  # and shared a check


def test_a_block_is_not_answered_after_its_rollback(scene: Scene) -> None:
    for _ in range(5):
        scene.put(erc20(13, BEN, ANN, 1))
        assert [scene.newest() for _ in range(3)] == [13, 13, 13]
        scene.roll_back(12)
        assert [scene.newest() for _ in range(3)] == [12, 12, 12]


def test_the_same_on_citus(tmp_path: Path, clock: SetClock, state: StateOfNow, statements: list[str]) -> None:
    """The writer is connected to the coordinator, the worker to another node."""
    coordinator, node = citus_nodes()[:2]
    with opened(tmp_path, statements, state, coordinator, node) as scene:
        test_it_is_made_again_after_every_commit(scene)
        assert scene.sent() == ["check"]
        scene.begin_anew(*FIRST_BLOCKS[:8])
        assert [scene.newest() for _ in range(3)] == [7, 7, 7]
        assert scene.sent() == ["check"]


# -- many requests for an answer that is outdated ------------------------------------------------------------------


def asked_at_once(scene: Scene, count: int, page: str = PAGE, cancelled: int = 0) -> list[Any]:
    """The answers; the first ones are cancelled as soon as something is read for them."""

    async def ask_all() -> list[Any]:
        before = scene.statements.count("read")
        asked = [asyncio.ensure_future(scene.app.ask(page)) for _ in range(count)]
        while cancelled and scene.statements.count("read") == before:
            await asyncio.sleep(0)
        for one in asked[:cancelled]:
            one.cancel()
        async with asyncio.timeout(LIMIT_S):
            return await asyncio.gather(*asked, return_exceptions=True)

    return scene.app.run(ask_all())


def test_it_is_made_again_once_for_all(scene: Scene, clock: SetClock) -> None:
    read = scene.sent()
    scene.sent()
    clock.now += 1
    before = len(scene.statements)
    answers = asked_at_once(scene, 16)
    assert scene.statements[before:] == ["check", *read]
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    scene.put(erc20(13, BEN, ANN, 1))
    assert {newest_of(answer.json()) for answer in asked_at_once(scene, 16)} == {13}


def test_the_others_are_answered_if_the_one_that_makes_it_is_cancelled(scene: Scene, clock: SetClock) -> None:
    scene.sent()
    scene.sent()
    clock.now += 1
    answers = asked_at_once(scene, 6, cancelled=1)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert [newest_of(answer.json()) for answer in answers[1:]] == [12] * 5


def test_the_others_are_answered_if_making_it_fails(
    scene: Scene, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.sent()
    scene.sent()
    clock.now += 1
    query, failures = AsyncSessions.query, [StoreBusy("for a test")]

    async def fail_once(*args: Any) -> Any:
        await asyncio.sleep(0)
        if failures:
            raise failures.pop()
        return await query(*args)

    monkeypatch.setattr(AsyncSessions, "query", fail_once)
    assert sorted(answer.status for answer in asked_at_once(scene, 6)) == [200, 200, 200, 200, 200, 503]
