"""The folding of ERC-20 balances whose place in the token's storage is known: the balance after a block is what its
slot holds, whatever the logs say.

A changed slot is looked up among the holders that the block's logs name, then among all that were ever named. One that
has no known holder may be an allowance, or belong to one whom no log has named: its words are stored, up to
UNCLAIMED_MAX of a token, and become the history of the holder whom a later block names (unclaimed.py).
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from icefall.db.engine import Transaction
from icefall.evm.deriving.packing import Ids, Row
from icefall.evm.encoding import pack_uint, unpack_uint
from icefall.evm.layouts.formulas import KEY_STORED, StorageLayout, unclaimed_key
from icefall.evm.model import ZERO_ADDRESS
from icefall.evm.packed import BalanceChanges, TokenStorage
from icefall.evm.storing.changed_words import KeyedWords, changed_slots, is_plain_variable
from icefall.evm.storing.unclaimed import FirstSeen, UnclaimedRoom
from icefall.evm.storing.writing import SQL
from icefall.wire.errors import WireError
from icefall.wire.evm.storage import Words, key_of, key_text

_WHOLE = 256  # bits of a word

Pair = tuple[int, int]  # holder and token, as IDs
SlotKeys = dict[Pair, str]  # the key of each pair's slot, as text: one hash each
Erc20Balances = dict[Pair, int]  # newest balance
Tokens = Mapping[bytes, TokenStorage]


class Folded:
    """The result of folding a batch: rows by table, newest balances, and tokens that contradict themselves."""

    def __init__(self, tables: Iterable[str], erc20: Erc20Balances, *, is_embedded: bool) -> None:
        self._is_embedded = is_embedded
        self.rows: dict[str, list[Row]] = {table: [] for table in tables}
        self.erc20 = erc20
        self.untrusted: dict[int, int] = {}  # by token: the block
        self.unclaimed_starts: list[Row] = []  # as rows of `unclaimed_slot`

    def add_unlogged(self, pair: Pair, block: int, balance: int) -> None:
        """Add a balance of an ERC-20 token that no transfer of its block tells. A server has no other row for it."""
        amount = pack_uint(balance)
        self.rows["slot_change"].append((block, pair[1], pair[0], b"", amount))
        if self._is_embedded:
            self.rows["erc20_balance"].append((*pair, block, amount))


class _TokenChanges(NamedTuple):
    """The storage of a token that a block changed."""

    address: bytes
    token: int
    layout: StorageLayout
    changed: dict[str, Words]
    named: list[tuple[bytes, Pair, str]]  # holders whom logs of the block name, with the keys of their slots
    is_readable: bool


class SlotFolding:
    """The folding of one batch of blocks. `keys` are those that earlier batches computed; it is updated."""

    def __init__(self, tx: Transaction, ids: Ids, folded: Folded, keys: SlotKeys, room: UnclaimedRoom) -> None:
        self._tx = tx
        self._ids = ids
        self._folded = folded
        self._keys = keys
        self._blocks: dict[int, list[_TokenChanges]] = {}
        self._holders: dict[tuple[int, str], int] = {}  # by token and key: of slots that no log of their block names
        self._unclaimed: dict[tuple[int, bytes], list[tuple[int, int]]] = {}  # block and word, oldest first
        self._room = room
        self._first_seen = FirstSeen(tx)

    def load(self, batch: Sequence[BalanceChanges], storage: Sequence[Tokens], first_new: int) -> dict[Pair, bytes]:
        """Decode what the batch changed. Return the pairs that no log names, each with the token's address."""
        unexplained: dict[tuple[int, bytes], tuple[_TokenChanges, str]] = {}
        for rows, tokens in zip(batch, storage, strict=True):
            if not tokens:
                continue
            found = self._blocks[rows.block.number] = self._decoded(rows, tokens)
            for one in found:
                if one.token >= first_new or not one.changed:
                    continue
                for key in one.changed.keys() - {key for _, _, key in one.named}:
                    if not is_plain_variable(key):
                        unexplained[one.token, key_of(key)[:KEY_STORED]] = one, key
        pairs: dict[Pair, bytes] = {}
        for token, start, holder, address in self._tx.rows_of_each(SQL.slot_holders, list(unexplained)):
            one, key = unexplained[token, start]
            if key_text(one.layout.slot_of(address, 0)) == key:
                self._holders[token, key] = holder
                pairs[holder, token] = one.address
        return pairs

    def load_unclaimed(self, first_new: int) -> None:
        """Read the words of slots whose holders are named for the first time. Balances must have been loaded."""
        tokens = {one.token: one.address for found in self._blocks.values() for one in found if one.token < first_new}
        with_some = self._room.load(tokens)
        partly = [(at, one.address) for at, found in self._blocks.items() for one in found if not one.layout.is_whole]
        self._first_seen.load(partly, self._ids)
        wanted = {
            (one.token, unclaimed_key(key_of(key)))
            for found in self._blocks.values()
            for one in found
            if one.token in with_some
            for _, pair, key in one.named
            if pair not in self._folded.erc20
        }
        for token, key, block, word in self._tx.rows_of_each(SQL.unclaimed_words, sorted(wanted)):
            self._unclaimed.setdefault((token, key), []).append((block, unpack_uint(word)))

    def _decoded(self, rows: BalanceChanges, tokens: Tokens) -> list[_TokenChanges]:
        ids, keys = self._ids, self._keys
        named: dict[bytes, list[tuple[bytes, Pair, str]]] = {token: [] for token in tokens}
        known = {token: (ids(token), one.layout, named[token]) for token, one in tokens.items()}
        for change in rows.erc20_deltas:
            of_token, holder = known.get(change.token), change.holder
            if of_token is None or holder == ZERO_ADDRESS:
                continue
            token, layout, names = of_token
            pair = ids(holder), token
            key = keys.get(pair)
            if key is None:
                key = keys[pair] = key_text(layout.slot_of(holder, 0))
            names.append((holder, pair, key))
        found = []
        for address, one in tokens.items():
            token = self._ids(address)
            try:
                changed = changed_slots(one)
            except WireError:  # what an upstream sent cannot be read: a change is missed
                self._folded.untrusted.setdefault(token, rows.block.number)
                found.append(_TokenChanges(address, token, one.layout, {}, named[address], is_readable=False))
            else:
                found.append(_TokenChanges(address, token, one.layout, changed, named[address], is_readable=True))
        return found

    # -- block by block ----------------------------------------------------------------------------------------

    def add(
        self, number: int, baselines: Mapping[tuple[bytes, bytes, int], int], unmoved: Set[Pair]
    ) -> dict[bytes, KeyedWords | None]:
        """Fold the next block. `unmoved`: those whom its logs name without a transfer. Return the words that are no
        balance of a known holder, by token; None: they cannot be read."""
        left: dict[bytes, KeyedWords | None] = {}
        for one in self._blocks.get(number, ()):
            try:
                self._add(one, number, baselines, unmoved)
                if one.changed or not one.is_readable:
                    left[one.address] = self._unnamed(one, number) if one.is_readable else None
            except ValueError:  # what an upstream sent is not hex: a change is missed
                self._folded.untrusted.setdefault(one.token, number)
                left[one.address] = None
        return left

    def _add(
        self,
        one: _TokenChanges,
        number: int,
        baselines: Mapping[tuple[bytes, bytes, int], int],
        unmoved: Set[Pair],
    ) -> None:
        erc20, changed, layout = self._folded.erc20, one.changed, one.layout
        balances, is_part = self._folded.rows["erc20_balance"], layout.bits < _WHOLE
        for holder, pair, key in one.named:
            words, balance = changed.pop(key, None), erc20.get(pair)
            if words is None:
                if balance is None:
                    read = baselines.get((one.address, holder, -1)) if self._may_lack(one) else 0
                    erc20[pair] = self._first(one, pair, number, key, read)
                continue
            before, after = int(words[0], 16), int(words[1], 16)
            if is_part:
                before, after = layout.value_of(before), layout.value_of(after)
            if balance is None:
                balance = self._first(one, pair, number, key, before)
            if before != balance:  # a change was missed
                self._folded.untrusted.setdefault(one.token, number)
            if after != balance:
                if pair in unmoved:
                    self._folded.add_unlogged(pair, number, after)
                else:
                    balances.append((*pair, number, pack_uint(after)))
            erc20[pair] = after

    def _may_lack(self, one: _TokenChanges) -> bool:
        """Tell whether a slot may have changed unseen."""
        return not one.layout.is_whole or self._room.has_dropped(one.address)

    def _first(self, one: _TokenChanges, pair: Pair, number: int, key: str, before: int | None) -> int:
        """Add a holder who is named for the first time, with the earlier words of its slot. Return the balance before
        the block. `before`: what it must be; None: not known."""
        rows, raw = self._folded.rows, key_of(key)
        claimed = self._unclaimed.pop((one.token, unclaimed_key(raw)), ()) if self._unclaimed else ()
        if before is not None and self._room.has_dropped(one.address) and (claimed or one.layout.is_whole):
            last = one.layout.value_of(claimed[-1][1]) if claimed else 0
            if before != last:  # words of it were dropped
                self._folded.untrusted.setdefault(one.token, number)
        balance = 0 if claimed else before or 0
        rows["erc20_holding"].append((pair[0], one.address, one.token, pack_uint(balance)))
        rows["erc20_holder"].append((one.token, number, pair[0]))
        rows["slot"].append((one.token, raw[:KEY_STORED], pair[0], b""))
        self._holders[one.token, key] = pair[0]
        for block, word in claimed:
            balance = one.layout.value_of(word)
            self._folded.add_unlogged(pair, block, balance)
        return balance

    def _unnamed(self, one: _TokenChanges, number: int) -> KeyedWords:
        """Fold the slots of holders whom the block does not name. Return the others."""
        folded, left = self._folded, []
        of_zero = key_text(one.layout.slot_of(ZERO_ADDRESS, 0))
        for key, words in one.changed.items():
            if is_plain_variable(key):
                left.append((key, words))
                continue
            holder = self._holders.get((one.token, key))
            if holder is not None:
                pair = holder, one.token
                balance, before, after = folded.erc20[pair], *(one.layout.value_of(int(word, 16)) for word in words)
                if before != balance:
                    folded.untrusted.setdefault(one.token, number)
                if after != balance:
                    folded.add_unlogged(pair, number, after)
                folded.erc20[pair] = after
            elif key != of_zero:
                left.append((key, words))
                if self._room.take(one.address, one.token, number):
                    self._keep(one, unclaimed_key(key_of(key)), number, words)
        return left

    def _keep(self, one: _TokenChanges, slot: bytes, number: int, words: Words) -> None:
        """Store a word whose holder is not known, after what the slot may have held since before changes were seen."""
        before, after = (int(word, 16) for word in words)
        kept = self._unclaimed.setdefault((one.token, slot), [])
        if before and not kept and not one.layout.is_whole and not self._room.has_dropped(one.address):
            start = self._first_seen.before(one.address, number)
            if start is not None:
                self._folded.unclaimed_starts.append((one.token, slot, start, pack_uint(before)))
                kept.append((start, before))
        self._folded.rows["unclaimed_slot"].append((one.token, slot, number, pack_uint(after)))
        kept.append((number, after))
