"""trace_block and trace_replayBlockTransactions decode to what callTracer and prestateTracer do, as far as they go."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evm.indexed import indexing
from tests.evm.parity_samples import SAMPLES, Sample, differing, samples, tables
from tests.evm.reading_scene import indexed as scene_of_chain
from tests.evm.test_evm_fuzz import DAMAGE, UNEXPECTED
from tests.upstream.evm_parity_shapes import trace_block, trace_replay
from tests.upstream.evm_recording import recorded_blocks, recorded_state
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.replay import FOREVER

from icefall.evm.encoding import unpack_calls, unpack_uint
from icefall.wire.errors import WireError
from icefall.wire.evm.decode import decode_full
from icefall.wire.evm.geth_traces import decode_geth_calls, decode_geth_diffs
from icefall.wire.evm.parity_format import decode_parity_calls, decode_parity_diffs
from icefall.wire.evm.storage import slot_changes
from icefall.wire.evm.trace_format import CREATE3_PROXY_CODE
from icefall.wire.evm.types import AccountDiff, CallFrame, IncompleteBlock, Trace, TxDiff

HASH = "0x" + "ab" * 32
ONE, TWO, THREE = ("0x" + digit * 40 for digit in "123")
CODE = "0x6001"


# -- against a real anvil ------------------------------------------------------------------------------------------


def without_root_gas(trace: Trace) -> Trace:
    """anvil's callTracer counts the root's gas through the whole block; it is not used."""
    root, *inner = trace.frames
    return msgspec.structs.replace(trace, frames=(msgspec.structs.replace(root, gas_used=0), *inner))


@pytest.mark.parametrize("name", SAMPLES)
def test_frames_are_those_of_the_call_tracer(name: str) -> None:
    """Every field of every frame that matters, its number, and how many there are; all but the root's gasUsed."""
    kinds: Counter[str] = Counter()
    for sample in samples(name):
        by_debug = [without_root_gas(trace) for trace in decode_geth_calls(sample.calls)]
        by_parity = [without_root_gas(trace) for trace in decode_parity_calls(sample.trace_block)]
        assert by_parity == by_debug, sample.number
        kinds.update(frame.opcode for trace in by_parity for frame in trace.frames)
    assert kinds.keys() >= {"CALL", "CALLCODE", "CREATE", "CREATE2", "SELFDESTRUCT"}


def difference(by_debug: AccountDiff | None, by_parity: AccountDiff | None) -> str:
    """In what the two differ, besides what is omitted because it did not change; empty if in nothing."""
    if by_debug is None or by_parity is None:
        return "only by parity" if by_debug is None else "missing, gone" if by_debug.is_gone else "missing"
    fields = {name: getattr(by_parity, name) for name in AccountDiff.__struct_fields__}
    if by_parity.balance_before is None and by_debug.balance_before == by_debug.balance_after:
        fields |= {"balance_before": by_debug.balance_before, "balance_after": by_debug.balance_after}
    if by_parity.had_code is None and by_debug.had_code == by_debug.has_code:
        fields |= {"had_code": by_debug.had_code, "has_code": by_debug.has_code}
    if by_parity.nonce_before is None or by_debug.nonce_before is None:  # it did not change, or the account is gone
        fields["nonce_before"] = by_debug.nonce_before
    if slot_changes([by_parity.storage]) == slot_changes([by_debug.storage]):  # written in another order
        fields["storage"] = by_debug.storage
    return " ".join(name for name, value in fields.items() if value != getattr(by_debug, name))


def diff_pairs(sample: Sample) -> list[tuple[TxDiff, TxDiff]]:
    return list(zip(decode_geth_diffs(sample.diffs), decode_parity_diffs(sample.trace_replay), strict=True))


DIFFERENCES = {
    # destroyed by an older contract's SELFDESTRUCT: an account that became empty, whose code is omitted
    "berlin-1": {"had_code has_code is_gone": 1},
    # and: had money, was made there and destroyed in one transaction: not mentioned at all
    "shanghai": {"had_code has_code is_gone": 21, "missing, gone": 2},
    # and: delegations (EIP-7702), set or cleared
    "prague": {"had_code has_code": 5, "missing, gone": 3},
}


