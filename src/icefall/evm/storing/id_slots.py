"""The owners of NFTs and the amounts of token IDs whose place in the token's storage is known: they are what its slots
hold, whatever the logs say. ERC-20 is in slot_folding.py.

It is done before addresses get their IDs: a slot may name an owner whom no log names. So everything here is by address,
and folding.py writes what was found. A changed slot is looked up among the keys that logs of the token have ever named;
one that is not among them is stored, and becomes the history of the key that a later log names.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from icefall.db.engine import Transaction
from icefall.evm.encoding import unpack_uint
from icefall.evm.layouts.formulas import KEY_STORED, StorageLayout, unclaimed_key
from icefall.evm.model import ERC20, ERC721, ZERO_ADDRESS
from icefall.evm.packed import BalanceChanges
from icefall.evm.standards import BY_ID
from icefall.evm.storing.changed_words import KeyedWords, changed_slots, is_plain_variable
from icefall.evm.storing.slot_folding import Tokens
from icefall.evm.storing.unclaimed import FirstSeen, UnclaimedRoom
from icefall.evm.storing.writing import SQL, AddressIds
from icefall.wire.errors import WireError
from icefall.wire.evm.storage import Words, key_of, key_text, word_of

ADDRESS_SIZE = 20
NO_HOLDER = b""  # of an NFT: its slot is found by its ID alone


class SlotKey(NamedTuple):
    """What a slot is about. `holder` is empty for an NFT."""

    holder: bytes
    token_id: int


class SlotChange(NamedTuple):
    """What a block changed of one slot, or that a log named it: `before` and `after` are None then, or the owner of an
    NFT by the contract's state."""

    token: bytes
    standard: int
    key: SlotKey
    slot: bytes
    before: int | None
    after: int | None
    is_logged: bool  # a log of the block names the key
    is_new: bool  # none has before
    is_whole: bool  # every earlier change of it was seen, and none was dropped
    history: Sequence[tuple[int, int]] = ()  # of a new key: blocks and values, oldest first
    lacks_history: bool = False  # its words were dropped


class UnclaimedWord(NamedTuple):
    """A word whose key is not known. `is_start`: what the slot held before its first change that was seen."""

    token: bytes
    slot: bytes
    block: int
    word: int
    is_start: bool = False


class IdChanges(NamedTuple):
    """What slots tell of a block."""

    tokens: Mapping[bytes, int]  # those whose logs do not count, with the standard for which that is so
    changes: Sequence[SlotChange]
    unclaimed: Sequence[UnclaimedWord]
    unreadable: Sequence[bytes]  # tokens of which a change was missed
    left: Mapping[bytes, KeyedWords]  # by token: the words that are no owner or amount of a known key

    def addresses(self) -> Iterator[bytes]:
        """The addresses that the changes speak of."""
        for one in self.changes:
            if one.standard != ERC721:
                yield one.key.holder
                continue
            yield ZERO_ADDRESS
            for value in (one.before, one.after, *(value for _, value in one.history)):
                if value is not None:
                    yield address_of(value)


NO_CHANGES = IdChanges({}, (), (), (), {})


def address_of(value: int) -> bytes:
    return value.to_bytes(ADDRESS_SIZE, "big")


class _Decoded(NamedTuple):
    """A token of a block: its changed slots, and the keys that logs name."""

    token: bytes
    layout: StorageLayout
    changed: dict[str, Words]
    named: dict[str, SlotKey]


