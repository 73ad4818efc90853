"""The layouts of tokens as blocks are made ready to be stored: proven when a token is first seen, and again when its
code changes.

A proof is made at the state of its block. Where no upstream has that any more, it is made at the newest block, but for
proxies: what they ran then is not known. A token that changes its layout is untrusted from there on: the balances of
all its holders may be others, and nothing shows whose.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple, Protocol

import msgspec

from icefall.evm.contract_calls import address_of, balance_of, balance_of_id, owner_of, uint_of
from icefall.evm.layouts.formulas import StorageLayout
from icefall.evm.layouts.proof import CannotProve, Refused, SeenKey
from icefall.evm.model import ERC20, ERC721, ZERO_ADDRESS
from icefall.evm.packed import Columns, PackedBlock, ResolvedBlock, TokenStorage
from icefall.evm.standards import BY_ID, BY_NUMBER
from icefall.evm.storing.batch import FoundLayout
from icefall.evm.storing.folding import NO_ID, HeldKey
from icefall.evm.storing.id_slots import NO_HOLDER
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.client import gather_or_cancel
from icefall.upstream.evm.errors import Aborted, NoState, Reverted
from icefall.upstream.evm.state import At, ContractCall, StateCall

_CONTRACTS_CACHED = 100_000
_PROOFS_CACHED = 10_000
_HOLDERS_CACHED = 100_000
_WORD_TEXT = 72  # bytes of a changed word at least: its key and its value, in quotes
_PROOFS_AT_ONCE = 8
_KEYS = re.compile(rb'"0x[0-9a-f]{2}([0-9a-f]{62})": *"')  # of changed words, without the first byte
OWNERS_ASKED_MAX = 1_000  # in a block: of NFTs that it names without a change; the tokens of others become untrusted

_Proof = tuple[bytes, bytes]  # a token and the hash of the block at whose state it was proven


class LayoutProver(Protocol):
    async def prove(self, seen: SeenKey, at: At) -> StorageLayout | Refused: ...


class LayoutState(Protocol):
    """The state of a chain, as far as layouts need it."""

    async def head(self) -> int: ...

    async def results(self, calls: Sequence[StateCall]) -> list[bytes | Reverted]: ...


class _Known(NamedTuple):
    """What is known of a contract. `layout` None: balances follow from its logs."""

    is_token: bool
    layout: StorageLayout | None = None


class Advanced(NamedTuple):
    """What a block changed of the storage of tokens with a layout, also of those that only logs name, and of other
    tokens; and the layouts that were found."""

    slots: dict[bytes, TokenStorage]
    others: dict[bytes, list[bytes]]
    layouts: list[FoundLayout]


NOTHING_CHANGED = Advanced({}, {}, [])
_NO_TOKEN = _Known(is_token=False)
_BY_LOGS = _Known(is_token=True)


class TokenLayouts:
    """The layouts of one chain. Call `forget` whenever blocks it has seen are not stored after all."""

    def __init__(self, store: ChainStore, prover: LayoutProver, state: LayoutState) -> None:
        self._store = store
        self._prover = prover
        self._state = state
        self._known: dict[bytes, _Known] = {}
        self._proofs: dict[_Proof, StorageLayout | None] = {}  # of tokens that are first seen
        self._named: set[HeldKey] = set()  # those whom blocks have named: all are stored, or will be before they matter
        self._words: dict[bytes, int] = {}  # at most so many words of the token are stored without a known holder

    def forget(self) -> None:
        """Forget the blocks, not the proofs, which hold wherever the block of their state is stored. A block can name
        hundreds of new tokens, and an upstream that fails once in as many calls would never get past it."""
        self._known.clear()
        self._words.clear()
        self._named.clear()

    def trim(self) -> None:
        """Bound the memory, only when every block it has seen is stored."""
        if len(self._proofs) > _PROOFS_CACHED:
            self._proofs.clear()
        if len(self._known) > _CONTRACTS_CACHED:
            self._known.clear()
            self._words.clear()
        if len(self._named) > _HOLDERS_CACHED:
            self._named.clear()

    # -- chunk by chunk ----------------------------------------------------------------------------------------

    async def prepare(self, blocks: Sequence[PackedBlock]) -> None:
        """Read what is stored of the contracts in these blocks, and prove the layouts of tokens that are new."""
        unread: dict[bytes, None] = {}
        for rows in blocks:
            unread.update((address, None) for address, _ in rows.storage if address not in self._known)
            unread.update((address, None) for address in rows.code_changed if address not in self._known)
            unread.update((token, None) for token in _tokens(rows) if token not in self._known)
        stored = self._store.layouts(list(unread)) if unread else {}
        for address in unread:
            self._known[address] = _Known(True, stored[address]) if address in stored else _NO_TOKEN
        self._words.update(self._store.unclaimed_words([one for one, layout in stored.items() if layout is not None]))
        new: dict[bytes, PackedBlock] = {}
        for rows in blocks:
            for token in _tokens(rows):
                if not self._known[token].is_token:
                    new.setdefault(token, rows)
        at_once = asyncio.Semaphore(_PROOFS_AT_ONCE)

        async def prove(token: bytes, rows: PackedBlock) -> None:
            async with at_once:
                with suppress(CannotProve):
                    self._proofs[token, rows.block.block_hash] = await self._proven(token, rows)

        unproven = {at: rows for at, rows in new.items() if (at, rows.block.block_hash) not in self._proofs}
        await gather_or_cancel(prove(token, rows) for token, rows in unproven.items())

    # -- block by block ----------------------------------------------------------------------------------------

    async def advance(self, rows: PackedBlock) -> Advanced:
        """Follow the next block."""
        found: list[FoundLayout] = []
        for address in rows.code_changed:
            if self._known.get(address, _NO_TOKEN).is_token:
                found += await self._proven_again(address, rows)
        tokens = _tokens(rows)
        for token in tokens:
            if not self._known[token].is_token:
                proof = token, rows.block.block_hash
                self._known[token] = _Known(True, self._proofs.get(proof))
                if proof in self._proofs:
                    found.append(FoundLayout(token, rows.block.number, self._proofs[proof], is_other=False))
        texts: dict[bytes, list[bytes]] = {}
        others: dict[bytes, list[bytes]] = {}
        for token, standards in tokens.items():
            layout = self._known[token].layout
            if layout is not None and standards & layout.standard:
                texts[token] = []
        for address, text in rows.storage:
            known = self._known[address]
            if known.is_token:
                (others if known.layout is None else texts).setdefault(address, []).append(text)
        slots = {
            token: TokenStorage(layout, of_it, self._may_lack_words(token, of_it))
            for token, of_it in texts.items()
            if (layout := self._layout(token))
        }
        return Advanced(slots, others, found)

    def _may_lack_words(self, token: bytes, texts: Iterable[bytes]) -> bool:
        """Tell whether words of a token may have been dropped by the end of the block. Most words have a holder, so
        there are fewer: then a balance is read that is not needed."""
        self._words[token] = words = self._words.get(token, 0) + sum(len(text) // _WORD_TEXT for text in texts)
        return words > self._store.unclaimed_max

    def _layout(self, token: bytes) -> StorageLayout | None:
        return self._known[token].layout

    async def _proven_again(self, token: bytes, rows: PackedBlock) -> list[FoundLayout]:
        """Prove the layout of a known token that runs other code from this block on."""
        before = self._known[token].layout
        try:
            after = await self._proven(token, rows, None if before is None else before.standard)
        except CannotProve:
            if before is None:
                return []
            after = None
        is_other = before is not None and (after is None or not after.is_same_place(before) or token in rows.deployed)
        if is_other:
            after = None
        elif before is not None and after is not None:
            after = msgspec.structs.replace(after, is_whole=before.is_whole)
            self._known[token] = _Known(True, after)
            return [FoundLayout(token, -1, after, is_other=False)]
        self._known[token] = _Known(True, after)
        return [FoundLayout(token, rows.block.number, after, is_other)]

    async def _proven(self, token: bytes, rows: PackedBlock, standard: int | None = None) -> StorageLayout | None:
        """The layout at a block; None: refused. CannotProve where it cannot be found out here. `standard`: that of the
        block's logs if it is None; a contract of several has no layout."""
        if standard is None:
            standard = _tokens(rows).get(token, ERC20)
        if standard not in BY_NUMBER:
            return None
        seen = SeenKey(token, standard, *_named_key(token, standard, rows))
        try:
            layout = await self._prover.prove(seen, rows.block.block_hash)
        except NoState:
            layout = await self._proven_now(seen)
        if isinstance(layout, Refused):
            return None
        return msgspec.structs.replace(layout, is_whole=token in rows.deployed)

    async def _proven_now(self, seen: SeenKey) -> StorageLayout | Refused:
        """The layout at the newest block, which was the same before unless the token is a proxy."""
        try:
            layout = await self._prover.prove(seen, await self._state.head())
        except NoState as missing:
            raise CannotProve(str(missing)) from missing
        if isinstance(layout, StorageLayout) and layout.is_proxy:
            raise CannotProve("what a proxy ran at a block whose state is pruned is not known")
        return layout

    # -- balances from before the proof ------------------------------------------------------------------------

    async def baselines(self, blocks: Iterable[ResolvedBlock]) -> dict[HeldKey, int]:
        """The balances that holders had before the block that first names them, where their slot did not change in it
        and the token is older than what was seen of its storage."""
        wanted: dict[HeldKey, bytes] = {}
        for block in blocks:
            for key in self._unchanged(block, _named_holders(block)):
                wanted.setdefault(key, block.rows.block.parent_hash)
        keys = self._store.not_held(list(wanted)) if wanted else []
        try:
            calls = [StateCall(_balance_call(*key), wanted[key]) for key in keys]
            answers = await self._state.results(calls) if calls else []
        except NoState:  # as if it had nothing; an audit may find another balance
            return {}
        return {key: uint_of(answer) or 0 for key, answer in zip(keys, answers, strict=True)}

    async def owners(self, blocks: Iterable[ResolvedBlock]) -> dict[HeldKey, int]:
        """The owners, as numbers, of NFTs that no log named before their block, where the slot did not change in it
        and the token is older than what was seen of its storage. Without the state they are not known."""
        wanted: dict[HeldKey, bytes] = {}
        for block in blocks:
            for key in islice(self._unchanged(block, _named_nfts(block)), OWNERS_ASKED_MAX):
                wanted.setdefault(key, block.rows.block.parent_hash)
        keys = self._store.not_named(list(wanted)) if wanted else []
        try:
            calls = [StateCall(owner_of(token, token_id), wanted[key]) for key in keys for token, _, token_id in [key]]
            answers = await self._state.results(calls) if calls else []
        except NoState:
            return {}
        return {
            key: int.from_bytes(address_of(answer) or ZERO_ADDRESS, "big")
            for key, answer in zip(keys, answers, strict=True)
            if not isinstance(answer, Aborted)
        }

    def _unchanged(self, block: ResolvedBlock, named: Iterable[HeldKey]) -> Iterator[HeldKey]:
        """Those of the named that no block before named, and whose slot the block does not change. All are of tokens
        whose storage may have changed unseen."""
        changed: dict[bytes, set[bytes]] = {}  # by token: the keys of slots, as text
        for key in named:
            if key in self._named:
                continue
            self._named.add(key)
            token, holder, token_id = key
            storage = block.slots[token]
            if token not in changed:
                changed[token] = set(_KEYS.findall(b"\n".join(storage.texts)))
            slot = storage.layout.slot_of(holder, max(token_id, 0))
            if slot[1:].hex().encode() not in changed[token]:  # the first byte may be written in two ways
                yield key


