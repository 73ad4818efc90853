"""From empty to the tip and on, on valid upstreams: history, polling, restarts, waiting imports, failing over."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.sync.scene import Chains, following, play, quiet_log
from tests.upstream.replay import FOREVER, Fault, Replay, recorded
from tests.waiting import LIMIT_S
from tests.xchain.scenario_1 import final_utxos

from icefall.db.engine import StoreError
from icefall.node.sync import follower
from icefall.node.sync.upstreams import NetworkIdentity, NodeUpstreams
from icefall.node.sync.verify import VerifiedContainer
from icefall.upstream.client import Client
from icefall.upstream.node import UpstreamNode
from icefall.upstream.pool import NoUpstreamLeft
from icefall.wire.ids import id_text

ALL = (176, 13, 12)


def complete(chains: Chains) -> bool:
    return chains.counts() == ALL


def assert_is_the_recorded_history(chains: Chains) -> None:
    rows = recorded()
    for chain in (chains.x, chains.p, chains.c):
        assert [offered.raw for offered in chain.accepted] == [row.raw for row in rows[chain.name]]
    assert {id_text(utxo_id): raw for utxo_id, raw in chains.state.raw.items()} == final_utxos()


def test_from_empty_to_the_tip() -> None:
    async def scene() -> None:
        replay = Replay()
        async with following(replay) as at:
            assert (at.x.state, at.x.progress.of, at.x.progress.eta_s) == ("bootstrapping", None, None)
            await at.until(lambda: complete(at.chains), "the tip")
            await at.until(lambda: at.x.state == at.p.state == at.c.state == "following")
            assert (at.x.progress.done, at.x.progress.of, at.x.progress.eta_s) == (176, 176, 0.0)
            assert_is_the_recorded_history(at.chains)
            assert max(at.chains.x.commits) <= 50
            assert at.upstreams.disabled() == at.upstreams.failing() == {}
            traffic = at.upstreams.traffic()
            assert (traffic.reachable, traffic.failed_share) == (1, 0.0)

    play(scene)


def test_icefall_follows_icefall() -> None:
    """Its own interface has ranges without a wrapping."""

    async def scene() -> None:
        replay = Replay()
        replay.bare_ranges = True
        async with following(replay) as at:
            await at.until(lambda: complete(at.chains), "the tip")

    play(scene)


def test_containers_that_arrive_later() -> None:
    async def scene() -> None:
        replay = Replay()
        replay.show(X=20, P=1, C=1)
        async with following(replay) as at:
            await at.until(lambda: at.chains.counts() == (20, 1, 1), "the first tip")
            await at.until(lambda: at.x.state == "following")
            replay.show(X=21, P=13, C=12)
            await at.until(lambda: at.chains.counts() == (21, 13, 12), "one more")
            for count in range(22, 30):
                replay.show(X=count)
                await at.until(lambda count=count: at.chains.x.count == count, f"{count}")  # type: ignore[misc]
            replay.show(X=176)
            await at.until(lambda: complete(at.chains), "the end")
            assert at.x.bootstrapped
            assert_is_the_recorded_history(at.chains)

    play(scene)


def test_an_empty_network() -> None:
    async def scene() -> None:
        replay = Replay()
        replay.show(X=0, P=0, C=0)
        async with following(replay) as at:
            await at.until(lambda: at.x.bootstrapped and at.p.bootstrapped and at.c.bootstrapped)
            assert at.x.progress.of == 0
            replay.show(X=5, P=1, C=1)
            await at.until(lambda: at.chains.x.count == 5, "the first containers")
            assert at.x.state == "following"

    play(scene)


def test_a_restart_in_the_middle_continues() -> None:
    async def scene() -> None:
        chains = Chains()
        replay = Replay()
        replay.show(X=60, P=13, C=3)
        async with following(replay, chains=chains) as at:
            await at.until(lambda: chains.counts() == (60, 13, 3), "the middle")
        again = Replay()
        async with following(again, chains=chains) as at:
            assert at.x.state == "bootstrapping"
            await at.until(lambda: complete(chains), "the end")
            assert_is_the_recorded_history(chains)
        starts = [int(params["startIndex"]) for method, params in again.calls if method == "index.getContainerRange"]
        assert min(starts) == 3
        assert 0 not in starts

    play(scene)


def test_a_disk_that_is_full_for_a_while() -> None:
    """Nothing is stored, no upstream backs off, and it continues when there is disk space again."""

    async def scene() -> None:
        chains = Chains()
        accept, full = chains.c.accept, 3

        async def accept_if_there_is_room(batch: Sequence[VerifiedContainer]) -> None:
            nonlocal full
            if full:
                full -= 1
                raise StoreError("the store failed: database or disk is full")
            await accept(batch)

        chains.c.accept = accept_if_there_is_room  # type: ignore[method-assign]
        async with following(Replay(), chains=chains) as at:
            await at.until(lambda: complete(at.chains), "the tip")
            assert full == 0
            assert at.upstreams.disabled() == at.upstreams.failing() == {}
            assert_is_the_recorded_history(at.chains)

    play(scene)


def test_stopped_at_any_point_nothing_is_lost() -> None:
    async def scene() -> None:
        chains = Chains()
        restarts = 0
        while not complete(chains) and restarts < 200:
            replay = Replay()
            async with following(replay, chains=chains, run_max=20):
                while len(replay.calls) < 1 + restarts % 40 and not complete(chains):
                    await asyncio.sleep(0)
                for _ in range(restarts % 7):  # and some turns of the loop later
                    await asyncio.sleep(0)
            restarts += 1
        assert restarts > 1
        assert_is_the_recorded_history(chains)

    play(scene)


def test_imports_wait_for_the_chains_they_come_from() -> None:
    async def scene() -> None:
        replay = Replay()
        async with following(replay, names="X") as at:
            await at.until(lambda: "waits for P to reach 13 containers" in (at.x.waiting or ""), "waiting")
            stuck_at = at.chains.x.count
            assert 0 < stuck_at < 176
            at.start("P")
            await at.until(lambda: "waits for C to reach 12 containers" in (at.x.waiting or ""), "P is there")
            assert at.chains.x.count == stuck_at
            at.start("C")
            await at.until(lambda: complete(at.chains), "the end")
            assert at.x.waiting is None
            assert_is_the_recorded_history(at.chains)

    play(scene)


def test_an_upstream_that_bootstraps_itself_is_given_time() -> None:
    """Its X may be ahead of its P: a missing export proves nothing yet."""

    async def scene() -> None:
        replay = Replay()
        replay.show(P=0, C=0)
        replay.bootstrapped["P"] = False
        async with following(replay) as at:
            await at.until(lambda: "has bootstrapped P" in (at.x.waiting or ""), "waiting")
            assert at.upstreams.disabled() == {}
            replay.show(P=13, C=12)
            replay.bootstrapped["P"] = True
            await at.until(lambda: complete(at.chains), "the end")

    play(scene)


def test_a_lower_tip_is_lag() -> None:
    async def scene() -> None:
        replay = Replay()
        replay.show(X=100)
        async with following(replay) as at:
            await at.until(lambda: at.chains.x.count == 100, "a first tip")
            replay.show(X=50)
            await at.polls(replay)
            assert at.chains.x.count == 100
            assert at.upstreams.disabled() == {}
            replay.show(X=0)
            await at.polls(replay)
            assert (at.x.state, at.upstreams.disabled()) == ("following", {})
            replay.show(X=176)
            await at.until(lambda: complete(at.chains), "the end")

    play(scene)


def test_one_that_lags_does_not_hold_the_others_back() -> None:
    async def scene() -> None:
        slow, fast = Replay(), Replay()
        slow.show(X=10, P=0, C=0)
        async with following(slow, fast) as at:
            await at.until(lambda: complete(at.chains), "the end")
            assert at.upstreams.disabled() == {}

    play(scene)


def test_failing_over_and_back() -> None:
    async def scene() -> None:
        first, second = Replay(), Replay()
        second.show(X=60, P=13, C=12)
        async with following(first, second) as at:
            first.on_call = lambda method, params: (
                first.faults.append(Fault(times=FOREVER, status=500)) if at.chains.x.count > 20 else None
            )
            await at.until(lambda: at.chains.counts() == (60, 13, 12), "as far as the second goes")
            assert "answered 500" in at.upstreams.failing().get(first.url, "answered 500")
            first.on_call = lambda method, params: None
            first.faults.clear()
            await at.until(lambda: complete(at.chains), "back on the first")
            assert_is_the_recorded_history(at.chains)
            assert at.upstreams.disabled() == {}

    play(scene)


def test_an_upstream_that_comes_back() -> None:
    async def scene() -> None:
        replay = Replay()
        replay.show(X=30)
        async with following(replay) as at:
            await at.until(lambda: at.chains.x.count == 30, "a first tip")
            port = int(replay.url.rpartition(":")[2])
            await replay.stop()
            await at.until(lambda: "cannot be reached" in at.upstreams.failing().get(replay.url, ""), "trouble")
            assert at.upstreams.traffic().reachable == 0
            assert at.x.state == "following"
            replay.show(X=176)
            await replay.start(port)
            await at.until(lambda: complete(at.chains), "the end")
            assert at.upstreams.failing() == {}
            assert at.upstreams.traffic().failed_share > 0

    play(scene)


def test_runs_shrink_where_long_ones_do_not_come_through() -> None:
    async def scene() -> None:
        replay = Replay()

        def too_slow_when_long(method: str, params: dict[str, str]) -> None:
            if method == "index.getContainerRange" and int(params["numToFetch"]) > 10:
                replay.faults.append(Fault(method, hang_s=60))

        replay.on_call = too_slow_when_long
        async with following(replay, total_s=0.3) as at:
            await at.until(lambda: complete(at.chains), "the end")
            assert max(at.chains.x.commits) <= 10
            sizes = [int(params["numToFetch"]) for method, params in replay.calls if method.endswith("Range")]
            assert max(sizes) == 50

    play(scene)


def test_the_next_run_is_fetched_while_one_is_committed() -> None:
    async def scene() -> None:
        replay = Replay()
        replay.show(P=0, C=0)
        async with following(replay, names="", run_max=5) as at:
            held, go_on = asyncio.Event(), asyncio.Event()
            accept = at.chains.x.accept

            async def slowly(batch):  # type: ignore[no-untyped-def]
                held.set()
                await go_on.wait()
                await accept(batch)

            at.chains.x.accept = slowly  # type: ignore[method-assign]
            at.start("X")
            await at.until(held.is_set, "the first commit")
            await at.until(lambda: replay.asked("index.getContainerRange") == 2, "the second range")
            await asyncio.sleep(0.01)
            assert replay.asked("index.getContainerRange") == 2  # and no third: memory is bounded
            go_on.set()
            await at.until(lambda: at.chains.x.count > 10, "more")

    play(scene)


def test_progress_tells_rate_and_eta() -> None:
    async def scene() -> None:
        replay = Replay()
        async with following(replay, names="", run_max=1) as at:
            accept = at.chains.p.accept

            async def in_half_a_second(batch):  # type: ignore[no-untyped-def]
                at.clock.time += 0.5
                await accept(batch)

            at.chains.p.accept = in_half_a_second  # type: ignore[method-assign]
            seen = []
            replay.on_call = lambda method, params: seen.append(at.p.progress)
            at.start("P")
            await at.until(lambda: at.p.bootstrapped, "the end")
            late = next(progress for progress in seen if progress.done == 8)
            assert (late.of, round(late.per_second, 3), late.eta_s and round(late.eta_s, 3)) == (13, 2.0, 2.5)

    play(scene)


def test_one_that_hangs_does_not_hold_up_the_others() -> None:
    async def scene() -> None:
        hanging, sound = Replay(), Replay()
        hanging.faults = [Fault(hang_s=10 * LIMIT_S, times=FOREVER)]
        async with following(hanging, sound, total_s=10 * LIMIT_S) as at:
            await at.until(lambda: complete(at.chains), "the end")
            assert hanging.calls
            assert at.upstreams.traffic().in_flight >= 1

    play(scene)


def test_a_failure_of_one_chain_does_not_affect_the_others() -> None:
    async def scene() -> None:
        replay = Replay()
        replay.show(P=2, C=2)

        def refuse_ranges_of_x(method: str, params: dict[str, str]) -> None:
            if method == "index.getContainerRange" and replay.paths[-1].startswith("/ext/index/X"):
                replay.faults.append(Fault(method, status=500))

        replay.on_call = refuse_ranges_of_x
        async with following(replay, attempts=1) as at:
            await at.until(lambda: replay.asked("index.getContainerRange") > 12, "many tries")
            await at.until(lambda: at.chains.counts() == (0, 2, 2), "the first of P and C")
            replay.show(P=13, C=12)
            before, tries = at.clock.now(), replay.asked("index.getContainerRange")
            await at.until(lambda: at.chains.counts() == (0, 13, 12), "P and C")
            tries = replay.asked("index.getContainerRange") - tries
            paused = follower.FAILURE_PAUSE.longest_s * tries  # by X itself, on the same clock
            assert at.clock.now() - before - paused < 120
            replay.on_call = lambda method, params: None
            await at.until(lambda: complete(at.chains), "the end")

    play(scene)


def test_two_upstreams_at_one_address_have_different_names() -> None:
    async def scene() -> None:
        replay = Replay()
        async with following(replay, names="") as at:
            nodes = [UpstreamNode(Client(f"{replay.url}/{key}")) for key in ("a", "b")]
            upstreams = NodeUpstreams(nodes, NetworkIdentity(1, {}), quiet_log(), clock=at.clock)
            assert [node.name for node in upstreams.members] == [replay.url, f"{replay.url}#2"]
            assert len(await upstreams.probe_all()) == 2
            with pytest.raises(NoUpstreamLeft, match="it is of network 12345, not of 1"):
                await upstreams.pick()
            await upstreams.close()

    play(scene)


def test_runs_shrink_where_containers_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "_RUN_BYTES_MAX", 30_000)

    async def scene() -> None:
        replay = Replay()
        async with following(replay) as at:
            await at.until(lambda: complete(at.chains), "the end")
            sizes = [
                int(params["numToFetch"])
                for path, (method, params) in zip(replay.paths, replay.calls, strict=True)
                if method == "index.getContainerRange" and path.startswith("/ext/index/X")
            ]
            assert sizes[:2] == [50, 25]
            assert min(sizes) < 20

    play(scene)
