"""Counts of messages between chains, over all indexed chains: by period, by window of time, and by source and
destination.

A message counts once: on the chain that sent it, at the time of sending, if that chain is indexed and its blockchain ID
is known; else on the chain that received it, at the time of receiving. A chain whose blockchain ID is not known counts
what it sent to chains that are not indexed. So no two chains count the same message, whatever order they are indexed
in.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from icefall.db.engine import Reader
from icefall.db.statements import load
from icefall.evm.reading.directory import EvmChain
from icefall.evm.reading.links import BlockchainIds
from icefall.wire.evm.messages import RECEIVED, SENT

SQL = load("icefall.evm.reading", "message_counts.sql")
HOUR_S, DAY_S = 3600, 86400
_NEVER = 1 << 40  # later than all times


class PeriodCount(NamedTuple):
    """A stored count: of a period of one chain, a kind and the other chain."""

    start: int
    kind: int
    peer: bytes
    messages: int


class ChainPair(NamedTuple):
    """The blockchain IDs of the two chains of a message. Empty: not kept apart."""

    source: bytes = b""
    destination: bytes = b""


class PairFilter(NamedTuple):
    """The pairs to be counted; None: any. And which of both sides is kept apart."""

    source: bytes | None = None
    destination: bytes | None = None
    by_source: bool = False
    by_destination: bool = False

    def group_of(self, pair: ChainPair) -> ChainPair | None:
        """The group that a pair counts in; None: in none."""
        if self.source not in (None, pair.source) or self.destination not in (None, pair.destination):
            return None
        return ChainPair(pair.source if self.by_source else b"", pair.destination if self.by_destination else b"")


class MessageCounts:
    """The stored counts of one chain."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def newest_start(self, size: int, before: int) -> int | None:
        """The start of the newest period with messages that begins before a time."""
        rows = await self._reader.rows(SQL.newest_start, {"size": size, "before": before})
        start: int | None = rows[0][0]
        return start

    async def between(self, size: int, first: int, end: int) -> list[PeriodCount]:
        rows = await self._reader.rows(SQL.counts_between, {"size": size, "first": first, "end": end})
        return [PeriodCount(*row) for row in rows]

    async def since(self, first: int) -> list[PeriodCount]:
        """The counts of all hours from that which begins at `first` on."""
        midnight = -(-first // DAY_S) * DAY_S
        rows = await self._reader.rows(SQL.counts_since, {"first": first, "midnight": midnight})
        return [PeriodCount(first, kind, peer, int(messages)) for kind, peer, messages in rows]

    async def of_all_time(self) -> list[PeriodCount]:
        rows = await self._reader.rows(SQL.counts_of_all)
        return [PeriodCount(0, kind, peer, messages) for kind, peer, messages, _ in rows]

    async def transactions(self, kinds: Container[int]) -> int:
        """How many transactions sent messages, or received some; one that did both counts for each."""
        rows = await self._reader.rows(SQL.counts_of_all)
        return sum(txs for kind, _, _, txs in rows if kind in kinds)


class CountedChain(NamedTuple):
    """An indexed chain and its counts. `blockchain_id`: empty if it is not known."""

    blockchain_id: bytes
    counts: MessageCounts


class AllCounts:
    """The counts of several chains together. `known`: the blockchain IDs of all indexed chains."""

    def __init__(self, chains: Iterable[EvmChain], known: BlockchainIds) -> None:
        self._chains = [
            CountedChain(known.blockchain_id(chain.info.id), MessageCounts(chain.reader)) for chain in chains
        ]
        self._known = known

    def _pairs(self, chain: CountedChain, rows: Sequence[PeriodCount]) -> Iterator[tuple[int, ChainPair, int]]:
        own = chain.blockchain_id
        for start, kind, peer, messages in rows:
            if not messages:  # only sent again
                continue
            is_indexed = self._known.is_indexed(peer)
            if kind == SENT and (own or not is_indexed):
                yield start, ChainPair(own, peer), messages
            elif kind == RECEIVED and own and not is_indexed:
                yield start, ChainPair(peer, own), messages

    async def newest_start(self, size: int, before: int | None) -> int | None:
        limit = _NEVER if before is None else before
        starts = [await chain.counts.newest_start(size, limit) for chain in self._chains]
        return max((start for start in starts if start is not None), default=None)

    async def between(self, size: int, first: int, end: int) -> list[tuple[int, ChainPair, int]]:
        """The counts of the periods that begin from `first` to before `end`."""
        found: list[tuple[int, ChainPair, int]] = []
        for chain in self._chains:
            found += self._pairs(chain, await chain.counts.between(size, first, end))
        return found

    async def since(self, first: int | None) -> list[tuple[ChainPair, int]]:
        """The counts from an hour on; None: of all time."""
        found = []
        for chain in self._chains:
            rows = await (chain.counts.of_all_time() if first is None else chain.counts.since(first))
            found += [(pair, messages) for _, pair, messages in self._pairs(chain, rows)]
        return found
