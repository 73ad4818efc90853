"""Rolls back blocks. What they changed is found through their rows and their journal, so the cost does not depend on
the length of the chain.

The journal of a block, stored with it, is what its own rows do not show. Audits read it too.
"""

from collections.abc import Iterable, Mapping, Sequence, Set

import msgspec

from icefall.db.engine import Transaction
from icefall.evm.encoding import above, unpack_uint
from icefall.evm.layouts.formulas import KEY_STORED, unclaimed_key, unpack_layout
from icefall.evm.standards import BY_ID, STANDARDS, TokenStandard, load_statements
from icefall.evm.storing import holders
from icefall.evm.storing.messages import roll_back_counts
from icefall.evm.storing.raw import roll_back_raw
from icefall.wire.packer import pack_varints, unpack_varints

SQL = load_statements("icefall.evm.storing", "rollback.sql")

# In this order: lists are found through the rows they list.
_LISTS = (
    SQL.drop_erc20_in,
    *SQL.each("drop_{standard}_of"),
    SQL.drop_internal_of,
    SQL.drop_tx_by_hash,
    SQL.drop_native_of,
    *SQL.each("drop_touches_of_{standard}"),
    SQL.drop_touches_of_internal,
    SQL.drop_erc20_balance,
    SQL.drop_erc20_slot_balance,
    *SQL.each("drop_{by_id}_slot_balance"),
    SQL.drop_slot_change,
    SQL.drop_unclaimed_slot,
    *SQL.each("drop_{by_id}_balance"),
    *SQL.each("drop_nfts_of_{with_ids}"),
    SQL.drop_deployed_by,
)
_ROWS = (
    SQL.drop_deployment,
    SQL.drop_message,
    SQL.drop_messenger_event,
    *SQL.each("drop_{standard}"),
    SQL.drop_internal,
    SQL.drop_tx,
    SQL.drop_block,
    SQL.drop_name_part,
    SQL.drop_token,
    SQL.drop_layout,
    SQL.drop_earlier_layout,
    SQL.restore_words,
    SQL.restore_trust,
    SQL.restore_trust_at_newest,
    SQL.drop_audit,
    SQL.drop_state_owner,
)
_RESTATEMENTS = (
    SQL.restate_standards_since,
    SQL.clear_standards,
    *(SQL.named(f"restate_{standard.table}") for standard in STANDARDS),
)


# -- the journal -------------------------------------------------------------------------------------------------


class TouchedAddresses(msgspec.Struct, frozen=True, gc=False):
    """The journal of a block: the IDs of addresses, by what the block changed."""

    native: tuple[int, ...] = ()  # native balance
    code: tuple[int, ...] = ()  # code, changed or read from state
    storage_changed_unlogged: tuple[int, ...] = ()  # tokens, without a log: the 1st, 2nd, 4th, 8th ... time
    holders_named: tuple[tuple[int, int], ...] = ()  # (holder, token) that a log named without a transfer
    storage_changed_unlogged_again: tuple[int, ...] = ()  # any other time: some contracts do it in every block
    code_changed: tuple[int, ...] = ()  # tokens that run other code from here on
    maybe_renamed: tuple[int, ...] = ()  # tokens whose storage changed, and neither balances nor allowances alone

    def pack(self) -> bytes:
        """Return the length of each list and its numbers. The last lists are mostly empty, and are left out then."""
        flat = [number for pair in self.holders_named for number in pair]
        lists = [self.native, self.code, self.storage_changed_unlogged, flat]
        lists += [self.storage_changed_unlogged_again, self.code_changed, self.maybe_renamed]
        while lists and not lists[-1]:
            lists.pop()
        return pack_varints([number for one in lists for number in (len(one), *one)])


def unpack_touched(raw: bytes) -> TouchedAddresses:
    numbers = unpack_varints(raw)
    lists: list[tuple[int, ...]] = []
    start = 0
    while start < len(numbers):
        end = start + 1 + numbers[start]
        lists.append(numbers[start + 1 : end])
        start = end
    lists += [()] * (7 - len(lists))
    native, code, unlogged, flat, again, code_changed, variables = lists
    return TouchedAddresses(native, code, unlogged, _pairs(flat), again, code_changed, variables)


