"""Reads of one upstream, without failover: a range of blocks with all their parts, checked to belong to the same chain,
and its own view of the chain, to compare upstreams with each other and to prove a branch by its headers alone.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NoReturn

import msgspec

from icefall.upstream.client import ByteBudget, InvalidAnswer
from icefall.upstream.evm.block_parts import (
    FetchedBlock,
    check_receipts,
    checked,
    decode_header,
    decode_summary,
    json_list,
    proven_header,
)
from icefall.upstream.evm.client import Call, EvmClient, Outcome
from icefall.upstream.evm.errors import (
    IncompleteAnswer,
    NotThere,
    ReorgDuringFetch,
    RpcRefusal,
    TooHeavyAlone,
    WrongChain,
)
from icefall.upstream.evm.probe import Capabilities, quantity
from icefall.wire.evm.trace_format import Header, JsonText, TraceRequest

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
    """Fill in calls and diffs: of whole blocks, or one transaction at a time where a block is too heavy."""
    wanted = [(request, partial) for request in capabilities.trace_requests for partial in partial_blocks]
    whole = [client.whole_blocks.fits(len(partial.header.txids)) for partial in partial_blocks]
    whole *= len(capabilities.trace_requests)
    calls = [
        Call(*request.call(partial.header.number, capabilities.omits_code))
        for (request, partial), is_whole in zip(wanted, whole, strict=True)
        if is_whole
    ]
    outcomes = iter(await client.call_all(calls, lane="traces", budget=budget, can_split=True))
    for (request, partial), is_whole in zip(wanted, whole, strict=True):
        header = partial.header
        outcome = next(outcomes) if is_whole else None
        if isinstance(outcome, TooHeavyAlone):
            client.whole_blocks.refuse(len(header.txids))
            outcome = None
        if outcome is None:
            raw: JsonText = await _tx_traces(client, capabilities, request, header, budget)
        else:
            raw = _part(outcome, header)
        parts = checked(request.read, raw, header)
        if parts.calls is not None:
            partial.calls = parts.calls
        if parts.diffs is not None:
            partial.diffs = parts.diffs


async def _tx_traces(
    client: EvmClient, capabilities: Capabilities, request: TraceRequest, header: Header, budget: ByteBudget
) -> bytes:
    """The traces of a block, fetched one transaction at a time."""
    of_tx = request.of_tx
    calls = [Call(*of_tx.call(txid, capabilities.omits_code)) for txid in header.txids]
    outcomes = await client.call_all(calls, lane="traces", budget=budget)
    return of_tx.joined(header.txids, [_part(outcome, header) for outcome in outcomes])


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


_HEADERS_AT_ONCE = 64


async def read_head(client: EvmClient) -> int:
    return quantity((await client.call_all([Call("eth_blockNumber", ())]))[0], "eth_blockNumber")


async def read_block_hash(client: EvmClient, number: int) -> bytes:
    """Fetch the hash of a block, proven by its header. NotThere if there is no such block."""
    try:
        raw = await client.call("eth_getBlockByNumber", hex(number), False)
    except NotThere:
        await raise_not_found(client, number)
    return proven_header(raw, number, client.name).block_hash


class UpstreamView:
    def __init__(self, name: str, client: EvmClient, chain_id: Callable[[], int | None]) -> None:
        self.name = name
        self._client = client
        self._chain_id = chain_id

    async def head(self) -> int:
        return await read_head(self._client)

    async def block_hash(self, number: int) -> bytes | None:
        """The hash of the block of that number now; None if there is none."""
        try:
            return await read_block_hash(self._client, number)
        except NotThere:
            return None

    async def check_chain_id(self) -> None:
        """Check the chain ID once more: what answers at an address may have changed since it was probed."""
        served = quantity((await self._client.call_all([Call("eth_chainId", ())]))[0], "eth_chainId")
        if self._chain_id() not in (None, served):
            raise WrongChain(f"{self.name} serves chain {served}, not {self._chain_id()}")

    async def linked_hashes(self, numbers: range, parent: bytes) -> list[bytes]:
        """The hashes of consecutive blocks that follow `parent`, recomputed from their headers wherever their layout is
        known. InvalidAnswer if a hash is not that of its header, or a block is not the child of the one before."""
        hashes: list[bytes] = []
        for start in range(0, len(numbers), _HEADERS_AT_ONCE):
            some = numbers[start : start + _HEADERS_AT_ONCE]
            calls = [Call("eth_getBlockByNumber", (hex(number), False)) for number in some]
            for number, outcome in zip(some, await self._client.call_all(calls, lane="blocks"), strict=True):
                if isinstance(outcome, RpcRefusal):
                    raise InvalidAnswer(f"{self.name} does not send the header of block {number}: {outcome}")
                header = proven_header(outcome, number, self.name)
                if header.parent_hash != parent:
                    raise InvalidAnswer(f"{self.name} sent block {number} that is not the child of block {number - 1}")
                parent = header.block_hash
                hashes.append(parent)
        return hashes