def _tokens(rows: PackedBlock) -> dict[bytes, int]:
    """The tokens that logs of the block name, and of which standards these are."""
    return {rows.addresses[place]: standards for place, standards in rows.standards.items() if standards}


def _named_key(token: bytes, standard: int, rows: PackedBlock) -> tuple[bytes, int]:
    """A holder and a token ID that the block names with the token; the token itself and 0 where there is none."""
    address = rows.addresses.__getitem__
    keys: Iterable[tuple[int, int, int]]
    if standard == ERC721:
        keys = zip(rows.nft_owners[0], rows.nft_owners[2], rows.nft_owners[1], strict=True)
    elif standard == ERC20:
        keys = ((place, holder, 0) for place, holder in zip(*rows.erc20_deltas[:2], strict=True))
    else:
        keys = ((place, holder, token_id) for columns in rows.id_deltas for place, holder, token_id in _ids_of(columns))
    for place, holder, token_id in keys:
        if address(place) == token and address(holder) != ZERO_ADDRESS:
            return address(holder), token_id
    return token, 0


def _ids_of(columns: Columns) -> Iterable[tuple[int, int, int]]:
    tokens, holders, token_ids, _ = columns
    return zip(tokens, holders, token_ids, strict=True)


def _balance_call(token: bytes, holder: bytes, token_id: int) -> ContractCall:
    return balance_of(token, holder) if token_id == NO_ID else balance_of_id(token, holder, token_id)


