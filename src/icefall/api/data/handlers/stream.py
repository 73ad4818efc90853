"""The live stream: new blocks, transactions and transfers as they are indexed, as Server-Sent Events.

Events come from the store, block by block, at the pace of the client: nothing is queued, and every worker can continue
a stream that another began. All streams of a worker share what they read of a chain: its newest block, and the events
that are the same for all. The ID that a client resumes from names the last complete block of every chain; it is sent
after the events of that block, so a block may be seen twice but none is missed.

An ID holds the beginnings of hashes: of the last block, and of older ones at distances that double. So a stream finds a
common block after a reorganisation of any depth: the newest one while it is open, up to RECENT_MAX blocks back; else
one that is at most four times as far back as the newest. A client drops the blocks above it and is sent them again.
"""

import asyncio
import copy
import time
from collections.abc import AsyncGenerator, Callable, Sequence

import msgspec

from icefall.api.data.render.context import context_for
from icefall.api.data.render.transactions import block as rendered_block
from icefall.api.data.render.transactions import native, transfer
from icefall.api.data.schema.chains import RollbackEvent, SkippedEvent, StreamParams, TransferEvent
from icefall.api.dialect import Dialect
from icefall.api.http.rest_params import EVENT_ID_SIZE_MAX
from icefall.api.http.streams import KEEP_ALIVE, EventStream, event, position
from icefall.errors import BadRequest, Unavailable
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.live import EventKey
from icefall.evm.reading.model import BlockRead, PageRange, TransferRead, TxRead
from icefall.evm.reading.one_history import in_one_history
from icefall.evm.standards import STANDARDS

POLL_S = 1.0
KEEP_ALIVE_S = 15.0
LIFETIME_S = 3600.0  # then the client connects again, maybe to another worker
RESUMED_MAX = 1_000  # blocks of a chain that are sent again after a pause
ROWS_MAX = 2_000  # transactions, or transfers of a standard, of one block
RECENT_MAX = 512  # blocks whose hashes an open stream remembers, besides those at distances that double
_PIECE = 200
_HASH_SIZE = 8  # of its hex digits, in an ID


class _Place(msgspec.Struct):
    """The last block of a chain that was sent, and the hashes by which a reorganisation is noticed: those of the last
    blocks that were sent, and of `older_numbers`. `has_older`: those of the latter were read."""

    number: int
    hashes: dict[int, str]
    has_older: bool = False

    def id_text(self, *, with_older: bool) -> str:
        """The part of an ID about this chain; empty while the hash of the last block is not known."""
        if self.number not in self.hashes:
            return ""
        known = [self.hashes[self.number]]
        for number in older_numbers(self.number) if with_older else ():
            if number not in self.hashes:
                break
            known.append(self.hashes[number])
        return ":".join([str(self.number), *known])

    def add(self, block: BlockRead) -> None:
        """Go on to the next block, and forget hashes that are not needed any more."""
        self.number = block.number
        self.hashes[block.number] = _short_hash(block)
        if len(self.hashes) > 2 * RECENT_MAX:
            wanted = {*range(self.number - RECENT_MAX, self.number + 1), *older_numbers(self.number)}
            self.hashes = {number: one for number, one in self.hashes.items() if number in wanted}

    def go_back(self, ancestor: int) -> None:
        """Continue after an older block: those above it were replaced."""
        self.number, self.has_older = ancestor, False
        self.hashes = {number: one for number, one in self.hashes.items() if number <= ancestor}


def older_numbers(number: int) -> list[int]:
    """One block at each distance of 1, 2 to 3, 4 to 7, 8 to 15 and so on, newest first. Those of the next block are
    among them, or it is this block."""
    return [((number >> level) - 1) << level for level in range(number.bit_length())]


def _place_hash(tip: BlockRead, number: int) -> str:
    """The hash by which a stream that was sent this block knows that nothing has changed; empty for another one."""
    return _short_hash(tip) if tip.number == number else ""


def _short_hash(block: BlockRead) -> str:
    return block.block_hash.hex()[:_HASH_SIZE]


