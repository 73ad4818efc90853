"""Upstreams that send invalid data or fail: what happens to each, and that nothing unverified is stored."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.sync.scene import following, play, true_prefix
from tests.upstream.replay import (
    FOREVER,
    Fault,
    Replay,
    Row,
    local_genesis,
    other_history,
    rewrapped,
)

from icefall.ipc.socket import CALL_LIMIT_S
from icefall.node.sync.upstreams import ISSUE_LIMIT_S
from icefall.upstream.client import UpstreamDown, UpstreamError
from icefall.wire.avm.codec import pack_block, unpack_block
from icefall.wire.container.proposer import unpack_container
from icefall.wire.ids import hash256

ALL = (176, 13, 12)
AT = 90  # where the invalid container is: in the middle of the second run


# -- proven invalid --------------------------------------------------------------------------------------------


def wrong_id(replay: Replay) -> None:
    replay.chains["X"][AT] = Row(replay.chains["X"][AT + 1].id_text, replay.chains["X"][AT].raw)


def broken_parent(replay: Replay) -> None:
    replay.chains["X"][AT] = rewrapped(replay.chains["X"][AT], parent_id=hash256(b"another"))


def broken_parent_at_the_seam(replay: Replay) -> None:
    replay.chains["X"][50:] = other_history(replay.chains["X"], 40)[50:]


def broken_inner_parent(replay: Replay) -> None:
    inner = unpack_container(replay.chains["X"][AT].raw).inner
    replay.chains["X"][AT] = rewrapped(replay.chains["X"][AT], inner=inner[:6] + hash256(b"another") + inner[38:])


def truncated_bytes(replay: Replay) -> None:
    replay.chains["X"][AT] = replay.chains["X"][AT]._replace(raw=replay.chains["X"][AT].raw[:-9])


def skipped_number(replay: Replay) -> None:
    replay.renumbered = {("X", number): number + 1 for number in range(AT, 176)}


def index_with_a_hole(replay: Replay) -> None:
    del replay.chains["X"][AT : AT + 3]


def index_that_starts_late(replay: Replay) -> None:
    del replay.chains["X"][:30]


def another_network(replay: Replay) -> None:
    replay.network_id = 5


def another_chain(replay: Replay) -> None:
    replay.chain_ids["C"] = hash256(b"another C-Chain")


def another_genesis(replay: Replay) -> None:
    """A local network of another day: X and C begin alike, P does not."""
    replay.chains["P"][0] = rewrapped(replay.chains["P"][0], parent_id=local_genesis(1_700_000_000).p_block_0_id)


def a_transaction_that_fails(replay: Replay) -> None:
    """A well-linked block whose transactions have been spent already."""
    rows = replay.chains["X"]
    wrapping = unpack_container(rows[AT].raw)
    block, spent = unpack_block(wrapping.inner), unpack_block(unpack_container(rows[AT - 1].raw).inner).txs
    forged = pack_block(block.parent_id, block.height, block.time, spent)
    rows[AT:] = [rewrapped(rows[AT], inner=forged.raw)]


def a_block_cut_short(replay: Replay) -> None:
    """The wrapping holds, the block's head too, but its transactions end in the middle."""
    rows = replay.chains["X"]
    rows[AT:] = [rewrapped(rows[AT], inner=unpack_container(rows[AT].raw).inner[:-9])]


def an_import_of_nothing(replay: Replay) -> None:
    """P has no exports, up to its tip."""
    del replay.chains["P"][:]


def time_running_backwards(replay: Replay) -> None:
    row = replay.chains["X"][AT]
    replay.chains["X"][AT] = rewrapped(row, timestamp=unpack_container(row.raw).timestamp - 3600)