def _partly_seen(block: ResolvedBlock) -> Mapping[bytes, TokenStorage]:
    """The tokens of a block whose storage may have changed unseen: they are older, or words were dropped."""
    return {token: one for token, one in block.slots.items() if not one.layout.is_whole or one.may_lack_words}


def _named_nfts(block: ResolvedBlock) -> Iterator[HeldKey]:
    """The NFTs of such tokens that the block names."""
    partly = _partly_seen(block)
    for place, token_id in zip(*block.rows.nft_owners[:2], strict=True) if partly else ():
        token = block.rows.addresses[place]
        storage = partly.get(token)
        if storage is not None and storage.layout.standard == ERC721:
            yield token, NO_HOLDER, token_id


def _named_holders(block: ResolvedBlock) -> Iterator[HeldKey]:
    """The holders of such tokens whom the block names."""
    partly = _partly_seen(block)
    if not partly:
        return
    named = [(ERC20, place, at, NO_ID) for place, at in zip(*block.rows.erc20_deltas[:2], strict=True)]
    for standard, columns in zip(BY_ID, block.rows.id_deltas, strict=True):
        named += [(standard.number, *key) for key in _ids_of(columns)]
    for of_standard, place, at, token_id in named:
        token, holder = block.rows.addresses[place], block.rows.addresses[at]
        storage = partly.get(token)
        if storage is not None and storage.layout.standard == of_standard and holder != ZERO_ADDRESS:
            yield token, holder, token_id
