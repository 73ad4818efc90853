"""Finds the events of webhooks in the blocks of a chain. Pure: what was stored of webhooks and blocks in, events out.

An address matches if it takes part in a transaction: as sender, recipient or created contract, as a party of a token
transfer or of an internal transaction, or as a contract that emitted a log. A block costs one lookup per address in it,
however many are watched.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from icefall.evm.encoding import INDEX_BITS
from icefall.evm.model import MatchedLogs
from icefall.evm.packed import PackedBlock, columns_of
from icefall.webhooks.model import Webhook, event_id

LOGS_MAX = 2_000  # logs of one transaction in a message
_LISTS = ("native_of", "touch_of")  # tables that say which transactions an address took part in


class SentLog(msgspec.Struct, frozen=True, array_like=True):
    """A log of the transaction of an event."""

    log_index: int
    address: bytes
    topics: tuple[bytes, ...]
    data: bytes


class EventDetail(msgspec.Struct, frozen=True, array_like=True):
    """The part of an event that the tables of its chain do not hold. `logs` None: they are not wanted."""

    receipts_root: bytes
    cumulative_gas: int
    logs: tuple[SentLog, ...] | None
    is_truncated: bool = False


class Event(NamedTuple):
    """A transaction that a message to a webhook is about."""

    id: str
    webhook: str
    block: int
    tx_index: int
    block_hash: bytes
    tx_hash: bytes
    detail: bytes


class _Watched(NamedTuple):
    webhook: Webhook
    topics: frozenset[bytes]
    addresses: frozenset[bytes]


_encode_detail = msgspec.msgpack.Encoder().encode
decode_detail = msgspec.msgpack.Decoder(EventDetail).decode


class WatchList:
    """The active webhooks of one chain, by the addresses they are about."""

    def __init__(self, chain_id: str) -> None:
        self._chain_id = chain_id
        self._watched: dict[str, _Watched] = {}
        self._by_address: dict[bytes, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._watched)

    def put(self, webhook: Webhook, addresses: Iterable[bytes]) -> None:
        """Add a webhook, or replace it by its new version."""
        watched, before = _Watched(webhook, webhook.topics, frozenset(addresses)), self._watched.get(webhook.id)
        known = before.addresses if before is not None else frozenset()
        self._watched[webhook.id] = watched
        self._forget(webhook.id, known - watched.addresses)
        added = watched.addresses - known
        fresh = added.difference(self._by_address)  # nearly all of them: most addresses have one webhook
        self._by_address.update(dict.fromkeys(fresh, (webhook.id,)))
        for address in added - fresh:
            self._by_address[address] = (*self._by_address[address], webhook.id)

    def drop(self, webhook: str) -> None:
        before = self._watched.pop(webhook, None)
        if before is not None:
            self._forget(webhook, before.addresses)

    def _forget(self, webhook: str, addresses: Iterable[bytes]) -> None:
        for address in addresses:
            left = tuple(one for one in self._by_address[address] if one != webhook)
            if left:
                self._by_address[address] = left
            else:
                del self._by_address[address]

    def start(self, webhook: str, block: int) -> None:
        """Note the first block that is matched."""
        watched = self._watched[webhook]
        started = watched.webhook.started(block)
        self._watched[webhook] = watched._replace(webhook=started)

    def not_started(self, before: int | None = None) -> list[str]:
        """The webhooks that have not started; `before`: only those that name a first block below it."""
        waiting = [watched.webhook for watched in self._watched.values() if watched.webhook.live_block is None]
        if before is not None:
            waiting = [one for one in waiting if one.start_block is not None and one.start_block < before]
        return [one.id for one in waiting]

    def started_in(self, blocks: range) -> list[str]:
        """The webhooks whose first block that is matched when it is stored is one of these."""
        return [one for one, watched in self._watched.items() if watched.webhook.live_block in blocks]

    def events(self, block: PackedBlock) -> list[Event]:
        """The events of a block, in the order of its transactions. None if it came without logs: no webhook has
        started yet."""
        matched = block.raw.matched
        if matched is None or not self._by_address:
            return []
        hits = self._hits(block, matched)
        if not hits:
            return []
        positions, hashes = columns_of(block.tables["tx"])[:2]
        by_index = {position & INDEX_BITS: tx_hash for position, tx_hash in zip(positions, hashes, strict=True)}
        return self._events(block.block.number, block.block.block_hash, matched, hits, by_index)

    def events_of(
        self, number: int, block_hash: bytes, matched: MatchedLogs, touched: Iterable[int], hashes: Mapping[int, bytes]
    ) -> list[Event]:
        """The events of a stored block, with a single webhook: `touched` are the transactions that one of its addresses
        takes part in, `hashes` are those of all transactions."""
        (webhook,) = self._watched
        hits = {index: {webhook} for index in touched}
        self._add_emitters(matched, hits)
        return self._events(number, block_hash, matched, hits, hashes)

    def has_emitter(self, matched: MatchedLogs) -> bool:
        return not self._by_address.keys().isdisjoint(matched.emitters)

    def _events(
        self,
        number: int,
        block_hash: bytes,
        matched: MatchedLogs,
        hits: Mapping[int, set[str]],
        hashes: Mapping[int, bytes],
    ) -> list[Event]:
        logs = _LogsByTx(matched)
        return [
            event
            for tx_index in sorted(hits)
            for webhook in sorted(hits[tx_index])
            if (event := self._event(number, block_hash, webhook, tx_index, hashes[tx_index], logs)) is not None
        ]

    def _hits(self, block: PackedBlock, matched: MatchedLogs) -> dict[int, set[str]]:
        """The webhooks that each transaction may be an event of, by its index."""
        known = self._by_address
        hits: dict[int, set[str]] = {}
        if not known.keys().isdisjoint(block.addresses):  # of most blocks nothing else is looked at
            places = {place: known[one] for place, one in enumerate(block.addresses) if one in known}
            for table in _LISTS:
                for place, position in _rows(block, table):
                    if place in places:
                        hits.setdefault(position & INDEX_BITS, set()).update(places[place])
        self._add_emitters(matched, hits)
        return hits

    def _add_emitters(self, matched: MatchedLogs, hits: dict[int, set[str]]) -> None:
        known = self._by_address
        if self.has_emitter(matched):
            _, tx_indexes, emitters = columns_of(matched.packed)[:3]
            for tx_index, emitter in zip(tx_indexes, emitters, strict=True):
                if emitter in known:
                    hits.setdefault(tx_index, set()).update(known[emitter])

    def _event(
        self, number: int, block_hash: bytes, webhook: str, tx_index: int, tx_hash: bytes, logs: "_LogsByTx"
    ) -> Event | None:
        watched = self._watched[webhook]
        start = watched.webhook.start_block
        if start is None or number < start:
            return None
        if watched.topics and watched.topics.isdisjoint(logs.first_topics(tx_index)):
            return None
        detail = logs.detail(tx_index, with_logs=bool(watched.webhook.include_logs))
        own_id = event_id(webhook, self._chain_id, block_hash, tx_hash)
        return Event(own_id, webhook, number, tx_index, block_hash, tx_hash, detail)


def _rows(block: PackedBlock, table: str) -> Iterator[tuple[int, int]]:
    packed = block.tables.get(table)
    if packed is not None:
        places, positions = columns_of(packed)
        yield from zip(places, positions, strict=True)


class _LogsByTx:
    """The logs of a block, unpacked when the first event needs them."""

    def __init__(self, matched: MatchedLogs) -> None:
        self._matched = matched
        self._by_tx: dict[int, list[SentLog]] | None = None

    def _of(self, tx_index: int) -> list[SentLog]:
        if self._by_tx is None:
            self._by_tx = {}
            columns = columns_of(self._matched.packed) if self._matched.packed else ((),) * 5
            for index, of_tx, address, topics, data in zip(*columns, strict=True):
                self._by_tx.setdefault(of_tx, []).append(SentLog(index, address, topics, data))
        return self._by_tx.get(tx_index, [])

    def first_topics(self, tx_index: int) -> set[bytes]:
        return {log.topics[0] for log in self._of(tx_index) if log.topics}

    def detail(self, tx_index: int, *, with_logs: bool) -> bytes:
        root, gas = self._matched.receipts_root, self._matched.cumulative_gas[tx_index]
        if not with_logs:
            return _encode_detail(EventDetail(root, gas, None))
        logs = self._of(tx_index)
        return _encode_detail(EventDetail(root, gas, tuple(logs[:LOGS_MAX]), len(logs) > LOGS_MAX))
