"""The live stream: new blocks, transactions and transfers as they are indexed, as Server-Sent Events.

Events come from the store, block by block, at the pace of the client: nothing is queued, and every worker can continue
a stream that another began. The ID that a client resumes from names the last complete block of every chain, with the
beginning of its hash; it is sent after the events of that block, so a block may be seen twice but none is missed.
"""

import asyncio
import copy
import time
from collections.abc import AsyncGenerator, Callable, Sequence

import msgspec

from icefall.api.data.render.context import context_for
from icefall.api.data.render.transactions import block as shown_block
from icefall.api.data.render.transactions import native
from icefall.api.data.render.transfers import transfer
from icefall.api.data.schema.chains import RollbackEvent, SkippedEvent, StreamParams, TransferEvent
from icefall.api.dialect import Dialect
from icefall.api.http.streams import KEEP_ALIVE, EventStream, event, position
from icefall.errors import BadRequest, Unavailable
from icefall.evm.model import ERC20, ERC721, ERC1155
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import BlockRead, PageRange, TransferRead, TxRead
from icefall.evm.reading.one_history import in_one_history

POLL_S = 1.0
KEEP_ALIVE_S = 15.0
LIFETIME_S = 3600.0  # then the client connects again, maybe to another worker
RESUMED_MAX = 1_000  # blocks of a chain that are sent again after a pause
ROWS_MAX = 2_000  # transactions, or transfers of a standard, of one block
DEPTH = 128  # how far back a block may have been replaced while a client was away
_PIECE = 200
_HASH_SIZE = 8  # of its hex digits, in an ID


class _Place(msgspec.Struct):
    """The last block of a chain that was sent. `hashes`: of those before it, as far as they are known."""

    number: int
    hashes: dict[int, str]


async def stream(params: StreamParams, chains: ChainDirectory, dialect: Dialect) -> EventStream:
    wanted = [await chains.find(params.chain_id)] if params.chain_id is not None else chains.all()
    if "transfers" in params.types and params.address is None:
        raise BadRequest("address is missing: transfers are streamed of one address")
    places = _places(params.last_event_id, wanted)
    return EventStream(lambda: _Events(params, wanted, dialect, places).pieces())


def _places(last_event_id: str, chains: Sequence[EvmChain]) -> dict[str, _Place]:
    """By chain; BadRequest for an ID that is none of ours."""
    known = {chain.info.id for chain in chains}
    places = {}
    for part in filter(None, last_event_id.split(",")):
        chain_id, _, rest = part.partition(":")
        number, _, block_hash = rest.partition(":")
        if not number.isdigit() or len(number) > 18 or len(block_hash) != _HASH_SIZE:
            raise BadRequest("lastEventId must be the ID of an event of this stream")
        if chain_id in known:
            places[chain_id] = _Place(int(number), {int(number): block_hash})
    return places


class _Events:
    """One stream."""

    def __init__(
        self, params: StreamParams, chains: Sequence[EvmChain], dialect: Dialect, places: dict[str, _Place]
    ) -> None:
        self._params = params
        self._chains = chains
        self._dialect = dialect
        self._places = places

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
        places = [(one, place.number, place.hashes.get(place.number)) for one, place in self._places.items()]
        return ",".join(f"{one}:{number}:{block_hash}" for one, number, block_hash in places if block_hash)

    async def _news_of_one_history(self, chain: EvmChain) -> list[bytes]:
        """The news of a chain, read again from where they begin if blocks are rolled back meanwhile."""
        begin = copy.deepcopy(self._places.get(chain.info.id))

        async def read() -> list[bytes]:
            self._places.pop(chain.info.id, None)
            if begin is not None:
                self._places[chain.info.id] = copy.deepcopy(begin)
            return [piece async for piece in self._news(chain)]

        return await in_one_history(read)

    async def _news(self, chain: EvmChain) -> AsyncGenerator[bytes, None]:
        """Of the next block of a chain, if there is one."""
        try:
            tip = await chain.blocks.tip()
        except Unavailable:
            return  # not indexed yet
        if tip is None:
            return
        place = self._places.get(chain.info.id)
        if place is None:  # from now on: the newest block says where that is
            place = self._places[chain.info.id] = _Place(tip.number - 1, {})
        elif (ancestor := await self._replaced(chain, place)) is not None:
            place.number = ancestor
            yield event("reorg", RollbackEvent(chain_id=chain.info.id, block_number=str(ancestor)))
        if tip.number - place.number > RESUMED_MAX:
            first, place.number = place.number + 1, tip.number - RESUMED_MAX
            skipped = SkippedEvent(chain_id=chain.info.id, start_block=str(first), end_block=str(place.number + 1))
            yield event("skipped", skipped)
        block = await chain.blocks.block(place.number + 1)
        if block is None:
            return
        async for piece in self._of_block(chain, block):
            yield piece
        place.number = block.number
        place.hashes[block.number] = block.block_hash.hex()[:_HASH_SIZE]
        place.hashes.pop(block.number - DEPTH, None)

    @staticmethod
    async def _replaced(chain: EvmChain, place: _Place) -> int | None:
        """The newest block sent that is still part of the chain, if the last one no longer is."""
        for number in range(place.number, max(-1, place.number - DEPTH), -1):
            if number not in place.hashes:
                break
            block = await chain.blocks.block(number)
            if block is not None and block.block_hash.hex()[:_HASH_SIZE] == place.hashes[number]:
                return None if number == place.number else number
        if place.number not in place.hashes:
            return None
        return max((await chain.blocks.lowest() or 0) - 1, place.number - DEPTH)

    async def _of_block(self, chain: EvmChain, block: BlockRead) -> AsyncGenerator[bytes, None]:
        types = self._params.types
        if "transactions" in types:
            txs = await self._txs(chain, block)
            context = await context_for(chain, self._dialect, txs)
            for tx in txs:
                yield event("transaction", native(context, tx))
        if "transfers" in types and self._params.address is not None:
            rows = await self._transfers(chain, block, self._params.address)
            context = await context_for(chain, self._dialect, rows)
            for row in rows:
                shown = TransferEvent(chain_id=chain.info.id, transfer=transfer(context, row))
                yield event("transfer", shown)
        if "blocks" in types:
            yield event("block", shown_block(chain.info.id, block))

    async def _txs(self, chain: EvmChain, block: BlockRead) -> list[TxRead]:
        """In their order; those that the address took part in, if one is given."""
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

    @staticmethod
    async def _transfers(chain: EvmChain, block: BlockRead, address: bytes) -> list[TransferRead]:
        span = PageRange(block.number, block.number + 1)
        found = [await chain.lists.transfers_of(one, address, span, ROWS_MAX) for one in (ERC20, ERC721, ERC1155)]
        return sorted((row for rows in found for row in rows), key=lambda row: (row.log_at, row.position))
