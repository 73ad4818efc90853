"""Rewrites ERC-20 balances of blocks that were stored before the token's storage layout was known, by what its storage
held. What logs said stays where storage agrees; other balances are replaced, each run of blocks in one transaction.

Rows below the run are exact already, and those above are as they were: every row is a whole balance, so a store that is
half done is right below and unchanged above.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from icefall.db.engine import Transaction
from icefall.db.statements import load
from icefall.evm.encoding import block_of, pack_uint, position_of, unpack_uint
from icefall.evm.layouts.formulas import KEY_STORED, StorageLayout, unclaimed_key, unpack_layout
from icefall.evm.model import ERC20, ZERO_ADDRESS
from icefall.evm.storing import holders
from icefall.evm.storing.changed_words import is_plain_variable
from icefall.evm.storing.rollback import count_rollback
from icefall.evm.storing.slot_folding import Pair
from icefall.evm.storing.unclaimed import UnclaimedRoom
from icefall.evm.storing.writing import SQL as WRITES
from icefall.wire.evm.storage import Words, key_of, key_text

SQL = load("icefall.evm.storing", "refolding.sql")
NO_TOKEN_ID = b""
HOLDERS_PER_STEP = 2_000


class OldToken(NamedTuple):
    """A token whose balances before block `since` are those of its logs. Its storage is followed from `first` on."""

    token: int
    address: bytes
    first: int
    since: int
    layout: StorageLayout
    is_whole: bool  # `first` is its deployment

    def covers(self, block: int) -> bool:
        return self.first <= block < self.since


class BlockSlots(NamedTuple):
    """The slots of tokens that a block changed, by the token's address."""

    number: int
    changed: Mapping[bytes, Mapping[str, Words]]


class SlotStep(NamedTuple):
    """A value that a block gave to a holder's slot."""

    block: int
    before: int
    after: int


class Refolded(NamedTuple):
    corrected: int  # balances that logs had wrong
    failed: frozenset[bytes]  # tokens of which a change was missed


def old_tokens(rows: Iterable[tuple[int, bytes, int, int, bytes, int | None]]) -> Iterator[OldToken]:
    for token, address, first_block, since, packed, deployed_at in rows:
        first = first_block if deployed_at is None else min(first_block, block_of(deployed_at))
        layout = unpack_layout(packed)
        yield OldToken(token, address, first, since, layout, deployed_at is not None)


# -- slots of holders ------------------------------------------------------------------------------------------------


def claim_slots(tx: Transaction, one: OldToken, after: tuple[int, int], *, is_embedded: bool) -> tuple[int, int] | None:
    """Store the slots of the next holders, and give them the words that were stored without a known holder. Return
    where the next step begins; None: all are done."""
    params = {"token": one.token, "since": after[0], "holder": after[1], "limit": HOLDERS_PER_STEP}
    found = tx.rows(SQL.holders_after, params)
    slots = {one.layout.slot_of(address, 0): holder for _, holder, address in found if address != ZERO_ADDRESS}
    keys = [(one.token, slot[:KEY_STORED]) for slot in slots]
    known = {row[1] for row in tx.rows_of_each(WRITES.slot_holders, keys)}
    new = {slot: holder for slot, holder in slots.items() if slot[:KEY_STORED] not in known}
    tx.run_many(WRITES.put_slot, [(one.token, slot[:KEY_STORED], who, NO_TOKEN_ID) for slot, who in new.items()])
    by_key = {unclaimed_key(slot): holder for slot, holder in new.items()}
    words = tx.rows_of_each(WRITES.unclaimed_words, [(one.token, key) for key in by_key])
    for _, key, block, word in words:
        _put(tx, (by_key[key], one.token), block, one.layout.value_of(unpack_uint(word)), is_embedded=is_embedded)
    _recount(tx, {(by_key[key], one.token) for _, key, _, _ in words})
    return (found[-1][0], found[-1][1]) if len(found) == HOLDERS_PER_STEP else None


# -- runs of blocks --------------------------------------------------------------------------------------------------