FORGERIES: dict[Callable[[Replay], None], str] = {
    wrong_id: "X container 90 is labelled",
    broken_parent: "X container 90 follows",
    broken_parent_at_the_seam: "X container 50 follows",
    broken_inner_parent: "X container 90 holds a block upon",
    truncated_bytes: "X container 90 is neither a container nor a block",
    skipped_number: "X container 91 was sent where 90 belongs: the index has a hole",
    index_with_a_hole: "X container 90 has height 94, where 91 belongs",
    index_that_starts_late: "X container 0 has height 31",
    another_network: "it is of network 5, not of 12345",
    another_chain: "its C-Chain is",
    another_genesis: "which is not this network's genesis",
    a_transaction_that_fails: "X container 90 breaks the chain's rules",
    a_block_cut_short: "X container 90 breaks the chain's rules",
    an_import_of_nothing: "has not been exported",
    time_running_backwards: "X container 90 is from",
}


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.__name__)
def test_a_single_invalid_upstream_stops_everything(forgery: Callable[[Replay], None]) -> None:
    async def scene() -> None:
        replay = Replay()
        forgery(replay)
        async with following(replay) as at:
            await at.until(lambda: at.x.why is not None, "the end")
            await at.until(lambda: at.p.why is not None and at.c.why is not None, "the end for all")
            assert FORGERIES[forgery] in at.upstreams.disabled()[replay.url]
            assert FORGERIES[forgery] in (at.x.why or "")
            assert "no upstream is left" in (at.x.why or "")
            assert at.x.state == "stopped"
            assert true_prefix(at.chains)
            assert at.chains.x.count <= AT
            asked = len(replay.calls)
            await at.until(lambda: True)
            assert len(replay.calls) == asked  # it is not used again

    play(scene)


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.__name__)
def test_an_invalid_upstream_is_replaced_by_a_valid_one(forgery: Callable[[Replay], None]) -> None:
    """The valid one lags at first, so it cannot contradict."""

    async def scene() -> None:
        forger, honest = Replay(), Replay()
        forgery(forger)
        honest.show(X=0, P=0, C=0)
        async with following(forger, honest) as at:
            await at.until(lambda: bool(at.upstreams.disabled()), "the upstream to be disabled")
            honest.shown.clear()
            await at.until(lambda: at.chains.counts() == ALL, "the truth")
            assert list(at.upstreams.disabled()) == [forger.url]
            assert FORGERIES[forgery] in at.upstreams.disabled()[forger.url]
            assert true_prefix(at.chains)
            assert at.x.why is None

    play(scene)


# -- failures that prove nothing -----------------------------------------------------------------------------------