async def stream(params: StreamParams, chains: ChainDirectory, dialect: Dialect) -> EventStream:
    wanted = [await chains.find(params.chain_id)] if params.chain_id is not None else chains.all()
    if "transfers" in params.types and params.address is None and params.token is None:
        raise BadRequest("address or token is missing: transfers are streamed of one address or token")
    places = _places(params.last_event_id, wanted)
    return EventStream(lambda: _Events(params, wanted, dialect, places).pieces())


def _places(last_event_id: str, chains: Sequence[EvmChain]) -> dict[str, _Place]:
    """Read an ID: the place in each chain. Raises BadRequest for an ID that is not one of a stream."""
    known = {chain.info.id for chain in chains}
    places = {}
    for part in filter(None, last_event_id.split(",")):
        chain_id, _, rest = part.partition(":")
        number, *hashes = rest.split(":")
        if not number.isdigit() or len(number) > 18 or {len(one) for one in hashes} != {_HASH_SIZE}:
            raise BadRequest("lastEventId must be the ID of an event of this stream")
        if chain_id in known:
            last = int(number)
            places[chain_id] = _Place(last, dict(zip([last, *older_numbers(last)], hashes, strict=False)))
    return places


class _Events:
    """The events of one open stream."""

    def __init__(
        self, params: StreamParams, chains: Sequence[EvmChain], dialect: Dialect, places: dict[str, _Place]
    ) -> None:
        self._params = params
        self._chains = chains
        self._dialect = dialect
        self._places = places
        self._made: dict[EventKey, list[bytes]] = {}

    async def pieces(
        self, clock: Callable[[], float] = time.monotonic, lifetime_s: float = LIFETIME_S
    ) -> AsyncGenerator[bytes, None]:
        yield b"retry: 2000\n\n"
        ends = clock() + lifetime_s
        sent_at = clock()
        while clock() < ends:
            before = self._id()
            for chain in self._chains:
                for piece in await self._news_of_one_history(chain):
                    yield piece
            moved = self._id() != before
            if moved:
                yield position(self._id())
                sent_at = clock()
            elif clock() - sent_at >= KEEP_ALIVE_S:
                yield KEEP_ALIVE
                sent_at = clock()
            await asyncio.sleep(0 if moved else POLL_S)

    def _id(self) -> str:
        """The ID to resume from. It holds the last blocks alone if there are too many chains for more."""
        text = self._id_of_size(with_older=True)
        return text if len(text) <= EVENT_ID_SIZE_MAX else self._id_of_size(with_older=False)

    def _id_of_size(self, *, with_older: bool) -> str:
        places = [(chain, place.id_text(with_older=with_older)) for chain, place in self._places.items()]
        return ",".join(f"{chain}:{text}" for chain, text in places if text)

    async def _news_of_one_history(self, chain: EvmChain) -> list[bytes]:
        """The news of a chain, read again from where they begin if blocks are rolled back meanwhile."""
        begin = copy.deepcopy(self._places.get(chain.info.id))

        async def read() -> list[bytes]:
            self._places.pop(chain.info.id, None)
            self._made = {}
            if begin is not None:
                self._places[chain.info.id] = copy.deepcopy(begin)
            return [piece async for piece in self._news(chain)]

        news = await in_one_history(read)
        chain.live.keep(self._made)  # only what was read in one history
        return news

    async def _news(self, chain: EvmChain) -> AsyncGenerator[bytes, None]:
        """Yield the events of the next block of a chain, if there is one."""
        place = self._places.get(chain.info.id)
        try:
            tip = await (chain.live.tip() if place is not None else chain.blocks.tip())
        except Unavailable:
            return  # not indexed yet
        if tip is None or (place is not None and place.hashes.get(place.number) == _place_hash(tip, place.number)):
            return  # nothing new, and no row was read for it
        if place is None:  # from now on: the newest block says where that is
            place = self._places[chain.info.id] = _Place(tip.number - 1, {})
        elif (ancestor := await self._replaced(chain, place)) is not None:
            place.go_back(ancestor)
            yield event("reorg", RollbackEvent(chain_id=chain.info.id, block_number=str(ancestor)))
        if tip.number - place.number > RESUMED_MAX:
            first, place.number, place.has_older = place.number + 1, tip.number - RESUMED_MAX, False
            skipped = SkippedEvent(chain_id=chain.info.id, start_block=str(first), end_block=str(place.number + 1))
            yield event("skipped", skipped)
        block = await chain.blocks.block(place.number + 1)
        if block is None:
            return
        async for piece in self._of_block(chain, block):
            yield piece
        place.add(block)
        await self._learn(chain, place)

    @staticmethod
    async def _learn(chain: EvmChain, place: _Place) -> None:
        """Read the hashes of older blocks that the stream did not send itself: once, wherever it begins."""
        if place.has_older:
            return
        found = await chain.blocks.hashes_of([place.number, *older_numbers(place.number)])
        short = {number: block_hash.hex()[:_HASH_SIZE] for number, block_hash in found.items()}
        if short.get(place.number) == place.hashes[place.number]:  # else they are of another branch than what was sent
            place.hashes = short | place.hashes
            place.has_older = True

    @staticmethod
    async def _replaced(chain: EvmChain, place: _Place) -> int | None:
        """Return the newest known block that is still part of the chain, if the last one no longer is: the block before
        the first indexed one if none is."""
        if place.number not in place.hashes or await _is_part(chain, place, place.number):
            return None
        known = sorted(number for number in place.hashes if number < place.number)
        low, high = 0, len(known)  # below `low` all are part of the chain, from `high` on none is
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if await _is_part(chain, place, known[middle]) else (low, middle)
        return known[low - 1] if low else (await chain.blocks.lowest() or 0) - 1

    async def _of_block(self, chain: EvmChain, block: BlockRead) -> AsyncGenerator[bytes, None]:
        types = self._params.types
        if "transactions" in types:
            for piece in await self._transactions(chain, block):
                yield piece
        if "transfers" in types:
            rows = await self._transfers(chain, block)
            context = await context_for(chain, self._dialect, rows)
            for row in rows:
                rendered = TransferEvent(chain_id=chain.info.id, transfer=transfer(context, row))
                yield event("transfer", rendered)
        if "blocks" in types:
            yield event("block", rendered_block(chain.info.id, block))

    async def _transactions(self, chain: EvmChain, block: BlockRead) -> list[bytes]:
        """The events of transactions. Those of all transactions of a block are made once for all streams."""
        key = (block.block_hash, "transactions")
        made = chain.live.made(key) if self._params.address is None else None
        if made is None:
            txs = await self._txs(chain, block)
            context = await context_for(chain, self._dialect, txs)
            made = [event("transaction", native(context, tx)) for tx in txs]
            if self._params.address is None:
                self._made[key] = made
        return made

    async def _txs(self, chain: EvmChain, block: BlockRead) -> list[TxRead]:
        """The transactions of a block in their order; those that the address took part in, if one is given."""
        if self._params.address is not None:
            span = PageRange(block.number, block.number + 1)
            return await chain.lists.touched_txs(self._params.address, span, ROWS_MAX, ascending=True)
        txs: list[TxRead] = []
        while len(txs) < ROWS_MAX:
            found = await chain.blocks.txs_of_block(block.number, txs[-1].tx_index if txs else None, _PIECE)
            txs += found
            if len(found) < _PIECE:
                break
            await asyncio.sleep(0)
        return txs[::-1]

    async def _transfers(self, chain: EvmChain, block: BlockRead) -> list[TransferRead]:
        """The transfers of the address, or of the token, or of both, in their order."""
        address, token = self._params.address, self._params.token
        span = PageRange(block.number, block.number + 1)
        if address is not None:
            found = [await chain.lists.transfers_of(one.number, address, span, ROWS_MAX) for one in STANDARDS]
        else:
            found = [await chain.transfers.in_token(token or b"", span, ROWS_MAX)]
        wanted = (row for rows in found for row in rows if token is None or row.token == token)
        return sorted(wanted, key=lambda row: (row.log_at, row.position))


async def _is_part(chain: EvmChain, place: _Place, number: int) -> bool:
    """Whether a block whose hash is known is still part of the chain."""
    block = await chain.blocks.block(number)
    return block is not None and _short_hash(block) == place.hashes[number]
