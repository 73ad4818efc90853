"""Fetches a range of blocks from one upstream, with all their parts, and checks that all belong to the same chain."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn

import msgspec

from icefall.upstream.client import ByteBudget
from icefall.upstream.evm.block_parts import (
    FetchedBlock,
    check_receipts,
    checked,
    decode_header,
    decode_summary,
    json_list,
)
from icefall.upstream.evm.client import Call, EvmClient, Outcome
from icefall.upstream.evm.errors import IncompleteAnswer, NotThere, ReorgDuringFetch, RpcRefusal
from icefall.upstream.evm.probe import Capabilities, quantity
from icefall.wire.evm.trace_format import Header

_NOTHING = b"[]"


class TracerUntested(Exception):
    """A block with transactions, at an upstream whose tracers could not be tested yet: test them on this one."""

    def __init__(self, number: int) -> None:
        super().__init__(f"block {number} has transactions")
        self.number = number


class _PartialBlock(msgspec.Struct):
    """A block some of whose parts are still to be fetched."""

    header: Header
    block: bytes
    receipts: bytes
    calls: bytes | None = None
    diffs: bytes | None = None


async def fetch_run(
    client: EvmClient, capabilities: Capabilities, numbers: range, budget: ByteBudget, *, name: str = ""
) -> list[FetchedBlock]:
    """Consecutive blocks; fewer than requested where the chain ends, NotThere if it ends before the first.

    Blocks and receipts are fetched first, then traces, then once more the hash of the last block: if that has not
    changed, and each block is its successor's parent, then all were part of the chain the whole time, and the traces
    are theirs.
    """
    partial_blocks = await _blocks(client, capabilities, numbers, budget)
    traced = [partial for partial in partial_blocks if partial.header.txids]
    if traced and capabilities.sample is None:
        raise TracerUntested(traced[0].header.number)
    calls_format, diffs_format = capabilities.calls_format, capabilities.diffs_format
    if traced and (calls_format or diffs_format):
        await _traces(client, capabilities, traced, budget)
        await _recheck(client, partial_blocks[-1].header)
    return [
        FetchedBlock(
            partial.header.number,
            partial.block,
            partial.receipts,
            partial.calls if partial.header.txids or not calls_format else _NOTHING,
            partial.diffs if partial.header.txids or not diffs_format else _NOTHING,
            calls_format,
            diffs_format,
            name or client.name,
        )
        for partial in partial_blocks
    ]


async def _blocks(
    client: EvmClient, capabilities: Capabilities, numbers: range, budget: ByteBudget
) -> list[_PartialBlock]:
    """Blocks with transactions and receipts, checked against each other; each must be the child of the one before."""
    calls = [Call("eth_getBlockByNumber", (hex(number), True)) for number in numbers]
    if capabilities.block_receipts:
        calls += [Call("eth_getBlockReceipts", (hex(number),)) for number in numbers]
    outcomes = await client.call_all(calls, lane="blocks", budget=budget)
    blocks, receipts_of = outcomes[: len(numbers)], outcomes[len(numbers) :]
    ends = next((index for index, block in enumerate(blocks) if isinstance(block, NotThere)), len(blocks))
    if not ends:
        await raise_not_found(client, numbers[0])
    headers = [
        decode_header(_given(block), number) for block, number in zip(blocks[:ends], numbers[:ends], strict=True)
    ]
    for before, after in pairwise(headers):
        if after.parent_hash != before.hash:
            raise ReorgDuringFetch(f"block {after.number} is not the child of block {before.number}: {before.hash}")
    if capabilities.block_receipts:
        receipts = [bytes(_part(raw, header)) for raw, header in zip(receipts_of[:ends], headers, strict=True)]
    else:
        receipts = await _single_receipts(client, headers, budget)
    for raw, header in zip(receipts, headers, strict=True):
        check_receipts(raw, header)
    rows = zip(headers, blocks[:ends], receipts, strict=True)
    return [_PartialBlock(header, bytes(_given(block)), its_receipts) for header, block, its_receipts in rows]


async def raise_not_found(client: EvmClient, number: int) -> NoReturn:
    """Raise NotThere if the block is beyond the head, IncompleteAnswer if the upstream should have it."""
    head = quantity((await client.call_all([Call("eth_blockNumber", ())]))[0], "eth_blockNumber")
    if head >= number:
        raise IncompleteAnswer(f"{client.name} is at block {head} but has no block {number}")
    raise NotThere(f"{client.name} is at block {head}: there is no block {number} yet")


async def _single_receipts(client: EvmClient, headers: Sequence[Header], budget: ByteBudget) -> list[bytes]:
    calls = [Call("eth_getTransactionReceipt", (txid,)) for header in headers for txid in header.txids]
    outcomes = iter(await client.call_all(calls, lane="blocks", budget=budget))
    return [json_list([_part(next(outcomes), header) for _ in header.txids]) for header in headers]


async def _traces(
    client: EvmClient, capabilities: Capabilities, partial_blocks: Sequence[_PartialBlock], budget: ByteBudget
) -> None:
    """Fill in calls and diffs."""
    requests = capabilities.trace_requests
    calls = [
        Call(*request.call(partial.header.number, capabilities.omits_code))
        for request in requests
        for partial in partial_blocks
    ]
    outcomes = iter(await client.call_all(calls, lane="traces", budget=budget))
    for request in requests:
        for partial in partial_blocks:
            parts = checked(request.read, _part(next(outcomes), partial.header), partial.header)
            if parts.calls is not None:
                partial.calls = parts.calls
            if parts.diffs is not None:
                partial.diffs = parts.diffs


async def _recheck(client: EvmClient, header: Header) -> None:
    (outcome,) = await client.call_all([Call("eth_getBlockByNumber", (hex(header.number), False))], lane="blocks")
    if isinstance(outcome, NotThere) or decode_summary(_given(outcome)).hash != header.hash:
        raise ReorgDuringFetch(f"block {header.number} is no longer {header.hash}")


def _given(outcome: Outcome) -> msgspec.Raw:
    if isinstance(outcome, RpcRefusal):
        raise outcome
    return outcome


def _part(outcome: Outcome, header: Header) -> msgspec.Raw:
    """Return a part of a block that this upstream has."""
    if isinstance(outcome, NotThere):
        raise IncompleteAnswer(f"block {header.number} is known, but a part of it is missing: {outcome}")
    return _given(outcome)
