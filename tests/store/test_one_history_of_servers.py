"""An answer that is read while another server is chosen is that of one of them: two schemas with different histories
stand for a standby and its primary."""

import asyncio
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.api.made_chain import ID
from tests.postgres.server import new_prefix, server_url
from tests.store.test_one_history import CASES, Case, Outcome, Scene, StateOfBlocks

from icefall.compose.stores import Stores
from icefall.db.engine import MigratedReader, Row, StatementParams, StoreError, StoreReplaying, StoreUnreachable
from icefall.evm.reading.directory import ChainInfo, EvmChain, TokenInfo
from icefall.evm.reading.one_history import Standbys

STANDBY, PRIMARY = 0, 1
# The endpoints of one chain. Series, which are read alike, are left out, and what tells how long ago something was.
OF_TIME = "/v1/chains/{chainId}/indexing"
TIMELESS = [
    case
    for case in CASES
    if case.row.path.startswith("/v1/chains/{chainId}/") and not case.own and case.row.path != OF_TIME
]


class Choice:
    """Chooses the standby where it may. `alternates`: each time another server."""

    def __init__(self) -> None:
        self.alternates = False
        self.left_out: list[str] = []
        self._next = PRIMARY

    async def choose(self, avoided: Container[int] = ()) -> int:
        if self.alternates:
            self._next = 1 - self._next
            return PRIMARY if STANDBY in avoided else self._next
        return PRIMARY if STANDBY in avoided else STANDBY

    def leave_out(self, number: int, why: str) -> None:
        assert number == STANDBY
        self.left_out.append(why)


class Failing:
    """A reader whose statements fail from one of them on."""

    def __init__(self, reader: Any) -> None:
        self._reader: MigratedReader = reader
        self.error: StoreError | None = None
        self.left = 0
        self.current_version = reader.current_version
        self.close = reader.close

    is_embedded = joins_are_slow = False

    @property
    def generation(self) -> int:
        return self._reader.generation

    def version(self) -> int | None:
        return None

    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        self._fail()
        return await self._reader.rows(statement, params)

    async def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        self._fail()
        return await self._reader.rows_of_each(statement, keys)

    def _fail(self) -> None:
        self.left -= 1
        if self.error is not None and self.left < 0:
            raise self.error


class Servers:
    """A chain that is read from a standby and from its primary."""

    def __init__(self, standby: Stores, primary: Stores, scene: Scene) -> None:
        self.choice = Choice()
        self.standby = Failing(standby.chain_reader(ID))
        info = ChainInfo(ID, "made", TokenInfo("Coin", "COIN", 18))
        standbys = Standbys([self.standby], self.choice)
        self.chain = EvmChain(info, primary.chain_reader(ID), StateOfBlocks(), standbys=standbys)
        self._routes = scene.routes_of(self.chain)
        self._runner = asyncio.Runner()

    def close(self) -> None:
        self.chain.reader.close()
        self._runner.close()

    def answer(self, row: Case) -> Outcome:
        return self._runner.run(Scene.outcome(self._routes, row))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Servers, Callable[[Case], list[Outcome]]]]:
    """The servers, and a function that returns the answers of each of them."""
    folder: Path = tmp_path_factory.mktemp("data")
    with (
        closing(Stores(folder, server_url(), new_prefix())) as one,
        closing(Stores(folder, server_url(), new_prefix())) as other,
        closing(Scene(one)) as first,
        closing(Scene(other)) as second,
    ):
        second.switch()
        with closing(Servers(one, other, first)) as servers:  # its loop ends before the sessions do
            yield servers, lambda row: [scene.answer(row)[0] for scene in (first, second)]


@pytest.mark.parametrize("row", TIMELESS, ids=lambda row: row.label)
def test_an_answer_is_of_one_server(scene: tuple[Servers, Callable[[Case], list[Outcome]]], row: Case) -> None:
    servers, answers_of = scene
    expected = answers_of(row)
    servers.choice.alternates = True
    found = [servers.answer(row) for _ in range(4)]
    servers.choice.alternates = False
    assert set(found) <= set(expected)
    assert found[0] == found[2]  # both servers had their turn
    assert servers.answer(row) == expected[STANDBY]


@pytest.mark.parametrize("error", [StoreUnreachable("gone"), StoreReplaying("replays"), StoreError("not there yet")])
def test_if_the_standby_fails_the_whole_answer_is_that_of_the_primary(
    scene: tuple[Servers, Callable[[Case], list[Outcome]]], error: StoreError
) -> None:
    servers, answers_of = scene
    row = next(row for row in CASES if row.row.path.endswith("transactions:listErc20"))
    standby, primary = answers_of(row)
    assert servers.answer(row) == standby != primary
    servers.choice.left_out.clear()
    for statements in range(3):
        servers.standby.left, servers.standby.error = statements, error
        found = servers.answer(row)
        failed, servers.standby.error = servers.standby.left < 0, None
        assert found == (primary if failed else standby)
    assert bool(servers.choice.left_out) == isinstance(error, StoreUnreachable)  # else others may still read it
