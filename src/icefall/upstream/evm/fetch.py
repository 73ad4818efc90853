"""A run of blocks from one upstream: every part of each, whole, and of the same chain from first to last."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn

import msgspec

from icefall.upstream.client import ByteBudget
from icefall.upstream.evm.client import Call, EvmClient, Outcome
from icefall.upstream.evm.errors import IncompleteAnswer, NotThere, ReorgDuringFetch, RpcRefusal
from icefall.upstream.evm.parts import (
    FetchedBlock,
    Header,
    check_calls,
    check_diffs,
    check_receipts,
    check_replay,
    check_trace_block,
    header,
    joined,
    sketch,
    taken_apart,
)
from icefall.upstream.evm.probe import Capabilities, both_call, calls_call, diffs_call, quantity

_NOTHING = b"[]"


class TracerUntested(Exception):
    """A block with transactions, at an upstream whose tracers were never seen at work: try them on this one."""

    def __init__(self, number: int) -> None:
        super().__init__(f"block {number} has transactions")
        self.number = number


class _Whole(msgspec.Struct):
    """A block on its way to being fetched."""

    of: Header
    block: bytes
    receipts: bytes
    calls: bytes | None = None
    diffs: bytes | None = None


async def fetch_run(
    client: EvmClient, can: Capabilities, numbers: range, room: ByteBudget, *, name: str = ""
) -> list[FetchedBlock]:
    """Consecutive blocks; fewer than asked for where the chain ends, NotThere if it ends before the first.

    Blocks and receipts come first, then traces, then once more the hash of the last: if that has not changed, and each
    block is its successor's parent, then all of them were part of the chain the whole time, and the traces are theirs.
    """
    wholes = await _blocks(client, can, numbers, room)
    traced = [whole for whole in wholes if whole.of.txids]
    if traced and (can.calls_by or can.diffs_by):
        if can.sample is None:
            raise TracerUntested(traced[0].of.number)
        await _traces(client, can, traced, room)
        await _recheck(client, wholes[-1].of)
    return [
        FetchedBlock(
            whole.of.number,
            whole.block,
            whole.receipts,
            whole.calls if whole.of.txids or not can.calls_by else _NOTHING,
            whole.diffs if whole.of.txids or not can.diffs_by else _NOTHING,
            can.calls_by,
            can.diffs_by,
            name or client.name,
        )
        for whole in wholes
    ]


async def _blocks(client: EvmClient, can: Capabilities, numbers: range, room: ByteBudget) -> list[_Whole]:
    """Blocks with their transactions and receipts, checked against each other, each the child of the one before."""
    calls = [Call("eth_getBlockByNumber", (hex(number), True)) for number in numbers]
    if can.block_receipts:
        calls += [Call("eth_getBlockReceipts", (hex(number),)) for number in numbers]
    outcomes = await client.ask(calls, lane="blocks", room=room)
    blocks, receipts_of = outcomes[: len(numbers)], outcomes[len(numbers) :]
    ends = next((place for place, block in enumerate(blocks) if isinstance(block, NotThere)), len(blocks))
    if not ends:
        await nothing_there(client, numbers[0])
    headers = [header(_given(block), number) for block, number in zip(blocks[:ends], numbers[:ends], strict=True)]
    for before, after in pairwise(headers):
        if after.parent_hash != before.hash:
            raise ReorgDuringFetch(f"block {after.number} is not the child of block {before.number}: {before.hash}")
    if can.block_receipts:
        receipts = [bytes(_part(raw, of)) for raw, of in zip(receipts_of[:ends], headers, strict=True)]
    else:
        receipts = await _single_receipts(client, headers, room)
    for raw, of in zip(receipts, headers, strict=True):
        check_receipts(raw, of)
    rows = zip(headers, blocks[:ends], receipts, strict=True)
    return [_Whole(of, bytes(_given(block)), its_receipts) for of, block, its_receipts in rows]


async def nothing_there(client: EvmClient, number: int) -> NoReturn:
    """A block that is missing where the chain has come further is no end of the chain."""
    head = quantity((await client.ask([Call("eth_blockNumber", ())]))[0], "eth_blockNumber")
    if head >= number:
        raise IncompleteAnswer(f"{client.name} is at block {head} but has no block {number}")
    raise NotThere(f"{client.name} is at block {head}: there is no block {number} yet")


async def _single_receipts(client: EvmClient, headers: Sequence[Header], room: ByteBudget) -> list[bytes]:
    calls = [Call("eth_getTransactionReceipt", (txid,)) for of in headers for txid in of.txids]
    outcomes = iter(await client.ask(calls, lane="blocks", room=room))
    return [joined([_part(next(outcomes), of) for _ in of.txids]) for of in headers]


async def _traces(client: EvmClient, can: Capabilities, wholes: Sequence[_Whole], room: ByteBudget) -> None:
    """Fills in calls and diffs: with one request a block where the upstream allows it."""
    lean = can.lean
    if can.mux_tracer:
        calls = [both_call(whole.of.number, leave_out_code=lean) for whole in wholes]
        for whole, outcome in zip(wholes, await client.ask(calls, lane="traces", room=room), strict=True):
            whole.calls, whole.diffs = taken_apart(_part(outcome, whole.of), whole.of)
        return
    numbers = [whole.of.number for whole in wholes]
    calls_of = {
        "callTracer": [calls_call(number) for number in numbers],
        "trace_block": [Call("trace_block", (hex(number),)) for number in numbers],
    }.get(can.calls_by, [])
    diffs_of = {
        "prestateTracer": [diffs_call(number, leave_out_code=lean) for number in numbers],
        "trace_replayBlockTransactions": [
            Call("trace_replayBlockTransactions", (hex(number), ["stateDiff"])) for number in numbers
        ],
    }.get(can.diffs_by, [])
    outcomes = await client.ask([*calls_of, *diffs_of], lane="traces", room=room)
    for whole, outcome in zip(wholes, outcomes[: len(calls_of)], strict=False):
        raw = _part(outcome, whole.of)
        (check_calls if can.calls_by == "callTracer" else check_trace_block)(raw, whole.of)
        whole.calls = bytes(raw)
    for whole, outcome in zip(wholes, outcomes[len(calls_of) :], strict=False):
        raw = _part(outcome, whole.of)
        (check_diffs if can.diffs_by == "prestateTracer" else check_replay)(raw, whole.of)
        whole.diffs = bytes(raw)


async def _recheck(client: EvmClient, of: Header) -> None:
    (outcome,) = await client.ask([Call("eth_getBlockByNumber", (hex(of.number), False))], lane="blocks")
    if isinstance(outcome, NotThere) or sketch(_given(outcome)).hash != of.hash:
        raise ReorgDuringFetch(f"block {of.number} is no longer {of.hash}")


def _given(outcome: Outcome) -> msgspec.Raw:
    if isinstance(outcome, RpcRefusal):
        raise outcome
    return outcome


def _part(outcome: Outcome, of: Header) -> msgspec.Raw:
    """A part of a block that was there a moment ago."""
    if isinstance(outcome, NotThere):
        raise IncompleteAnswer(f"block {of.number} is there, but a part of it is not: {outcome}")
    return _given(outcome)
