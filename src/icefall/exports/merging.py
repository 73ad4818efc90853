"""The rows of several addresses and tokens on several chains, merged in the order of time, page by page."""

import asyncio
import heapq
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

from icefall.evm.encoding import position_of
from icefall.evm.enriching.reader import TokenDetails
from icefall.evm.reading.directory import EvmChain
from icefall.evm.reading.model import TransferRead
from icefall.exports.histories import READERS, TOKEN_READERS, HistoryRead, HistoryRow, HistorySpan, cursor_of
from icefall.exports.rows import RowText

_HELD_ROWS = 20_000  # of all lists together
_PAGE_MAX, _PAGE_MIN = 500, 10
_CURRENCY = "usd"  # prices are not exported, but are read with the names

RowKey = tuple[int, int, tuple[int, int], int]  # time, chain, place in the chain, address


class BlockSpan(NamedTuple):
    """The blocks of a chain that are read: from `first` up to, but not including, `end`."""

    chain: EvmChain
    first: int
    end: int


class _List:
    """The rows of one kind of one address or token on one chain. `page` holds those that were read and not taken."""

    def __init__(self, read: HistoryRead, span: BlockSpan, numbers: tuple[int, int], address: bytes) -> None:
        self._read = read
        self._chain = span.chain
        self._text = RowText(span.chain.info, span.chain.method_names)
        self._numbers = numbers
        self._address = address
        self._after = (position_of(span.first, 0) - 1, 0)
        self._high = position_of(span.end, 0)
        self._is_over = span.first >= span.end
        self.page: list[tuple[RowKey, list[object]]] = []

    async def load(self, count: int) -> bool:
        """Read the next page, last row first; False after the last one."""
        if self._is_over:
            return False
        rows = await self._read(self._chain.reader, HistorySpan(self._address, self._after, self._high), count)
        self._is_over = len(rows) < count
        if not rows:
            return False
        self._after = cursor_of(rows[-1])
        tokens = await self._tokens(rows)
        self.page = [(self._key(row), self._text.values(self._address, row, tokens)) for row in reversed(rows)]
        await asyncio.sleep(0)
        return True

    async def _tokens(self, rows: Sequence[HistoryRow]) -> Mapping[int, TokenDetails]:
        refs = {row.token_ref for row in rows if isinstance(row, TransferRead)}
        return await self._chain.enriched.priced_tokens(refs, _CURRENCY) if refs else {}

    def _key(self, row: HistoryRow) -> RowKey:
        chain, address = self._numbers
        return (row.location.time, chain, cursor_of(row), address)


async def merged(
    kind: str, spans: Sequence[BlockSpan], addresses: Sequence[bytes], tokens: Sequence[bytes] = ()
) -> AsyncIterator[list[object]]:
    """Yield the rows of a kind of all addresses and tokens on all chains, oldest first."""
    wanted = [(READERS[kind], address) for address in addresses]
    if kind in TOKEN_READERS:
        wanted += [(TOKEN_READERS[kind], token) for token in tokens]
    lists = [
        _List(read, span, (chain, number), address)
        for chain, span in enumerate(spans)
        for number, (read, address) in enumerate(wanted)
    ]
    count = max(_PAGE_MIN, min(_PAGE_MAX, _HELD_ROWS // max(1, len(lists))))
    heap: list[tuple[RowKey, int, list[object]]] = []
    for index, one in enumerate(lists):
        if await one.load(count):
            key, values = one.page.pop()
            heap.append((key, index, values))
    heapq.heapify(heap)
    while heap:
        _, index, values = heap[0]
        yield values
        one = lists[index]
        if one.page or await one.load(count):
            key, values = one.page.pop()
            heapq.heapreplace(heap, (key, index, values))
        else:
            heapq.heappop(heap)
