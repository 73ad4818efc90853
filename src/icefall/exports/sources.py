"""The sources of the rows of export jobs: what each of them can do, and that of EVM chains."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from icefall.evm.reading.directory import ChainDirectory
from icefall.exports.histories import KINDS
from icefall.exports.merging import BlockSpan, merged
from icefall.exports.model import DAY_S, ExportRequest, ExportState, FixedEnd
from icefall.exports.rows import COLUMNS

DISTANCE = 64  # blocks that the end stays behind the newest one, for each time it was rolled back


class EndReplaced(Exception):
    """The last block of a job was rolled back."""


class JobSource(Protocol):
    """The chains of jobs. `kind` is the type of a job."""

    def columns(self, kind: str) -> Mapping[str, Sequence[str]]:
        """The columns of each file of an export."""
        ...

    async def begin(self, request: ExportRequest, tries: int) -> ExportState:
        """Fix the last blocks. `tries`: how often one was rolled back."""
        ...

    def rows(
        self, kind: str, request: ExportRequest, state: ExportState, days: int
    ) -> AsyncIterator[tuple[str, Sequence[object]]]:
        """The rows of the next days, each with the name of its file; those of a file are in the order of time."""
        ...


def first_state(
    request: ExportRequest, ends: list[FixedEnd], times: Sequence[tuple[int, int]], tries: int = 0
) -> ExportState:
    """A job that has not read anything. `times` are those of the first and the last block of each chain."""
    first_day = min((first for first, _ in times), default=0) // DAY_S
    last_day = max((last for _, last in times), default=-1) // DAY_S
    if request.first_day is not None:
        first_day = max(first_day, request.first_day)
    return ExportState(ends=ends, first_day=first_day, next_day=first_day, last_day=last_day, tries=tries)


class EvmSource:
    """The transactions and transfers of addresses, and the transfers of tokens, on EVM chains."""

    def __init__(self, chains: ChainDirectory) -> None:
        self._chains = chains

    def columns(self, _: str) -> Mapping[str, Sequence[str]]:
        return COLUMNS

    async def begin(self, request: ExportRequest, tries: int) -> ExportState:
        ends, times = [], []
        for name in request.chains:
            chain = await self._chains.find(name)
            until = None if request.last_day is None else (request.last_day + 1) * DAY_S - 1
            tip, lowest = await chain.blocks.tip(), await chain.blocks.lowest()
            end = tip if until is None else await chain.blocks.at_or_before(until)
            if tip is not None and end is not None and tries:
                end = await chain.blocks.block(max(0, min(end.number, tip.number - tries * DISTANCE)))
            first = None if lowest is None else await chain.blocks.block(lowest)
            if first is not None and not first.time:  # a genesis of 1970, which has no transactions
                first = await chain.blocks.block(first.number + 1) or first
            if end is None or first is None:
                continue
            ends.append(FixedEnd(chain.info.id, end.number, end.block_hash.hex()))
            times.append((first.time, end.time))
        return first_state(request, ends, times, tries)

    async def rows(
        self, _: str, request: ExportRequest, state: ExportState, days: int
    ) -> AsyncIterator[tuple[str, Sequence[object]]]:
        spans = [await self._span(end, state.next_day, state.next_day + days) for end in state.ends]
        addresses = [bytes.fromhex(one[2:]) for one in request.addresses]
        tokens = [bytes.fromhex(one[2:]) for one in request.tokens]
        for kind in KINDS:
            async for values in merged(kind, spans, addresses, tokens):
                yield kind, values

    async def _span(self, end: FixedEnd, first_day: int, end_day: int) -> BlockSpan:
        """The blocks of some days, as far as the job reads them."""
        chain = await self._chains.find(end.chain)
        last = await chain.blocks.block(end.block)
        if last is None or last.block_hash.hex() != end.block_hash:
            raise EndReplaced
        before = await chain.blocks.at_or_before(first_day * DAY_S - 1)
        until = await chain.blocks.at_or_before(end_day * DAY_S - 1)
        first = 0 if before is None else before.number + 1
        return BlockSpan(chain, first, 0 if until is None else min(until.number, end.block) + 1)