class IdSlots:
    """The slots of one batch of blocks. `owners`: those of NFTs that were read from state, among other baselines."""

    def __init__(
        self, tx: Transaction, ids: AddressIds, owners: Mapping[tuple[bytes, bytes, int], int], room: UnclaimedRoom
    ) -> None:
        self._tx = tx
        self._ids = ids
        self._owners = owners
        self._known: dict[tuple[bytes, str], SlotKey] = {}  # by token and key of the slot
        self._unclaimed: dict[tuple[bytes, bytes], list[tuple[int, int]]] = {}  # block and word, oldest first
        self._room = room
        self._first_seen = FirstSeen(tx)

    def changes(self, batch: Sequence[BalanceChanges], storage: Sequence[Tokens]) -> list[IdChanges]:
        """What the slots of each block tell."""
        with_ids = [{token: one for token, one in tokens.items() if one.layout.standard != ERC20} for tokens in storage]
        if not any(with_ids):
            return [NO_CHANGES] * len(batch)
        self._ids.load(self._tx, [token for tokens in with_ids for token in tokens])
        unreadable: list[list[bytes]] = []
        blocks: list[list[_Decoded]] = []
        for rows, tokens in zip(batch, with_ids, strict=True):
            unreadable.append([])
            blocks.append(list(_decoded(rows, tokens, unreadable[-1])))
        self._load(blocks)
        numbers = [rows.block.number for rows in batch]
        partly = [
            (at, one.token) for at, of in zip(numbers, blocks, strict=True) for one in of if not one.layout.is_whole
        ]
        self._first_seen.load(partly, self._ids.known)
        found = []
        for rows, of_block, tokens, missed in zip(batch, blocks, with_ids, unreadable, strict=True):
            changes: list[SlotChange] = []
            unclaimed: list[UnclaimedWord] = []
            left: dict[bytes, KeyedWords] = {}
            for one in of_block:
                changes += self._of_names(one)
                if one.changed:
                    left[one.token] = self._of_others(one, rows.block.number, changes, unclaimed)
            standards = {token: storage.layout.standard for token, storage in tokens.items()}
            found.append(IdChanges(standards, changes, unclaimed, missed, left))
        return found

    # -- what is stored ----------------------------------------------------------------------------------------

    def _load(self, blocks: Sequence[Sequence[_Decoded]]) -> None:
        """Read which keys of the batch were named before, and the words of those that are named for the first time."""
        wanted: dict[tuple[int, bytes], tuple[_Decoded, str]] = {}
        for of_block in blocks:
            for one in of_block:
                number = self._ids.known(one.token)
                for text in {**one.changed, **one.named} if number is not None else ():
                    wanted[number or 0, key_of(text)[:KEY_STORED]] = one, text
        tokens = [one.token for of_block in blocks for one in of_block]
        self._room.load({number: one for one in tokens if (number := self._ids.known(one)) is not None})
        for token, start, holder, packed_id in self._tx.rows_of_each(SQL.slot_keys, sorted(wanted)):
            one, text = wanted[token, start]
            key = SlotKey(holder or NO_HOLDER, unpack_uint(packed_id))
            if key_text(one.layout.slot_of(*key)) == text:
                self._known[one.token, text] = key
        new = {
            (self._ids.known(one.token) or 0, unclaimed_key(key_of(text))): one.token
            for of_block in blocks
            for one in of_block
            for text in one.named
            if self._ids.known(one.token) is not None and (one.token, text) not in self._known
        }
        for token, start, block, word in self._tx.rows_of_each(SQL.unclaimed_words, sorted(new)):
            self._unclaimed.setdefault((new[token, start], start), []).append((block, unpack_uint(word)))

    # -- block by block ----------------------------------------------------------------------------------------

    def _of_names(self, one: _Decoded) -> Iterator[SlotChange]:
        layout = one.layout
        for text, key in one.named.items():
            words, slot = one.changed.pop(text, None), key_of(text)
            is_new = (one.token, text) not in self._known
            history: Sequence[tuple[int, int]] = ()
            if is_new:
                self._known[one.token, text] = key
                words_before = self._unclaimed.pop((one.token, unclaimed_key(slot)), ())
                history = [(block, layout.value_of(word)) for block, word in words_before]
            before, after = _values(layout, words) if words is not None else (None, None)
            has_dropped = self._room.has_dropped(one.token)
            whole = layout.is_whole and not has_dropped
            read = None if whole or words is not None else self._owners.get((one.token, key.holder, key.token_id))
            if words is None and is_new and not history and layout.standard == ERC721:
                before = after = read
            true = read if words is None else before
            lacks = is_new and has_dropped and bool(history or layout.is_whole) and true is not None
            lacks = lacks and true != (history[-1][1] if history else 0)
            yield SlotChange(one.token, layout.standard, key, slot, before, after, True, is_new, whole, history, lacks)

    def _of_others(
        self, one: _Decoded, number: int, changes: list[SlotChange], unclaimed: list[UnclaimedWord]
    ) -> KeyedWords:
        """Add the slots that no log of the block names. Return those whose key is not known."""
        left = []
        for text, words in one.changed.items():
            if is_plain_variable(text):
                left.append((text, words))
                continue
            slot, key = key_of(text), self._known.get((one.token, text))
            if key is not None:
                before, after = _values(one.layout, words)
                whole = one.layout.is_whole
                changes.append(
                    SlotChange(one.token, one.layout.standard, key, slot, before, after, False, False, whole)
                )
                continue
            left.append((text, words))
            if self._room.take(one.token, self._ids.known(one.token), number):
                unclaimed += self._kept(one, unclaimed_key(slot), number, words)
        return left

    def _kept(self, one: _Decoded, slot: bytes, number: int, words: Words) -> list[UnclaimedWord]:
        """A word whose key is not known, after what the slot may have held since before changes were seen."""
        before, after = word_of(words[0]), word_of(words[1])
        known = self._unclaimed.setdefault((one.token, slot), [])
        start = None
        if before and not known and not one.layout.is_whole and not self._room.has_dropped(one.token):
            start = self._first_seen.before(one.token, number)
        kept = [] if start is None else [UnclaimedWord(one.token, slot, start, before, is_start=True)]
        kept.append(UnclaimedWord(one.token, slot, number, after))
        known += [(word.block, word.word) for word in kept]
        return kept


def _decoded(rows: BalanceChanges, tokens: Tokens, unreadable: list[bytes]) -> Iterator[_Decoded]:
    """The tokens of a block in the order of their addresses, which no batch changes."""
    for token, storage in sorted(tokens.items()):
        layout = storage.layout
        try:
            changed = changed_slots(storage)
            for words in changed.values():
                _values(layout, words)
        except WireError:  # what an upstream sent cannot be read
            unreadable.append(token)
            changed = {}
        keys = dict.fromkeys(_named(rows, token, layout.standard))
        yield _Decoded(token, layout, changed, {key_text(layout.slot_of(*key)): key for key in keys})


def _named(rows: BalanceChanges, token: bytes, standard: int) -> Iterator[SlotKey]:
    if standard == ERC721:
        yield from (SlotKey(NO_HOLDER, one.token_id) for one in rows.nft_owners if one.token == token)
        return
    for of_standard, changes in zip(BY_ID, rows.id_deltas, strict=True):
        if of_standard.number == standard:
            for one in changes:
                if one.token == token and one.holder != ZERO_ADDRESS:
                    yield SlotKey(one.holder, one.token_id)


def _values(layout: StorageLayout, words: Words) -> tuple[int, int]:
    return layout.value_of(word_of(words[0])), layout.value_of(word_of(words[1]))