@pytest.mark.parametrize("name", SAMPLES)
def test_diffs_are_those_of_the_prestate_tracer(name: str) -> None:
    """Balances to the wei, code and storage; anvil hides three things, no others, and frames or the block name them."""
    found: Counter[str] = Counter()
    for sample in samples(name):
        for (by_debug, by_parity), trace in zip(diff_pairs(sample), decode_geth_calls(sample.calls), strict=True):
            assert by_debug.tx_hash == by_parity.tx_hash
            debug, parity = ({one.address: one for one in diff.accounts} for diff in (by_debug, by_parity))
            destroyed = {frame.sender for frame in trace.frames if frame.opcode == "SELFDESTRUCT"}
            for address in debug.keys() | parity.keys():
                apart = difference(debug.get(address), parity.get(address))
                found[apart] += 1
                assert ("gone" in apart) <= (address in destroyed)
    assert found.pop("") > 100
    assert found == DIFFERENCES[name]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_replay_speaks_as_anvil_does(name: str) -> None:
    """The shapes the replay makes of recorded answers are anvil's own, but for what no call trace holds."""
    for sample in samples(name):
        calls, diffs = msgspec.json.decode(sample.calls), msgspec.json.decode(sample.diffs)
        real = msgspec.json.decode(sample.trace_block)
        made = trace_block(calls, sample.block)
        for row in (*made, *real):
            row.pop("blockHash")  # of a chain whose blocks hold random numbers
            if row["type"] == "create" and "error" in row and row["result"] is not None:
                row["result"].pop("address")
            if not row["traceAddress"] and row["result"] is not None:
                row["result"].pop("gasUsed")
        assert made == real, sample.number
        assert trace_replay(calls, diffs) == msgspec.json.decode(sample.trace_replay), sample.number


# -- through the follower ------------------------------------------------------------------------------------------


def without_debug(chain: str) -> EvmReplay:
    """A recorded chain of a client that offers trace_* alone; of berlin-1 in anvil's own words."""
    replay = EvmReplay(chain)
    replay.parity, replay.off = True, {"debug_traceBlockByNumber"}
    for sample in samples(chain) if chain in SAMPLES else ():
        answers = {"trace_block": sample.trace_block, "trace_replayBlockTransactions": sample.trace_replay}
        for method, raw in answers.items():
            replay.evm_faults.append(EvmFault(method, FOREVER, sample.number, result=raw))
    return replay


def indexed(path: Path, replay: EvmReplay) -> tuple[Path, list[str]]:
    async def run() -> list[str]:
        async with indexing(path, replay) as it:
            await it.follower.run()
            return it.upstream.degraded()

    return path, asyncio.run(run())


@pytest.mark.parametrize("chain", ["berlin-1", "geth-1"])
def test_an_index_without_debug_is_the_same(tmp_path: Path, chain: str) -> None:
    """Every row of every table, but for what was asked of state: more rows, each of them true.

    The diff hides whether a transaction gives its recipient a delegation or takes it; its authorizations tell.
    """
    by_debug = scene_of_chain(chain).path
    by_parity, lacks = indexed(tmp_path / "parity", without_debug(chain))
    assert [text.split(":")[0] for text in lacks if "trace_" in text] == [
        "call traces are trace_block's",
        "state diffs are trace_replayBlockTransactions'",
    ]
    missing, more = differing(by_debug, by_parity)
    codes = tables(by_parity)["code"]
    for change in missing.pop("code", []):  # asked at the start of a run, and runs are cut by the bytes fetched
        held = [one for one in codes if one["address"] == change["address"] and one["block"] <= change["block"]]
        assert max(held, key=lambda one: one["block"], default=change)["has_code"] == change["has_code"]
    state = recorded_state(chain)
    for change in more.pop("code"):
        assert change["has_code"] == (state.code("0x" + change["address"].hex(), max(change["block"], 0)) != "0x")
    for balance in more.pop("native_balance"):  # of accounts that ran SELFDESTRUCT
        true = state.at(balance["block"], "native", "0x" + balance["address"].hex())
        assert unpack_uint(balance["balance"]) == int(true or 0)
    assert trees_of(missing.pop("call_tree")) == trees_of(more.pop("call_tree"))
    assert missing == more == {}


