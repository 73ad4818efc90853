"""Makes balances exact that were stored before a token's storage layout was known (`icefall index --refold`): the diffs
of these blocks are fetched again, and balances are what the token's slots held.

Which tokens, from which block to which, and how far it is, is stored with every run of blocks: after a kill it goes on
from there. A token whose past cannot be followed stays as it was: another layout, a change that was missed, balances
that are not those of the contract at the end.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial

import msgspec

from icefall.db.engine import Transaction
from icefall.evm.contract_calls import balance_of, uint_of
from icefall.evm.encoding import unpack_uint
from icefall.evm.indexing.token_layouts import LayoutProver
from icefall.evm.layouts.formulas import StorageLayout
from icefall.evm.layouts.proof import CannotProve, Refused, SeenKey
from icefall.evm.model import ERC20, ZERO_ADDRESS
from icefall.evm.packed import TokenStorage
from icefall.evm.status import REFOLD_META, RefoldProgress, decode_refold
from icefall.evm.storing.batch import NO_LAYOUT
from icefall.evm.storing.changed_words import changed_slots
from icefall.evm.storing.refolding import (
    SQL,
    BlockSlots,
    OldToken,
    Refolded,
    Refolding,
    claim_slots,
    finish_token,
    old_tokens,
)
from icefall.evm.storing.store import ChainStore, Tip
from icefall.evm.storing.writing import SQL as WRITES
from icefall.upstream.client import InvalidAnswer
from icefall.upstream.evm.block_parts import FetchedBlock, proven_header
from icefall.upstream.evm.errors import NoState
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.wire.errors import WireError
from icefall.wire.evm.decode import trace_format
from icefall.wire.evm.storage import Words
from icefall.wire.evm.trace_format import IMPLEMENTATION_SLOTS

Slots = dict[bytes, dict[str, Words]]  # by token: the words before and after, by key
STEP_BYTES = 4 << 20  # as fetched: what one step aims at
STEP_BLOCKS = (1, 32, 1024)  # of a step: at least, of the first one, and at most
_TOKENS_AT_ONCE = 100
_SAMPLE = 32  # of the first and of the newest holders of a token, compared with the contract at the end
_IMPLEMENTATION_KEYS = frozenset("0x" + slot.decode() for slot in IMPLEMENTATION_SLOTS)


class Refold:
    """The refolding of one chain. Nothing else may write its store meanwhile."""

    def __init__(
        self, store: ChainStore, upstream: EvmUpstream, prover: LayoutProver, show: Callable[[RefoldProgress], None]
    ) -> None:
        self._store = store
        self._upstream = upstream
        self._prover = prover
        self._show = show
        self._size = STEP_BLOCKS[1]
        self._progress = RefoldProgress(0, 0, 0)
        self._tokens: dict[bytes, OldToken] = {}

    async def run(self) -> RefoldProgress | None:
        """Run to the end. None: nothing is stored. UpstreamFailure where blocks cannot be fetched: what is done is
        stored, and the next run goes on from there."""
        tip = self._store.tip()
        if tip is None:
            return None
        text = self._store.meta(REFOLD_META)
        resumed = decode_refold(text) if text else None
        if resumed is not None and not resumed.is_done:
            self._progress = resumed
            self._tokens = self._unfinished()
        else:
            await self._begin(tip)
        for one in list(self._tokens.values()):
            await self._claim(one)
        while self._tokens:
            await self._step()
            await self._finish([one for one in self._tokens.values() if one.since <= self._progress.next], tip)
            self._show(self._progress)
        self._progress.is_done = True
        await self._store.write(self._put_progress)
        self._show(self._progress)
        return self._progress

    # -- which tokens ------------------------------------------------------------------------------------------

    async def _begin(self, tip: Tip) -> None:
        await self._ask_layouts(tip)
        self._progress = RefoldProgress(0, 0, tip.number + 1)
        self._tokens = self._unfinished()
        for one in list(self._tokens.values()):
            is_full = self._store.unclaimed_words([one.address])[one.address] >= self._store.unclaimed_max
            if is_full or not await self._is_same(one, max(one.first, self._first_log(one))):
                self._fail(one.address)  # words may be missing, or it had another layout
        self._progress.next = min((one.first for one in self._tokens.values()), default=0)
        self._progress.end = max((one.since for one in self._tokens.values()), default=0)
        await self._store.write(self._put_progress)

    def _first_log(self, one: OldToken) -> int:
        return int(self._store.read(SQL.first_block, {"token": one.token})[0][0])

    def _unfinished(self) -> dict[bytes, OldToken]:
        rows = self._store.read(SQL.old_tokens, {"newest": self._progress.newest})
        failed = set(self._progress.failed)
        return {one.address: one for one in old_tokens(rows) if one.address.hex() not in failed}

    async def _ask_layouts(self, tip: Tip) -> None:
        """Prove the layouts of tokens that have not moved since proofs are made. They count from the next block on."""
        after = -1
        while rows := self._store.read(SQL.unasked_tokens, {"after": after, "limit": _TOKENS_AT_ONCE}):
            after = rows[-1][0]
            found: dict[int, StorageLayout | Refused] = {}
            for token, address in rows:
                try:
                    found[token] = await self._prover.prove(SeenKey(address, ERC20, address, 0), tip.block_hash)
                except (CannotProve, NoState):
                    continue

            def put(tx: Transaction, found: dict[int, StorageLayout | Refused] = found) -> None:
                for token, layout in found.items():
                    is_found = isinstance(layout, StorageLayout)
                    packed = layout.pack() if isinstance(layout, StorageLayout) else NO_LAYOUT
                    since, standard = (tip.number + 1, ERC20) if is_found else (None, None)
                    params = {"layout": packed, "since": since, "token": token, "standard": standard}
                    tx.run(WRITES.put_layout, params)

            await self._store.write(put)

    async def _is_same(self, one: OldToken, block: int) -> bool:
        """Tell whether a token had the same layout after an earlier block. Code that is no proxy's never changes."""
        if not one.layout.is_proxy:
            return True
        block_hash = self._store.block_hash(block)
        try:
            found = await self._prover.prove(SeenKey(one.address, ERC20, one.address, 0), block_hash or b"")
        except (CannotProve, NoState):
            return False
        return isinstance(found, StorageLayout) and found.is_same_place(one.layout)

    def _fail(self, address: bytes) -> None:
        self._progress.failed.append(address.hex())
        self._tokens.pop(address, None)

    async def _claim(self, one: OldToken) -> None:
        """Store the slot of every holder whom a log has ever named."""
        after: tuple[int, int] | None = (-1, -1)
        while after is not None:
            claim = partial(claim_slots, one=one, after=after, is_embedded=self._store.is_embedded)
            after = await self._store.write(claim)

    # -- block by block ----------------------------------------------------------------------------------------

    async def _step(self) -> None:
        """Refold the next blocks."""
        progress = self._progress
        first = max(progress.next, min(one.first for one in self._tokens.values()))
        blocks = range(first, min(progress.end, first + self._size))
        active = {
            address: one
            for address, one in self._tokens.items()
            if one.first < blocks.stop and one.since > blocks.start
        }
        changed = [block async for block in self._changed(blocks, active)] if active else []
        for address in [address for address in active if address not in self._tokens]:
            del active[address]  # it had another layout before
        found = [BlockSlots(number, {one: slots[one] for one in slots if one in active}) for number, slots in changed]

        def change(tx: Transaction) -> Refolded:
            store = self._store
            refolding = Refolding(tx, active, blocks, store.unclaimed_max, is_embedded=store.is_embedded)
            refolded = refolding.run(found)
            after = msgspec.structs.replace(
                progress, next=blocks.stop, corrected=progress.corrected + refolded.corrected
            )
            after.failed = [*progress.failed, *(address.hex() for address in sorted(refolded.failed))]
            tx.run(SQL.put_meta, {"name": REFOLD_META, "value": msgspec.json.encode(after).decode()})
            self._progress = after
            return refolded

        refolded = await self._store.write(change)
        for address in refolded.failed:
            self._tokens.pop(address, None)

    async def _changed(self, blocks: range, active: dict[bytes, OldToken]) -> AsyncGenerator[tuple[int, Slots], None]:
        """Fetch the blocks with transactions, and yield what each changed of the tokens' storage."""
        hashes: dict[int, bytes] = dict(self._store.read(SQL.busy_blocks, {"first": blocks.start, "end": blocks.stop}))
        numbers = [number for number in hashes if any(one.covers(number) for one in active.values())]
        size = 0
        async with aclosing(self._upstream.fetch(numbers)) as fetched:
            async for block in fetched:
                size += block.size
                header = proven_header(msgspec.Raw(block.block), block.number, block.source)
                if header.block_hash != hashes[block.number]:
                    raise InvalidAnswer(f"{block.source} has another block {block.number} than the stored one")
                slots = dict(_slots_of(block, active))
                for address, of_it in slots.items():
                    if _IMPLEMENTATION_KEYS & of_it.keys() and not await self._is_same(active[address], block.number):
                        self._fail(address)
                yield block.number, slots
                await asyncio.sleep(0)
        if numbers:
            per_block = max(1, size // len(numbers))
            self._size = max(STEP_BLOCKS[0], min(STEP_BLOCKS[2], STEP_BYTES // per_block))

    # -- the end of a token ------------------------------------------------------------------------------------

    async def _finish(self, tokens: Sequence[OldToken], tip: Tip) -> None:
        for one in tokens:
            if await self._agrees(one, tip):
                self._tokens.pop(one.address)
                self._progress.done += 1
            else:
                self._fail(one.address)
            is_failed = one.address.hex() in self._progress.failed

            def change(tx: Transaction, one: OldToken = one, is_failed: bool = is_failed) -> None:
                if not is_failed:
                    finish_token(tx, one)
                self._put_progress(tx)

            await self._store.write(change)

    async def _agrees(self, one: OldToken, tip: Tip) -> bool:
        """Compare the first and the newest holders with the contract."""
        first = self._store.read(SQL.holders_after, {"token": one.token, "since": -1, "holder": -1, "limit": _SAMPLE})
        newest = self._store.read(SQL.newest_holders, {"token": one.token, "limit": _SAMPLE})
        sample = {holder: address for *_, holder, address in (*first, *newest) if address != ZERO_ADDRESS}
        keys = [{"holder": holder, "token": one.token, "address": one.address} for holder in sample]
        stored = [rows[0][0] for rows in self._store.read_each(SQL.newest_balance, keys)]
        answers = await self._upstream.answers(
            [balance_of(one.address, who) for who in sample.values()], tip.block_hash
        )
        pairs = zip(stored, answers, strict=True)
        return all((0 if packed is None else unpack_uint(packed)) == uint_of(answer) for packed, answer in pairs)

    def _put_progress(self, tx: Transaction) -> None:
        tx.run(SQL.put_meta, {"name": REFOLD_META, "value": msgspec.json.encode(self._progress).decode()})


def _slots_of(block: FetchedBlock, tokens: dict[bytes, OldToken]) -> Iterator[tuple[bytes, dict[str, Words]]]:
    """What a block changed of each token's storage. InvalidAnswer where it cannot be read."""
    texts: dict[bytes, list[bytes]] = {}
    try:
        for diff in trace_format(block.diffs_format).decode_diffs(block.diffs or b"[]", None):
            for account in diff.accounts:
                one = tokens.get(account.address)
                if one is not None and account.storage and one.covers(block.number):
                    texts.setdefault(account.address, []).append(account.storage)
        for address, of_it in texts.items():
            yield address, changed_slots(TokenStorage(tokens[address].layout, of_it))
    except WireError as error:
        raise InvalidAnswer(f"the diffs of block {block.number} from {block.source}: {error}") from error