def _pairs(flat: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def add_to_journal(tx: Transaction, native: Mapping[int, Sequence[int]]) -> None:
    """Note balances that changed at a stored block and were found by a later one, so that each is rolled back with the
    block it changed at."""
    for number, addresses in sorted(native.items()):
        for (raw,) in tx.rows(SQL.journal_of, {"number": number}):
            touched = unpack_touched(raw)
            every = tuple(dict.fromkeys((*touched.native, *addresses)))
            packed = msgspec.structs.replace(touched, native=every).pack()
            tx.run(SQL.put_journal, {"number": number, "touched": packed})


# -- rolling back ------------------------------------------------------------------------------------------------


def roll_back_above(tx: Transaction, ancestor: int) -> None:
    """Leave the store as it was when `ancestor` was its newest block (-1: when it had none)."""
    journal = tx.rows(SQL.journal, {"ancestor": ancestor})
    if not journal:
        return
    where = {"ancestor": ancestor, "from_log": above(ancestor), "from_tx": above(ancestor)}
    pairs = holders.rolled_back_pairs(tx, ancestor, max(number for number, _, _ in journal))
    uncounted = holders.dropped(tx, ancestor + 1, holders.counted_to(tx) + 1)
    moved = {one.table: {row[0] for row in tx.rows(SQL.named(f"moved_{one.table}"), where)} for one in STANDARDS}
    held = set(moved["erc20"])
    _drop_code_read_for(tx, ancestor)
    for _, raw, _ in journal:
        touched = unpack_touched(raw)
        _roll_back_touched(tx, touched, ancestor)
        held.update(token for _, token in touched.holders_named)
    _restore_layouts(tx, held, moved, ancestor)
    _roll_back_slots(tx, held, ancestor)
    for statement in (SQL.drop_erc20_holding, SQL.drop_erc20_holder):
        tx.run_many(statement, [(token, ancestor) for token in sorted(held)])
    for standard in BY_ID:
        _roll_back_id_slots(tx, standard, moved[standard.table], ancestor)
        holdings = tx.rows(SQL.named(f"moved_holdings_of_{standard.table}"), where)
        tx.run_many(SQL.named(f"drop_{standard.table}_holding"), [(*row, ancestor) for row in holdings])
    _roll_back_ranges(tx, where, ancestor)
    _roll_back_owners(tx, where, ancestor)
    roll_back_counts(tx, ancestor)
    tokens = {token for (token,) in tx.rows(SQL.redeployed_tokens, where)}.union(*moved.values())
    for statement in (*_LISTS, *_ROWS):
        tx.run(statement, where)
    for statement in _RESTATEMENTS:
        tx.run_many(statement, [(token,) for token in sorted(tokens)])
    holders.recount(tx, pairs, uncounted)
    holders.roll_back_to(tx, ancestor)
    roll_back_raw(tx, ancestor)
    dropped = {"next_address": min(next_address for _, _, next_address in journal)}
    for statement in (SQL.drop_code_of_dropped, SQL.drop_address):
        tx.run(statement, dropped)
    count_rollback(tx)


def count_rollback(tx: Transaction) -> None:
    """Tell readers that IDs and block numbers may be given again."""
    tx.run(SQL.count_rollback)


def _roll_back_touched(tx: Transaction, touched: TouchedAddresses, ancestor: int) -> None:
    tx.run_many(SQL.drop_native_balance, [(address, ancestor) for address in touched.native])
    tx.run_many(SQL.drop_code, [(address, ancestor) for address in touched.code])
    changed, again = touched.storage_changed_unlogged, touched.storage_changed_unlogged_again
    reread = dict.fromkeys((*changed, *again, *touched.code_changed, *touched.maybe_renamed))
    tx.run_many(SQL.reread_token, [(token,) for token in reread])
    tx.run_many(SQL.lower_unlogged_changes, [(token,) for token in (*changed, *again)])


def _restore_layouts(tx: Transaction, held: Set[int], moved: Mapping[str, Set[int]], ancestor: int) -> None:
    """Give tokens the layouts back whose proofs ended above the ancestor. Slots that were stored by a later layout are
    found by that one alone, so they are dropped first."""
    oldest = {row[-1]: row for row in tx.rows(SQL.ended_layouts, {"ancestor": ancestor})}
    _roll_back_slots(tx, oldest.keys() & held, ancestor)
    for standard in BY_ID:
        _roll_back_id_slots(tx, standard, oldest.keys() & moved[standard.table], ancestor)
    tx.run_many(SQL.restore_layout, list(oldest.values()))


def _roll_back_slots(tx: Transaction, tokens: Iterable[int], ancestor: int) -> None:
    """Forget the slots of holders that are named no more, and the history that they were given."""
    for each in sorted(tokens):
        for token, holder, address, packed in tx.rows(SQL.new_slot_holders, {"token": each, "ancestor": ancestor}):
            key = unpack_layout(packed).slot_of(address, 0)
            tx.run(SQL.drop_slot, (token, key[:KEY_STORED]))
            tx.run(SQL.drop_slot_history, {"token": token, "holder": holder, "key": unclaimed_key(key)})
            tx.run(SQL.drop_erc20_history, (holder, token))


def _roll_back_id_slots(tx: Transaction, standard: TokenStandard, tokens: Iterable[int], ancestor: int) -> None:
    """Do the same for holders of IDs."""
    statement = SQL.named(f"new_id_holders_of_{standard.table}")
    for each in sorted(tokens):
        for token, holder, token_id, address, packed in tx.rows(statement, {"token": each, "ancestor": ancestor}):
            slot = unpack_layout(packed).slot_of(address, unpack_uint(token_id))
            tx.run(SQL.drop_slot, (token, slot[:KEY_STORED]))
            tx.run(SQL.named(f"drop_{standard.table}_history"), (holder, token, token_id))


def _drop_code_read_for(tx: Transaction, ancestor: int) -> None:
    """Drop the code that was read as of the ancestor for the block after it: no journal that is left would drop it
    together with the ancestor."""
    own, read = (
        {address for (raw,) in tx.rows(SQL.journal_of, {"number": number}) for address in unpack_touched(raw).code}
        for number in (ancestor, ancestor + 1)
    )
    tx.run_many(SQL.drop_code, [(address, ancestor - 1) for address in sorted(read - own)])


def _roll_back_ranges(tx: Transaction, where: dict[str, int], ancestor: int) -> None:
    ranges = tx.rows(SQL.moved_ranges, {"from_log": where["from_log"]})
    tx.run_many(SQL.drop_nfts_of_range, [(*row, ancestor) for row in ranges])
    tx.run(SQL.drop_nft_range, {"from_log": where["from_log"]})


def _roll_back_owners(tx: Transaction, where: dict[str, int], ancestor: int) -> None:
    moved = {*tx.rows(SQL.moved_nfts, where), *tx.rows(SQL.changed_nfts, where)}
    for token, token_id, address in sorted(moved):
        for (owner,) in tx.rows(SQL.owner_now, (token, token_id)):
            tx.run(SQL.drop_held, (owner, address, token_id))
        new = tx.rows(SQL.layout_of_new_nft, (token, token_id, ancestor))
        for (packed,) in new:
            tx.run(SQL.drop_slot, (token, unpack_layout(packed).slot_of(b"", unpack_uint(token_id))[:KEY_STORED]))
        tx.run(SQL.drop_nft_owner, (token, token_id, -1 if new else ancestor))
        left = tx.rows(SQL.owner_now, (token, token_id))
        if not left:
            tx.run(SQL.lower_moved, {"token": token, "token_id": token_id})
        for (owner,) in left:
            if any(tx.rows(SQL.address_of, (owner,))[0][0]):
                tx.run(SQL.put_held, (owner, address, token_id, token))