def trees_of(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What every client says of a call. Errors have words of their own, and gas of a failed call may be missing."""
    return sorted(
        (
            row["tx_at"],
            [(call.depth, call.opcode, call.sender, call.value, call.input, call.is_reverted) for call in calls],
        )
        for row in rows
        if (calls := unpack_calls(row["calls"]))
    )


# -- by hand -------------------------------------------------------------------------------------------------------


def row(kind: str = "call", at: tuple[int, ...] = (), **changed: Any) -> dict[str, Any]:
    """A sound row; keys of its action and result are found where they belong."""
    action: dict[str, Any] = {"from": ONE, "gas": "0x9", "value": "0x0"}
    result: dict[str, Any] = {"gasUsed": "0x5"}
    if kind == "call":
        action |= {"callType": "call", "to": TWO, "input": "0x"}
    elif kind == "create":
        action |= {"init": CODE}
        result |= {"address": THREE, "code": CODE}
    else:
        action = {"address": ONE, "refundAddress": TWO, "balance": "0x7"}
    fields = {"action": action, "result": result, "type": kind, "traceAddress": list(at), "transactionHash": HASH}
    for key, value in changed.items():
        (fields if key in ("result", "error", "type", "transactionHash") else action)[key.rstrip("_")] = value
    return fields


def frames(*rows: dict[str, Any]) -> tuple[CallFrame, ...]:
    (trace,) = decode_parity_calls(json.dumps(rows).encode())
    return trace.frames


def test_the_words_of_calls() -> None:
    words = {"call": "CALL", "callcode": "CALLCODE", "delegatecall": "DELEGATECALL", "staticcall": "STATICCALL"}
    assert {word: frames(row(callType=word))[0].opcode for word in words} == words
    assert frames(row(callType="callCode"))[0].opcode == "CALLCODE"
    for method, kind in {"create": "CREATE", "create2": "CREATE2", "none": "CREATE", None: "CREATE"}.items():
        assert frames(row("create", creationMethod=method))[0].opcode == kind
    proxy = frames(row("create", init=CREATE3_PROXY_CODE))[0]
    assert (proxy.opcode, proxy.is_create3_proxy) == ("CREATE2", True)
    for broken in (row(callType="jump"), row(callType=None), row("create", creationMethod="egg"), row(type="vote")):
        with pytest.raises(WireError):
            frames(broken)


def test_only_frames_that_matter_are_kept() -> None:
    kept = frames(
        row(), row(at=(0,)), row(at=(1,), value="0x1"), row(at=(2,), value="0x1", callType="delegatecall"),
        row("create", (3,)), row("suicide", (4,), result=None),
    )  # fmt: skip
    assert [(frame.number, frame.opcode) for frame in kept] == [
        (0, "CALL"),
        (2, "CALL"),
        (4, "CREATE"),
        (5, "SELFDESTRUCT"),
    ]
    destruction = kept[-1]
    assert (destruction.sender.hex(), destruction.to.hex(), destruction.value) == ("1" * 40, "2" * 40, 7)


def test_rows_are_put_in_order() -> None:
    """anvil names a destruction before the calls that the same contract made first."""
    kept = frames(
        row(), row(at=(0,), value="0x1"), row("selfdestruct", (0, 1), result=None), row(at=(0, 0), value="0x2"),
        row(at=(1,), value="0x3"),
    )  # fmt: skip
    assert [(frame.number, frame.value) for frame in kept] == [(0, 0), (1, 1), (2, 2), (3, 7), (4, 3)]


def test_failures_reach_down() -> None:
    kept = frames(
        row(), row(at=(0,), value="0x1", error="Reverted"), row("create", (0, 0)),
        row("create", (1,), error="Reverted"), row("create", (2,), error="Out of gas", result=None),
        row(at=(3,), value="0x1"),
    )  # fmt: skip
    assert [frame.is_reverted for frame in kept] == [False, True, True, True, True, False]
    assert [bool(frame.to) for frame in kept] == [True, True, True, False, False, True]


def test_gas_of_what_failed() -> None:
    """Reverted: reported. Otherwise all of it, unless the call never began."""
    assert frames(row(error="Reverted"))[0].gas_used == 5
    assert frames(row(error="Out of gas", result=None))[0].gas_used == 9
    assert frames(row(error="Insufficient balance for transfer", result=None))[0].gas_used == 0


def test_rewards_belong_to_no_transaction() -> None:
    reward = {"action": {"author": ONE, "rewardType": "block", "value": "0x1"}, "traceAddress": [], "type": "reward"}
    assert len(frames(row(), {**reward, "result": None, "transactionHash": None})) == 1
    assert decode_parity_calls(json.dumps([reward]).encode()) == ()


@pytest.mark.parametrize("paths", [[(0,)], [(), ()], [(), (1,)], [(), (0, 0)], [(), (0,), (0,)], [(), (-1,)]])
def test_traces_with_holes_are_refused(paths: list[tuple[int, ...]]) -> None:
    with pytest.raises(IncompleteBlock):
        frames(*[row(at=path) for path in paths])


def accounts(**fields: Any) -> AccountDiff:
    account = {"balance": "=", "nonce": "=", "code": "=", "storage": {}} | fields
    raw = json.dumps([{"stateDiff": {ONE: account}, "transactionHash": HASH, "output": "0x", "trace": []}])
    (diff,) = decode_parity_diffs(raw.encode())
    return diff.accounts[0]


def test_changes_of_accounts() -> None:
    address = bytes.fromhex(ONE[2:])
    nothing = AccountDiff(address, None, None, None, None, False, False)
    changed = {"*": {"from": "0x5", "to": "0x7"}}
    assert accounts() == nothing
    assert accounts(balance=changed) == msgspec.structs.replace(nothing, balance_before=5, balance_after=7)
    born = {"balance": {"+": "0x1"}, "nonce": {"+": "0x1"}, "code": {"+": CODE}, "storage": {HASH: {"+": HASH}}}
    storage = f'{{}}\n{{"{HASH}":"{HASH}"}}'.encode()
    assert accounts(**born) == AccountDiff(address, 0, 1, False, True, False, True, nonce_before=0, storage=storage)
    assert accounts(balance={"+": "0x1"}, code={"+": "0x"}).has_code is False
    gone = {"balance": {"-": "0x9"}, "nonce": {"-": "0x1"}, "code": {"-": CODE}, "storage": {HASH: {"-": HASH}}}
    assert accounts(**gone) == AccountDiff(address, 9, 0, True, False, True, True, nonce_before=1)
    assert accounts(nonce=changed).nonce_before == 5
    delegated = accounts(code={"*": {"from": "0x", "to": "0xef0100" + "11" * 20}})
    assert (delegated.had_code, delegated.has_code, delegated.is_gone) == (False, True, False)
    assert accounts(storage={HASH: "="}).changed_storage is False
    assert accounts(storage={HASH: {"*": {"from": HASH, "to": HASH}}}).changed_storage is True


@pytest.mark.parametrize(
    "wrong", ["", "+", {}, {"+": "0x1", "-": "0x1"}, {"*": "0x1"}, {"*": {"from": "0x1"}}, 1, None]
)
def test_changes_that_are_none(wrong: Any) -> None:
    with pytest.raises(WireError):
        accounts(balance=wrong)


def test_what_is_missing_is_said() -> None:
    recorded = recorded_blocks("berlin-1")[1]
    with pytest.raises(IncompleteBlock, match="no state diff"):
        decode_parity_diffs(json.dumps([{"stateDiff": None, "transactionHash": HASH}]).encode())
    with pytest.raises(WireError, match="no known format"):
        decode_full(recorded.block, recorded.receipts, b"[]", None, calls_format="flatCallTracer")


# -- damaged -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["trace_block", "trace_replay"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_damaged_answers_give_our_own_errors(part: str, seed: int) -> None:
    chance = random.Random(seed)
    raw = getattr(chance.choice([one for one in samples("berlin-1") if len(one.trace_block) < 30_000]), part)
    with suppress(WireError):
        (decode_parity_calls if part == "trace_block" else decode_parity_diffs)(chance.choice(DAMAGE)(raw, chance))


VALUES = st.recursive(
    st.sampled_from(UNEXPECTED) | st.text(max_size=4) | st.sampled_from(["=", ONE, HASH, "call", "create"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["+", "-", "*", "from", "to"]), inner),
    max_leaves=6,
)


@given(st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(row(), VALUES)), max_size=3), st.binary(max_size=20))
@settings(max_examples=300, deadline=None)
def test_other_rows_give_our_own_errors(rows: list[dict[str, Any]], noise: bytes) -> None:
    sound = [{**row(), **changed} for changed in rows]
    diffs = [{"stateDiff": {ONE: {"balance": one.get("action", "="), "code": one.get("result", "=")}}} for one in rows]
    for raw in (json.dumps(sound).encode(), json.dumps(rows).encode(), json.dumps(diffs).encode(), noise):
        for decode in (decode_parity_calls, decode_parity_diffs):
            with suppress(WireError):
                decode(raw)


@pytest.mark.parametrize("decode", [decode_parity_calls, decode_parity_diffs])
def test_rows_that_are_nested_without_end_give_our_own_error(decode: Callable[[bytes], object]) -> None:
    with pytest.raises(WireError):
        decode(b"[" * 100_000)