FAULTS = {
    "429": Fault(status=429, headers={"Retry-After": "3"}),
    "500": Fault(status=500),
    "503": Fault(status=503, body=b"API call rejected because chain is not done bootstrapping\n"),
    "timeout": Fault(hang_s=60),
    "cut JSON": Fault(keep=0.7),
    "hangs up": Fault(hang_up=True),
    "HTML": Fault(body=b"<html><body>Bad Gateway</body></html>"),
    "another shape": Fault(body=b'{"jsonrpc":"2.0","id":1,"result":[1,2,3]}'),
    "nested without end": Fault(body=b'{"id":1,"result":' + b"[" * 100_000),
    "moved": Fault(status=302, headers={"Location": "https://elsewhere/"}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_passes(name: str) -> None:
    """Three times in a row, in the middle of the history: slower, but right."""

    async def scene() -> None:
        replay = Replay()
        replay.faults = [FAULTS[name]._replace(method="index.getContainerRange", times=3)]
        async with following(replay, total_s=1.0 if name == "timeout" else 60.0) as at:
            await at.until(lambda: at.chains.counts() == ALL, "the tip")
            assert true_prefix(at.chains)
            assert at.upstreams.disabled() == {}
            assert sum(at.clock.slept) > 0.2

    play(scene)


@pytest.mark.parametrize("name", FAULTS)
def test_a_lasting_fault_is_left_for_another_upstream(name: str) -> None:
    async def scene() -> None:
        broken, sound = Replay(), Replay()
        broken.faults = [FAULTS[name]._replace(times=FOREVER)]
        async with following(broken, sound, total_s=1.0 if name == "timeout" else 60.0) as at:
            await at.until(lambda: at.chains.counts() == ALL, "the tip")
            await at.until(lambda: broken.url in at.upstreams.failing(), "trouble")
            assert at.upstreams.disabled() == {}
            assert at.upstreams.traffic().reachable == 1

    play(scene)


def test_a_lasting_fault_is_retried_ever_more_rarely() -> None:
    async def scene() -> None:
        replay = Replay()
        replay.faults = [Fault(status=500, times=FOREVER)]
        async with following(replay, names="X", attempts=1) as at:
            await at.until(lambda: len(at.clock.slept) > 12, "some tries")
            pauses = [pause for pause in at.clock.slept if pause > 0][:10]
            assert pauses[:4] == pytest.approx([0.375, 0.75, 1.5, 3.0])
            assert pauses[-1] == pytest.approx(45)  # three quarters of the longest, for chance is fixed here
            assert (at.x.state, at.chains.x.count) == ("bootstrapping", 0)

    play(scene)


def test_an_index_that_is_off() -> None:
    async def scene() -> None:
        replay = Replay()
        replay.index_on = False
        async with following(replay, names="X") as at:
            against = await at.upstreams.probe_all()
            assert "start that node with --index-enabled=true" in against[replay.url]
            await at.until(lambda: "--index-enabled=true" in at.upstreams.failing().get(replay.url, ""), "trouble")
            replay.index_on = True
            await at.until(lambda: at.x.waiting is not None, "its index being switched on")
            assert await at.upstreams.probe_all() == {}

    play(scene)


def test_probing_another_network_and_a_closed_port() -> None:
    async def scene() -> None:
        foreign, gone = Replay(), Replay()
        foreign.network_id = 1
        async with following(foreign, gone, names="") as at:
            await gone.stop()
            against = await at.upstreams.probe_all()
            assert "it is of network 1" in against[foreign.url]
            assert "cannot be reached" in against[gone.url]

    play(scene)


def test_a_tip_that_is_not_there() -> None:
    """It boasts of containers it does not hand out."""

    async def scene() -> None:
        boaster, sound = Replay(), Replay()
        boaster.show(X=20)
        boaster.boasts["X"] = 999
        sound.show(X=0, P=0, C=0)
        async with following(boaster, sound) as at:
            await at.until(lambda: "start index (20) >" in at.upstreams.failing().get(boaster.url, ""), "trouble")
            assert at.chains.x.count == 20
            assert at.x.progress.of != 20
            sound.shown.clear()
            await at.until(lambda: at.chains.counts() == ALL and at.x.bootstrapped, "the truth")
            assert at.upstreams.disabled() == {}

    play(scene)


# -- what we cannot read, and what hangs on it ---------------------------------------------------------------------


def test_an_unknown_block_stops_its_chain_and_those_that_wait_for_it() -> None:
    async def scene() -> None:
        replay = Replay()
        replay.chains["P"][3] = rewrapped(replay.chains["P"][3], inner=b"\0\0\0\0\0\x63 a block type of tomorrow")
        async with following(replay) as at:
            await at.until(lambda: at.p.why is not None and at.x.why is not None, "the end")
            assert "P container 3" in (at.p.why or "")
            assert "unknown block type 99" in (at.p.why or "")
            assert at.chains.p.count == 4
            assert [bool(one.unread) for one in at.chains.p.accepted] == [False, False, False, True]
            assert "which has stopped: " in (at.x.why or "")
            await at.until(lambda: at.chains.c.count == 12, "C goes on")
            assert at.c.state == "following"
            assert at.upstreams.disabled() == {}

    play(scene)


# -- transactions handed on ----------------------------------------------------------------------------------------


def test_issue_tx() -> None:
    async def scene() -> None:
        one, other = Replay(), Replay()
        async with following(one, other, names="", attempts=1) as at:
            assert (await at.upstreams.issue_tx("0x01", "hex")).startswith("2JVSB")
            assert (one.issued, other.issued) == (["0x01"], [])
            one.refuse_issue = "tx conflicts with other tx: abc"
            with pytest.raises(UpstreamError, match=r"^tx conflicts with other tx: abc$"):
                await at.upstreams.issue_tx("0x02", "hex")
            one.faults = [Fault("avm.issueTx", status=503)]
            await at.upstreams.issue_tx("0x03", "hex")
            assert other.issued == ["0x03"]
            at.clock.time += 60
            assert await at.upstreams.probe_all() == {}
            one.faults = [Fault("avm.issueTx", hang_up=True)]
            with pytest.raises(UpstreamDown):
                await at.upstreams.issue_tx("0x04", "hex")
            assert other.issued == ["0x03"]  # the first may have taken it
            at.clock.time += 60
            assert await at.upstreams.probe_all() == {}
            one.faults = [Fault("avm.issueTx", hang_s=60)]
            with pytest.raises(UpstreamDown, match=f"{one.url} gave no answer within 0.2 s: the transaction may still"):
                await at.upstreams.issue_tx("0x06", "hex", limit_s=0.2)
            assert other.issued == ["0x03"]
            for node in at.upstreams.members:
                at.upstreams.disable(node, "invalid")
            with pytest.raises(UpstreamDown, match="no upstream takes transactions"):
                await at.upstreams.issue_tx("0x05", "hex")

    play(scene)


def test_questions_go_to_the_next_upstream_and_end_in_time() -> None:
    async def scene() -> None:
        one, other = Replay(), Replay()
        one.platform = other.platform = {"platform.getProposedHeight": {"height": "7"}}
        question: tuple[str, str, dict[str, Any]] = ("/ext/bc/P", "platform.getProposedHeight", {})
        async with following(one, other, names="", attempts=1) as at:
            assert msgspec.json.decode(await at.upstreams.ask(*question)) == {"height": "7"}
            one.faults = [Fault("platform.getProposedHeight", status=503)]
            await at.upstreams.ask(*question)
            assert (one.asked(question[1]), other.asked(question[1])) == (2, 1)
            other.platform = {}
            with pytest.raises(UpstreamError, match=r"^rpc: can't find method"):
                await at.upstreams.ask(*question)
            other.platform = one.platform
            other.faults = [Fault("platform.getProposedHeight", hang_s=60)]
            with pytest.raises(UpstreamDown, match=r"no upstream answered platform.getProposedHeight within 0.2 s"):
                await at.upstreams.ask(*question, limit_s=0.2)
            for node in at.upstreams.members:
                at.upstreams.disable(node, "invalid")
            with pytest.raises(UpstreamDown, match=r"no upstream answers platform.getProposedHeight now"):
                await at.upstreams.ask(*question)

    play(scene)


def test_who_issues_a_transaction_learns_of_a_node_that_hangs_before_the_worker_gives_up() -> None:
    assert ISSUE_LIMIT_S < CALL_LIMIT_S