class Refolding:
    """The refolding of one run of blocks, inside its transaction."""

    def __init__(
        self, tx: Transaction, tokens: Mapping[bytes, OldToken], blocks: range, unclaimed_max: int, *, is_embedded: bool
    ) -> None:
        self._tx = tx
        self._tokens = tokens
        self._by_id = {one.token: one for one in tokens.values()}
        self._blocks = blocks
        self._room = UnclaimedRoom(tx, unclaimed_max)
        self._is_embedded = is_embedded
        self._failed: set[bytes] = set()
        self._corrected: set[tuple[Pair, int]] = set()

    def run(self, blocks: Sequence[BlockSlots]) -> Refolded:
        steps = self._steps(blocks)
        no_holders = {row[0] for row in self._tx.rows(holders.SQL.zero_address)}
        pairs = [pair for pair in sorted({*steps, *self._named()}) if pair[0] not in no_holders]
        first, end = self._blocks.start, self._blocks.stop
        rows: dict[Pair, dict[int, int]] = {pair: {} for pair in pairs}
        keys = [(*pair, first, min(end, self._by_id[pair[1]].since)) for pair in pairs]
        for holder, token, block, balance in self._tx.rows_of_each(SQL.balances_between, keys):
            rows[holder, token][block] = unpack_uint(balance)
        before = [(*pair, self._by_id[pair[1]].address, first) for pair in pairs]
        for holder, token, newest, baseline in self._tx.rows_of_each(SQL.balance_before, before):
            pair = holder, token
            self._compare(pair, newest, baseline, rows[pair], steps.get(pair, ()))
        if self._corrected:
            _recount(self._tx, {pair for pair, _ in self._corrected})
            count_rollback(self._tx)
        self._room.write(lambda address: self._tokens[address].token)
        return Refolded(len(self._corrected), frozenset(self._failed))

    def _named(self) -> Iterator[Pair]:
        """Those whom transfers name: what logs said of them may be stored."""
        params = {"low": position_of(self._blocks.start, 0), "high": position_of(self._blocks.stop, 0)}
        for token, *parties in self._tx.rows(SQL.parties, params):
            if token in self._by_id:
                yield from ((party, token) for party in parties)

    def _steps(self, blocks: Sequence[BlockSlots]) -> dict[Pair, list[SlotStep]]:
        """What storage says, by holder and token. A slot without a known holder is stored for one named later."""
        wanted = {
            (self._tokens[address].token, key_of(key)[:KEY_STORED]): (address, key)
            for block in blocks
            for address, slots in block.changed.items()
            for key in slots
        }
        known: dict[tuple[bytes, str], int] = {}
        for token, start, holder, who in self._tx.rows_of_each(WRITES.slot_holders, sorted(wanted)):
            address, key = wanted[token, start]
            if key_text(self._tokens[address].layout.slot_of(who, 0)) == key:
                known[address, key] = holder
        found: dict[Pair, list[SlotStep]] = {}
        for block in blocks:
            for address, slots in sorted(block.changed.items()):
                one = self._tokens[address]
                of_zero = key_text(one.layout.slot_of(ZERO_ADDRESS, 0))
                for key, words in slots.items():
                    before, after = (int(word, 16) for word in words)
                    holder = known.get((address, key))
                    if holder is not None:
                        value = one.layout.value_of
                        step = SlotStep(block.number, value(before), value(after))
                        found.setdefault((holder, one.token), []).append(step)
                    elif (
                        key != of_zero
                        and not is_plain_variable(key)
                        and self._room.take(address, one.token, block.number)
                    ):
                        row = one.token, unclaimed_key(key_of(key)), block.number, pack_uint(after)
                        self._tx.run(SQL.put_unclaimed_word, row)
        return found

    def _compare(
        self,
        pair: Pair,
        newest: bytes | None,
        baseline: bytes | None,
        rows: Mapping[int, int],
        steps: Sequence[SlotStep],
    ) -> None:
        """Replace what is stored of a holder in these blocks by what storage held."""
        one = self._by_id[pair[1]]
        known = baseline if newest is None else newest
        value = 0 if known is None else unpack_uint(known)
        if steps and steps[0].before != value and newest is None:
            value = steps[0].before
            for statement in (SQL.restate_baseline, SQL.restate_merged_baseline):
                self._tx.run(statement, (pack_uint(value), pair[0], one.address))
        expected: dict[int, int] = {}
        for step in steps:
            if step.before != value:  # a change was missed
                self._failed.add(one.address)
                return
            if step.after != value:
                expected[step.block] = value = step.after
        for block in rows.keys() | expected.keys():
            if rows.get(block) == expected.get(block):
                continue
            self._corrected.add((pair, block))
            if block in expected:
                _put(self._tx, pair, block, expected[block], is_embedded=self._is_embedded)
            else:
                _drop(self._tx, pair, block)


def finish_token(tx: Transaction, one: OldToken) -> None:
    """Let all balances of a token count as those of its storage."""
    layout = msgspec.structs.replace(one.layout, is_whole=one.is_whole)
    tx.run(SQL.finish_token, {"token": one.token, "layout": layout.pack()})


def _drop(tx: Transaction, pair: Pair, block: int) -> None:
    low, high = position_of(block, 0), position_of(block + 1, 0)
    tx.run(SQL.drop_balance_at, {"holder": pair[0], "token": pair[1], "low": low, "high": high})
    tx.run(SQL.drop_slot_change_at, (block, pair[1], pair[0], NO_TOKEN_ID))


def _put(tx: Transaction, pair: Pair, block: int, balance: int, *, is_embedded: bool) -> None:
    _drop(tx, pair, block)
    amount = pack_uint(balance)
    tx.run(WRITES.put_slot_change, (block, pair[1], pair[0], NO_TOKEN_ID, amount))
    if is_embedded:
        tx.run(WRITES.put_erc20_balance, (*pair, block, amount))


def _recount(tx: Transaction, pairs: Iterable[Pair]) -> None:
    """Count these holders again, if holders are counted up to somewhere."""
    found = sorted(holders.Pair(ERC20, token, holder) for holder, token in pairs)
    if found and holders.counted_to(tx) >= 0:
        holders.recount(tx, found, holders.Moved({}, {}))
