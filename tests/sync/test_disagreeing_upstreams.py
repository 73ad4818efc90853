"""Upstreams whose histories differ: which of them is invalid, and when nothing more is accepted."""

from tests.sync.scene import Chains, Scene, following, play, true_prefix
from tests.upstream.replay import (
    FOREVER,
    Fault,
    Replay,
    other_history,
    recorded,
    rewrapped,
)

from icefall.wire.ids import hash256

ALL = (176, 13, 12)
AT = 90  # the first container that differs: in the middle of the second run


def assert_conflict(at: Scene, number: int, one: Replay, other: Replay) -> None:
    text = at.x.why or ""
    assert f"two histories: X container {number} is" in text
    for replay in (one, other):
        assert replay.url in text
        assert replay.chains["X"][number].id_text in text
    assert at.x.state == "stopped"
    assert at.upstreams.disabled() == {}


def test_two_consistent_histories_stop_the_chain() -> None:
    async def scene() -> None:
        one, other = Replay(), Replay()
        other.chains["X"] = other_history(other.chains["X"], AT)
        async with following(one, other) as at:
            await at.until(lambda: at.x.why is not None, "the conflict")
            assert_conflict(at, AT, one, other)
            assert at.chains.x.count == 50  # up to the last run that both confirmed
            await at.until(lambda: at.chains.counts()[1:] == ALL[1:], "P and C, which are not disputed")
            assert true_prefix(at.chains)

    play(scene)


def test_a_second_history_that_is_not_linked_is_invalid() -> None:
    async def scene() -> None:
        one, other = Replay(), Replay()
        other.chains["X"] = other_history(other.chains["X"], AT)
        other.chains["X"][AT - 2] = rewrapped(other.chains["X"][AT - 2], parent_id=hash256(b"another"))
        async with following(one, other) as at:
            await at.until(lambda: at.chains.counts() == ALL, "the truth")
            assert "X container 88 follows" in at.upstreams.disabled()[other.url]
            assert at.x.why is None

    play(scene)


def test_an_older_disagreement_found_late() -> None:
    """The second one was away while we took runs from the first, and its history had parted from ours by then."""

    async def scene() -> None:
        one, other = Replay(), Replay()
        other.chains["X"] = other_history(other.chains["X"], 30)
        one.show(X=60)
        other.show(X=20)
        async with following(one, other) as at:
            await at.until(lambda: at.chains.x.count == 60, "the first runs")
            assert at.x.why is None
            other.show(X=176)
            one.show(X=176)
            await at.until(lambda: at.x.why is not None, "the conflict")
            assert_conflict(at, 59, one, other)
            assert at.chains.x.count == 60

    play(scene)


def test_a_container_that_only_one_of_them_can_have_read() -> None:
    async def scene() -> None:
        one, other = Replay(), Replay()
        strange = rewrapped(other.chains["P"][5], inner=b"\0\0\0\0\0\x63 a block type of tomorrow")
        other.chains["P"][5] = strange
        other.chains["P"][6:] = other_history(other.chains["P"], 6)[6:]
        async with following(one, other, names="P") as at:
            await at.until(lambda: at.p.why is not None, "the end")
            assert strange.id_text in (at.p.why or "")
            assert at.upstreams.disabled() == {}
            assert at.chains.p.count in (0, 5)  # whoever was asked first

    play(scene)


def test_a_run_is_not_stored_once_its_upstream_was_caught() -> None:
    """X waits for P because of an upstream that then sends invalid data about P."""

    async def scene() -> None:
        replay = Replay()
        replay.chains["P"][5] = replay.chains["P"][6]
        async with following(replay, names="X") as at:
            await at.until(lambda: "waits for P" in (at.x.waiting or ""), "waiting")
            count = at.chains.x.count
            at.start("PC")
            await at.until(lambda: at.x.why is not None, "the end")
            assert "no upstream is left" in (at.x.why or "")
            assert "P container 5" in (at.x.why or "")
            assert (at.chains.x.count, at.x.waiting) == (count, None)

    play(scene)


def test_an_upstream_that_sends_nothing() -> None:
    async def scene() -> None:
        replay = Replay()
        replay.bare_ranges = True
        replay.faults = [Fault("index.getContainerRange", empty=True)]
        async with following(replay, names="P") as at:
            await at.until(lambda: at.chains.p.count == 13, "the end")
            assert replay.asked("index.getContainerRange") == 2

    play(scene)


