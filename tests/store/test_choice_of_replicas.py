"""The choice between standbys and the primary, by positions and a clock that the tests move."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import cast

import pytest

from icefall.access.store import AccessReader
from icefall.api.http.service import HealthCheckParams, Indicator, health_check, verdict
from icefall.db import replicas as measured
from icefall.db.engine import StoreUnreachable
from icefall.db.replicas import Replicas, ServerPosition
from icefall.evm.reading.directory import ChainDirectory

LAG_MAX_S = 10.0
FIRST, SECOND, PRIMARY = 0, 1, 2


class Cluster:
    """A primary and two standbys, with the choice between them."""

    def __init__(self, lag_max_s: float = LAG_MAX_S) -> None:
        self.now = 1000.0
        self.primary: ServerPosition | StoreUnreachable = ServerPosition("cluster", "p", False, 100)
        self.standbys: list[ServerPosition | StoreUnreachable] = [
            ServerPosition("cluster", name, True, 100, 0.5) for name in ("a", "b")
        ]
        self.asked = 0
        self.reported: list[tuple[str, str]] = []
        self.replicas = Replicas(
            self._ask_primary,
            {"first": lambda: self._ask(FIRST), "second": lambda: self._ask(SECOND)},
            lag_max_s,
            lambda name, why: self.reported.append((name, why)),
            lambda: self.now,
        )
        self.runner = asyncio.Runner()
        self.run = self.runner.run

    async def _ask_primary(self) -> ServerPosition:
        self.asked += 1
        return given(self.primary)

    async def _ask(self, number: int) -> ServerPosition:
        return given(self.standbys[number])

    def move(self, primary: int | None = None, first: int | None = None, second: int | None = None) -> None:
        """Let servers go on to another position."""
        if primary is not None:
            self.primary = given(self.primary)._replace(position=primary)
        for number, position in enumerate((first, second)):
            if position is not None:
                self.standbys[number] = given(self.standbys[number])._replace(position=position)

    def after(self, seconds: float) -> int:
        """The server that is chosen after this time, once it was measured."""
        self.now += seconds
        self.run(self.replicas.states())
        return self.chosen()

    def chosen(self) -> int:
        return self.run(self._chosen())

    async def _chosen(self) -> int:
        chosen = await self.replicas.choose()
        await self.replicas.states()  # what it began in this loop has ended
        return chosen

    def close(self) -> None:
        self.runner.close()

    def lags(self) -> list[float | None]:
        return [state.lag_s for state in self.run(self.replicas.states())]

    def problem(self, number: int) -> str:
        return self.run(self.replicas.states())[number].problem


def given(found: ServerPosition | StoreUnreachable) -> ServerPosition:
    if isinstance(found, StoreUnreachable):
        raise found
    return found


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with closing(Cluster()) as made:
        yield made


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "_CATCH_UP_S", (0.0,))


def test_the_first_standby_is_read_where_it_has_all(cluster: Cluster) -> None:
    assert cluster.chosen() == FIRST  # it waits for the first measurement
    assert cluster.lags() == [0.0, 0.0]


def test_one_that_is_too_old_is_not_read_and_then_the_primary(cluster: Cluster) -> None:
    assert cluster.after(0) == FIRST
    cluster.move(primary=200, second=200)
    assert cluster.after(1) == FIRST  # as it was a second ago
    assert cluster.lags() == [1.0, 0.0]
    assert cluster.after(9) == FIRST
    assert cluster.after(1) == SECOND
    assert cluster.reported == [("first", "it is 11.0 s behind, and --replica-lag-max is 10 s")]
    cluster.move(primary=300)
    assert cluster.after(11) == PRIMARY
    cluster.move(first=300)
    assert cluster.after(1) == FIRST
    assert cluster.reported[-1] == ("first", "")


def test_a_standby_of_a_primary_that_stands_still_is_not_old(cluster: Cluster) -> None:
    cluster.after(0)
    assert cluster.after(3600) == FIRST
    assert cluster.lags() == [0.0, 0.0]


def test_a_position_is_that_of_the_time_before_the_primary_was_asked(cluster: Cluster) -> None:
    for position in range(101, 121):
        cluster.move(primary=position, first=position - 3, second=position - 30)
        cluster.after(1)
    assert cluster.lags()[0] == 3.0
    assert cluster.lags()[1] == 0.5  # what it says itself, with the clocks of both servers
    assert "--replica-lag-max" in cluster.problem(SECOND)


def test_a_standby_that_went_back_is_as_old_as_it_is(cluster: Cluster) -> None:
    """It was made anew from a backup."""
    cluster.after(0)
    cluster.move(primary=200, first=200)
    assert cluster.after(5) == FIRST
    cluster.move(first=100)
    cluster.after(1)
    assert cluster.lags()[0] == 6.0


def test_while_the_primary_cannot_be_asked_standbys_are_read_until_they_may_be_too_old(cluster: Cluster) -> None:
    cluster.after(0)
    cluster.primary = StoreUnreachable("gone")
    assert cluster.after(9) == FIRST
    assert cluster.after(2) == PRIMARY
    assert cluster.problem(FIRST) == "its rows may be too old: the primary cannot be asked (gone)"


def test_positions_of_the_primary_before_prove_nothing(cluster: Cluster) -> None:
    """A standby that took over may have had fewer positions; the other one follows it from there."""
    cluster.after(0)
    cluster.move(primary=1000, first=100, second=100)
    cluster.after(1)
    cluster.primary = ServerPosition("cluster", "b", False, 120)
    cluster.standbys[SECOND] = ServerPosition("cluster", "b", False, 120)
    assert cluster.after(1) == SECOND  # it is the primary now
    cluster.move(first=120)
    assert cluster.after(1) == FIRST


def test_a_server_of_another_cluster_or_one_that_was_promoted_is_not_read(cluster: Cluster) -> None:
    cluster.standbys[FIRST] = ServerPosition("another", "a", True, 10_000)
    cluster.standbys[SECOND] = ServerPosition("cluster", "b", False, 10_000)
    assert cluster.after(0) == PRIMARY
    assert "no standby of the server of --store" in cluster.problem(FIRST)
    assert "it was promoted" in cluster.problem(SECOND)


def test_one_that_fails_is_left_out_until_it_is_measured_again(cluster: Cluster) -> None:
    assert cluster.after(0) == FIRST
    cluster.replicas.leave_out(FIRST, "the session ended")
    assert cluster.chosen() == SECOND
    cluster.replicas.leave_out(PRIMARY, "not a standby")  # no one takes its place
    cluster.standbys[FIRST] = StoreUnreachable("refused")
    assert cluster.after(2) == SECOND
    assert cluster.problem(FIRST) == "refused"
    cluster.standbys[FIRST] = ServerPosition("cluster", "a", True, 100)
    assert cluster.after(2) == FIRST


def test_it_is_measured_once_a_second_however_often_it_is_asked(cluster: Cluster) -> None:
    cluster.after(0)
    before = cluster.asked
    for _ in range(10):
        cluster.chosen()
        cluster.now += 0.25
    assert cluster.asked - before == 2


def test_few_positions_are_remembered_however_old_rows_may_be() -> None:
    with closing(Cluster(lag_max_s=86400.0)) as cluster:
        for position in range(1000):
            cluster.move(primary=100 + position)
            cluster.after(30)
        assert len(cluster.replicas._positions) < 700
        assert cluster.lags()[0] == pytest.approx(30_000, rel=0.01)


class Readable:
    """An access store that can be read."""

    async def check(self) -> None:
        pass


def test_a_replica_that_is_down_is_shown_and_no_reason_to_ask_another_reader(cluster: Cluster) -> None:
    cluster.standbys[FIRST] = StoreUnreachable("refused")
    access, chains = cast(AccessReader, Readable()), ChainDirectory([], replicas=cluster.replicas)
    health = cluster.run(health_check(HealthCheckParams(strict=True), access, chains))
    assert verdict(health) == 200
    assert health.status == "error"
    assert health.error == {"replica-1": Indicator("down", "refused")}
    assert "replica-2" in health.info
