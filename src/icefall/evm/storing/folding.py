"""The folding of token balances and ownership: in block order into "from this block on" rows, inside the writer's
transaction.

Where logs contradict themselves (a balance below zero, a transfer from an address that is not the owner) the token is
untrusted: its balances are read from state instead.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from operator import itemgetter
from typing import NamedTuple

from icefall.db.engine import Transaction
from icefall.evm.deriving.packing import Ids, Row
from icefall.evm.encoding import pack_uint, unpack_uint
from icefall.evm.layouts.formulas import KEY_STORED
from icefall.evm.model import ERC721, ZERO_ADDRESS, IdDelta
from icefall.evm.packed import BalanceChanges
from icefall.evm.standards import BY_ID, BY_NUMBER, TokenStandard
from icefall.evm.storing.changed_words import KeyedWords
from icefall.evm.storing.id_slots import IdChanges, SlotChange, address_of
from icefall.evm.storing.nft_ranges import RangeFolding
from icefall.evm.storing.slot_folding import Erc20Balances, Folded, Pair, SlotFolding, SlotKeys, Tokens
from icefall.evm.storing.unclaimed import UnclaimedRoom
from icefall.evm.storing.writing import SQL, Steps, put_rows

HeldKey = tuple[bytes, bytes, int]  # token, holder, token ID; -1 for ERC-20
Baselines = Mapping[HeldKey, int]  # balance before the index
NO_ID = -1
ADDRESS_START = 3  # bytes of a token's address by which a server finds holdings
AMOUNT_END = 1 << 256  # no balance is so large, whatever logs say

# By table: the statement that inserts a row, whose column list is the order of the row's values.
INSERTS = {
    "erc20_balance": SQL.put_erc20_balance,
    "erc20_holding": SQL.put_erc20_holding,
    "erc20_holder": SQL.put_erc20_holder,
    **{f"{one.table}_{what}": SQL.named(f"put_{one.table}_{what}") for one in BY_ID for what in ("balance", "holding")},
    "nft_owner": SQL.put_nft_owner,
    "nft_held": SQL.put_held,
    "nft_range": SQL.put_nft_range,
    "slot": SQL.put_slot,
    "unclaimed_slot": SQL.put_unclaimed_slot,
    "slot_change": SQL.put_slot_change,
}


class BlockToFold(NamedTuple):
    """What is folded of a block: what its logs say, and what storage says of tokens whose layout is known."""

    rows: BalanceChanges
    erc20_slots: Tokens
    by_slots: IdChanges


class BalanceFolding:
    """The folding of one batch of blocks. `baselines` is for indexes that begin inside a chain.

    `known` are balances that earlier batches left: they need not be read. It is updated with those of this batch.
    """

    def __init__(
        self,
        tx: Transaction,
        ids: Ids,
        baselines: Baselines,
        known: Erc20Balances,
        keys: SlotKeys,
        room: UnclaimedRoom,
        *,
        is_embedded: bool,
    ) -> None:
        self._tx = tx
        self._is_embedded = is_embedded
        self._ids = ids
        self._baselines = baselines
        self._folded = Folded(INSERTS, known, is_embedded=is_embedded)
        self._slots = SlotFolding(tx, ids, self._folded, keys, room)
        self._untrusted = self._folded.untrusted
        self._erc20 = known
        self._of_ids: dict[str, dict[tuple[int, int, bytes], int]] = {one.table: {} for one in BY_ID}
        self._ranges = RangeFolding(tx, ids)
        self._owners: dict[tuple[int, bytes], int | None] = {}
        self._owners_before: dict[
            tuple[int, bytes], tuple[int | None, bytes]
        ] = {}  # the owner, and the token's address
        self._rows = self._folded.rows

    def load(self, blocks: Sequence[BlockToFold], first_new: int) -> None:
        """Read what is stored of everything that the batch changes. IDs from `first_new` on are new: nothing is
        stored."""
        ids, tx = self._ids, self._tx
        batch = [one.rows for one in blocks]
        erc20 = {(ids(one.holder), ids(one.token)): one.token for rows in batch for one in rows.erc20_deltas}
        erc20 |= self._slots.load(batch, [one.erc20_slots for one in blocks], first_new)
        unread = erc20.keys() - self._erc20.keys()
        stored = [(*key, erc20[key]) for key in unread if key[0] < first_new and key[1] < first_new]
        for holder, token, known in tx.rows_of_each(SQL.known_erc20, sorted(stored, key=itemgetter(0))):
            if known is not None:
                self._erc20[holder, token] = unpack_uint(known)
        self._slots.load_unclaimed(first_new)
        for at, standard in enumerate(BY_ID):
            keys = {
                (ids(one.holder), ids(one.token), one.token, pack_uint(one.token_id))
                for rows in batch
                for one in rows.id_deltas[at]
            } | {
                (ids(one.key.holder), ids(one.token), one.token, pack_uint(one.key.token_id))
                for one in _slot_changes(blocks, standard.number)
            }
            with_id = [key for key in keys if key[0] < first_new and key[1] < first_new]
            statement = SQL.named(f"known_{standard.table}")
            for holder, token, token_id, known in tx.rows_of_each(statement, sorted(with_id)):
                if known is not None:
                    self._of_ids[standard.table][holder, token, token_id] = unpack_uint(known)
        nfts = {(ids(one.token), pack_uint(one.token_id)) for rows in batch for one in rows.nft_owners}
        nfts |= {(ids(one.token), pack_uint(one.key.token_id)) for one in _slot_changes(blocks, ERC721)}
        stored_nfts = [key for key in nfts if key[0] < first_new]
        for token, token_id, owner in tx.rows_of_each(SQL.newest_owner, sorted(stored_nfts)):
            self._owners[token, token_id] = owner
        self._ranges.load(batch, first_new)

    def add(self, block: BlockToFold, unmoved: Set[Pair] = frozenset()) -> dict[bytes, KeyedWords | None]:
        """Fold the next block; `load` must have been called. `unmoved`: those whom its logs name without a transfer.
        Return what changed of the storage of tokens besides known balances and owners; None: it cannot be read."""
        rows, storage, by_slots = block
        number = rows.block.number
        self._add_erc20(rows, storage)
        left = self._slots.add(number, self._baselines, unmoved) if storage else {}
        for standard, changes in zip(BY_ID, rows.id_deltas, strict=True):
            by_logs = _by_logs(changes, by_slots.tokens, standard.number) if by_slots.tokens else changes
            self._add_of_ids(standard, by_logs, number)
        self._add_nfts(rows, by_slots.tokens)
        if by_slots.tokens:
            self._add_by_slots(rows, by_slots)
            left |= by_slots.left
            left |= dict.fromkeys(by_slots.unreadable)
        return left

    @property
    def written(self) -> dict[str, int]:
        """The number of rows that were written, by table."""
        return {table: len(rows) for table, rows in self._rows.items()}

    @property
    def erc20_balances(self) -> list[Row]:
        """The rows of `erc20_balance`: holder, token, block and balance."""
        return self._rows["erc20_balance"]

    def write(self) -> Steps:
        if not self._is_embedded:
            rows = zip(self._rows["erc20_holding"], self._rows["erc20_holder"], strict=True)
            self._rows["erc20_holding"] = [  # in the order of blocks, so that the key of each token grows at its end
                (token, since, holder, address[:ADDRESS_START], baseline)
                for (holder, address, token, baseline), (_, since, _) in rows
            ]
        dropped = self._fold_held()
        dropped.sort()  # neighbours share pages
        self._tx.run_many(SQL.drop_held, dropped)
        self._ranges.write_moved()
        self._rows["nft_range"] = self._ranges.rows()
        self._tx.run_many(SQL.put_unclaimed_start, self._folded.unclaimed_starts)
        for table, found in self._rows.items():
            if self._is_embedded or INSERTS[table].postgres:
                found.sort(key=itemgetter(0))
                yield from put_rows(self._tx, INSERTS[table], found)
        self._mark_untrusted()

    def _fold_held(self) -> list[Row]:
        """Add the rows of those who own NFTs now, and return those of earlier owners, to be deleted."""
        dropped: list[Row] = []
        zero = self._zero_address_id()
        for (token, token_id), (before, address) in self._owners_before.items():
            now = self._owners[token, token_id]
            if before == now:
                continue  # moved away and back, or to itself
            if before is not None:
                dropped.append((before, address, token_id))
            if now is not None and now != zero:
                self._rows["nft_held"].append((now, address, token_id, token))
        return dropped

    def _mark_untrusted(self) -> None:
        """Mark the tokens whose logs contradict themselves; their own rows must be written already."""
        for token, block in self._untrusted.items():
            self._tx.run(SQL.mark_untrusted, {"token": token, "block": block})

    # -- ERC-20 ------------------------------------------------------------------------------------------------

    def _add_erc20(self, rows: BalanceChanges, storage: Tokens) -> None:
        number, ids = rows.block.number, self._ids
        for change in rows.erc20_deltas:
            if change.token in storage and change.holder != ZERO_ADDRESS:
                continue  # by its slot
            holder, token = ids(change.holder), ids(change.token)
            balance = self._erc20.get((holder, token))
            if balance is None:
                balance = self._baselines.get((change.token, change.holder, NO_ID), 0)
                self._rows["erc20_holding"].append((holder, change.token, token, pack_uint(balance)))
                self._rows["erc20_holder"].append((token, number, holder))
            after = balance + change.delta
            if not 0 <= after < AMOUNT_END:
                self._untrusted.setdefault(token, number)
                after = max(0, min(after, AMOUNT_END - 1))
            self._erc20[holder, token] = after
            if change.delta:
                self._rows["erc20_balance"].append((holder, token, number, pack_uint(after)))

    # -- amounts of IDs ----------------------------------------------------------------------------------------

    def _add_of_ids(self, standard: TokenStandard, changes: Sequence[IdDelta], number: int) -> None:
        ids, known = self._ids, self._of_ids[standard.table]
        holdings, balances = self._rows[f"{standard.table}_holding"], self._rows[f"{standard.table}_balance"]
        for change in changes:
            holder, token, token_id = ids(change.holder), ids(change.token), pack_uint(change.token_id)
            key = holder, token, token_id
            balance = known.get(key)
            if balance is None:
                balance = self._baselines.get((change.token, change.holder, change.token_id), 0)
                holdings.append((holder, change.token, token_id, token, number, pack_uint(balance)))
            after = balance + change.delta
            if not 0 <= after < AMOUNT_END:
                self._untrusted.setdefault(token, number)
                after = max(0, min(after, AMOUNT_END - 1))
            known[key] = after
            if change.delta:
                balances.append((*key, number, pack_uint(after)))

    # -- ERC-721 -----------------------------------------------------------------------------------------------

    def _add_nfts(self, rows: BalanceChanges, by_slots: Mapping[bytes, int]) -> None:
        number, ids = rows.block.number, self._ids
        for token in self._ranges.add(rows):
            self._untrusted.setdefault(token, number)
        for moved in rows.nft_owners:
            if by_slots and by_slots.get(moved.token) == ERC721:
                continue
            token, token_id, owner = ids(moved.token), pack_uint(moved.token_id), ids(moved.owner)
            sender = ids(moved.owner_before)
            key = token, token_id
            before = self._owners.get(key)
            self._owners_before.setdefault(key, (before, moved.token))
            in_range = self._ranges.take(token, moved.token_id) if before is None else None
            known = before if in_range is None else in_range
            if known is not None and known != sender:
                self._untrusted.setdefault(token, number)
            if before != owner:
                first_owner = sender if known is None else in_range
                self._rows["nft_owner"].append((token, token_id, number, owner, first_owner))
            self._owners[key] = owner

    # -- by slots ----------------------------------------------------------------------------------------------

    def _add_by_slots(self, rows: BalanceChanges, found: IdChanges) -> None:
        """Fold what slots tell of owners and of amounts of IDs."""
        ids, number = self._ids, rows.block.number
        logged = {(one.token, one.token_id): (one.owner_before, one.owner) for one in rows.nft_owners}
        for ranged in rows.nft_ranges:
            if found.tokens.get(ranged.token) == ERC721:  # IDs that no log names one by one
                self._untrusted.setdefault(ids(ranged.token), number)
        for token in found.unreadable:
            self._untrusted.setdefault(ids(token), number)
        for word in found.unclaimed:
            rows_of = self._folded.unclaimed_starts if word.is_start else self._rows["unclaimed_slot"]
            rows_of.append((ids(word.token), word.slot, word.block, pack_uint(word.word)))
        for one in found.changes:
            if one.is_new:
                holder = ids(one.key.holder) if one.key.holder else 0
                row = ids(one.token), one.slot[:KEY_STORED], holder, pack_uint(one.key.token_id)
                self._rows["slot"].append(row)
            if one.lacks_history:
                self._untrusted.setdefault(ids(one.token), number)
            if one.standard == ERC721:
                self._add_owner(one, number, logged.get((one.token, one.key.token_id)))
            else:
                self._add_amount(one, number)

    def _add_amount(self, one: SlotChange, number: int) -> None:
        token, holder, token_id = self._ids(one.token), self._ids(one.key.holder), pack_uint(one.key.token_id)
        table, key = BY_NUMBER[one.standard].table, (holder, token, token_id)
        balance, balances = self._of_ids[table].get(key), self._rows[f"{table}_balance"]
        if balance is None:
            balance = one.before
            if one.history:
                balance = 0
            elif balance is None:
                key_read = one.token, one.key.holder, one.key.token_id
                balance = 0 if one.is_whole else self._baselines.get(key_read, 0)
            row = holder, one.token, token_id, token, number, pack_uint(balance)
            self._rows[f"{table}_holding"].append(row)
            for block, amount in one.history:
                balance = amount
                balances.append((*key, block, pack_uint(amount)))
        if one.after is not None:
            if one.before != balance:  # a change was missed
                self._untrusted.setdefault(token, number)
            if one.after != balance:
                balances.append((*key, number, pack_uint(one.after)))
                if not one.is_logged:
                    self._rows["slot_change"].append((number, token, holder, token_id, None))
            balance = one.after
        self._of_ids[table][key] = balance

    def _add_owner(self, one: SlotChange, number: int, logged: tuple[bytes, bytes] | None) -> None:
        """Fold the owner of an NFT. `logged`: the owners before and after the block, as its logs have them."""
        ids, token, token_id = self._ids, self._ids(one.token), pack_uint(one.key.token_id)
        key, owners = (token, token_id), self._rows["nft_owner"]
        known = self._owners.get(key)
        self._owners_before.setdefault(key, (known, one.token))
        if known is None and one.history:
            first: int | None = ids(ZERO_ADDRESS)
            for block, value in one.history:
                known = ids(address_of(value))
                owners.append((token, token_id, block, known, first))
                first = None
        before, after = (None if value is None else address_of(value) for value in (one.before, one.after))
        if before is None or after is None:  # nothing changed, whatever the log says
            if known is None:
                known = ids(ZERO_ADDRESS)
                owners.append((token, token_id, number, known, None))
                if not one.is_whole:  # it may have had an owner before
                    self._untrusted.setdefault(token, number)
            self._owners[key] = known
            return
        if known is not None and known != ids(before):
            self._untrusted.setdefault(token, number)
        if known != ids(after):
            owners.append((token, token_id, number, ids(after), ids(before) if known is None else None))
        if logged != (before, after):
            for address in {before, after} - {ZERO_ADDRESS}:
                self._rows["slot_change"].append((number, token, ids(address), token_id, None))
        self._owners[key] = ids(after)

    def _zero_address_id(self) -> int:
        """The ID of the zero address, which every burn interns; 0, which is no address's ID, if there was none."""
        try:
            return self._ids(ZERO_ADDRESS)
        except KeyError:
            return 0


def _by_logs(changes: Iterable[IdDelta], by_slots: Mapping[bytes, int], standard: int) -> list[IdDelta]:
    """The changes that slots do not tell."""
    return [one for one in changes if by_slots.get(one.token) != standard or one.holder == ZERO_ADDRESS]


def _slot_changes(blocks: Iterable[BlockToFold], standard: int) -> Iterator[SlotChange]:
    for block in blocks:
        yield from (one for one in block.by_slots.changes if one.standard == standard)


def newly_held(batch: Iterable[BalanceChanges]) -> set[HeldKey]:
    """Every (token, holder, token ID) of a batch that may need a baseline."""
    held = set()
    for rows in batch:
        held |= {(change.token, change.holder, NO_ID) for change in rows.erc20_deltas}
        held |= {(one.token, one.holder, one.token_id) for changes in rows.id_deltas for one in changes}
    return held