def test_an_upstream_that_contradicts_itself_is_dropped() -> None:
    async def scene() -> None:
        one, other = Replay(), Replay()

        def forge_single_containers(method: str, params: dict[str, str]) -> None:
            forged = method == "index.getContainerByIndex"
            other.chains["X"] = other_history(recorded()["X"], AT) if forged else recorded()["X"]

        other.on_call = forge_single_containers
        async with following(one, other) as at:
            await at.until(lambda: at.chains.counts() == ALL, "the truth")
            assert "it sent two different X containers" in at.upstreams.disabled()[other.url]

    play(scene)


def test_the_other_one_may_lag_or_fail() -> None:
    async def scene() -> None:
        one, lagging, broken = Replay(), Replay(), Replay()
        lagging.show(X=7, P=2, C=1)
        broken.faults = [Fault("index.getContainerByIndex", times=FOREVER, status=500)]
        async with following(one, lagging, broken) as at:
            await at.until(lambda: at.chains.counts() == ALL, "the truth")
            assert at.upstreams.disabled() == {}
            assert at.x.why is None

    play(scene)


def test_disagreement_at_the_tip() -> None:
    """The second one lagged while we took the tip from the first, and then came up with another container."""

    async def scene() -> None:
        one, other = Replay(), Replay()
        one.show(X=31)
        other.show(X=30)
        other.chains["X"] = other_history(other.chains["X"], 30)
        async with following(one, other) as at:
            await at.until(lambda: at.chains.x.count == 31, "the tip")
            assert at.x.why is None
            other.show(X=31)
            await at.until(lambda: at.x.why is not None, "the conflict")
            assert_conflict(at, 30, one, other)

    play(scene)


def test_disagreement_behind_the_tip() -> None:
    """The second one has more than we do, but upon another container than ours."""

    async def scene() -> None:
        one, other = Replay(), Replay()
        one.show(X=31)
        other.show(X=30)
        other.chains["X"] = other_history(other.chains["X"], 30)
        async with following(one, other) as at:
            await at.until(lambda: at.chains.x.count == 31, "the tip")
            other.show(X=40)
            await at.until(lambda: at.x.why is not None, "the conflict")
            assert_conflict(at, 30, one, other)

    play(scene)


def test_an_upstream_that_changes_its_own_history_is_disabled() -> None:
    """A node that was wiped and began anew: it has less than we do, and none of it is ours."""

    async def scene() -> None:
        replay = Replay()
        replay.show(X=31)
        async with following(replay) as at:
            await at.until(lambda: at.chains.x.count == 31, "the tip")
            replay.chains["X"] = other_history(replay.chains["X"], 0)
            replay.show(X=0)
            await at.polls(replay)
            assert at.upstreams.disabled() == {}
            replay.show(X=5)
            await at.until(lambda: at.x.why is not None, "the end")
            assert f"its X container 4 is {replay.chains['X'][4].id_text} now" in at.upstreams.disabled()[replay.url]
            assert at.chains.x.count == 31

    play(scene)


def test_an_upstream_that_goes_on_upon_another_history_is_disabled() -> None:
    async def scene() -> None:
        replay = Replay()
        replay.show(X=31)
        async with following(replay) as at:
            await at.until(lambda: at.chains.x.count == 31, "the tip")
            replay.chains["X"] = other_history(replay.chains["X"], 0)
            replay.show(X=40)
            await at.until(lambda: at.x.why is not None, "the end")
            assert "X container 31 follows" in at.upstreams.disabled()[replay.url]
            assert at.chains.x.count == 31

    play(scene)


def test_after_a_restart_another_history_is_a_conflict_with_ours() -> None:
    async def scene() -> None:
        chains = Chains()
        first = Replay()
        first.show(X=31)
        async with following(first, chains=chains) as at:
            await at.until(lambda: chains.x.count == 31, "the tip")
        second = Replay()
        second.chains["X"] = other_history(second.chains["X"], 10)
        async with following(second, chains=chains) as at:
            await at.until(lambda: at.x.why is not None, "the conflict")
            assert "X container 30 is" in (at.x.why or "")
            assert "according to us" in (at.x.why or "")
            assert chains.x.count == 31

    play(scene)


def test_after_a_restart_a_shorter_history_that_is_not_ours_is_a_conflict_too() -> None:
    async def scene() -> None:
        chains = Chains()
        first = Replay()
        async with following(first, chains=chains) as at:
            await at.until(lambda: chains.counts() == ALL, "the tip")
        second = Replay()
        for name in "XPC":
            second.chains[name] = other_history(second.chains[name], 3)
        second.show(X=20, P=5, C=5)
        async with following(second, chains=chains) as at:
            await at.until(lambda: at.x.why is not None and at.p.why is not None, "the conflicts")
            assert "two histories: X container 19 is" in (at.x.why or "")
            assert "two histories: P container 4 is" in (at.p.why or "")
            assert chains.counts() == ALL

    play(scene)
