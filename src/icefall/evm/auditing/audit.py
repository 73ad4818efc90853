"""Compares balances and owners folded from logs with the contracts' own state, at the newest stored block.

Audited is everything that changed since the last audit, and a sample of the holders of tokens whose storage changed
without a log that explains it. A token that disagrees once stays untrusted: its balances are read from state.
"""

import asyncio
from collections.abc import Iterator
from itertools import groupby, islice
from typing import NamedTuple

from icefall.db.engine import Row, Transaction
from icefall.db.statements import load
from icefall.evm.amounts import unpack_uint
from icefall.evm.model import ERC20, ERC721, ERC1155, ZERO_ADDRESS
from icefall.evm.positions import above
from icefall.evm.state_source import StateSource
from icefall.evm.storing.journal import unpack_touched
from icefall.evm.storing.store import ChainStore, Tip
from icefall.evm.token_calls import address_of, balance_of, balance_of_id, owner_of, uint_of
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import ContractCall

SQL = load("icefall.evm.auditing", "audit.sql")
_SAMPLE = 32  # holders checked of a token whose storage changed without a log
_AT_ONCE = 500
_BLOCKS_AT_ONCE = 256  # an audit may have to catch up with millions


class _Claim(NamedTuple):
    """A folded value, and the contract call that must return the same."""

    token: int
    call: ContractCall
    folded: int | bytes  # a balance, or an owner


class _Changed(NamedTuple):
    """What to compare: (token, holder), (token, holder, token ID), (token, token ID)."""

    erc20: set[Row]
    erc1155: set[Row]
    nfts: set[Row]


class Audit:
    def __init__(self, store: ChainStore, state: StateSource) -> None:
        self._store = store
        self._state = state

    def audited_to(self) -> int:
        return int(self._store.meta("audited_to") or -1)

    async def run(self, tip: Tip) -> None:
        """Up to the newest block. NoState where no upstream has its state; then nothing counts as audited."""
        after = self.audited_to()
        if after >= tip.number:
            return
        claims = self._claims(await self._changed(after, tip.number), tip.number)
        untrusted: set[int] = set()
        while some := list(islice(claims, _AT_ONCE)):
            some = [claim for claim in some if claim.token not in untrusted]
            answers = await self._state.answers([claim.call for claim in some], tip.block_hash)
            untrusted |= {
                claim.token for claim, answer in zip(some, answers, strict=True) if not _agrees(claim.folded, answer)
            }
        await self._store.write(lambda tx: _put_result(tx, tip.number, untrusted))

    async def _changed(self, after: int, to: int) -> _Changed:
        """Some blocks at a time, so that no query takes long."""
        read, changed = self._store.read, _Changed(set(), set(), set())
        silent: set[int] = set()
        for low in range(max(after, (self._store.lowest() or 0) - 1), to, _BLOCKS_AT_ONCE):
            high = min(low + _BLOCKS_AT_ONCE, to)
            where = {"from_log": above(low), "to_log": above(high) - 1}
            for found, query in zip(changed, (SQL.erc20_pairs, SQL.erc1155_pairs, SQL.nfts), strict=True):
                found.update(read(query, where))
            for (raw,) in read(SQL.journals, {"after": low, "to": high}):
                touched = unpack_touched(raw)
                changed.erc20.update([(token, holder) for holder, token in touched.named])
                silent.update(touched.silent)
            await asyncio.sleep(0)
        for token in silent:
            self._add_sample(changed, token)
        return changed

    def _add_sample(self, changed: _Changed, token: int) -> None:
        """Some holders of a token whose storage changed without a log."""
        read = self._store.read
        standards = next((row[1] for row in read(SQL.trusted_token, (token,))), 0)
        if standards & ERC20:
            changed.erc20.update([(token, holder) for (holder,) in read(SQL.holders, (token, _SAMPLE))])
        if standards & ERC1155:
            changed.erc1155.update([(token, *row) for row in read(SQL.holders_1155, (token, _SAMPLE))])
        if standards & ERC721:
            changed.nfts.update([(token, token_id) for (token_id,) in read(SQL.nfts_of, (token, _SAMPLE))])

    def _claims(self, changed: _Changed, block: int) -> Iterator[_Claim]:
        for token, address, rows in self._by_token(changed.erc20):
            yield from self._erc20_claims(token, address, rows, block)
        for token, address, rows in self._by_token(changed.erc1155):
            yield from self._erc1155_claims(token, address, rows, block)
        for token, address, rows in self._by_token(changed.nfts):
            yield from self._nft_claims(token, address, rows, block)

    def _by_token(self, found: set[Row]) -> Iterator[tuple[int, bytes, Iterator[Row]]]:
        """Without the tokens that are untrusted already."""
        for token, rows in groupby(sorted(found), key=lambda row: row[0]):
            trusted = self._store.read(SQL.trusted_token, (token,))
            if trusted:
                yield token, trusted[0][0], rows

    def _erc20_claims(self, token: int, address: bytes, pairs: Iterator[Row], block: int) -> Iterator[_Claim]:
        for _, holder in pairs:
            key = {"holder": holder, "token": token, "address": address, "block": block}
            holder_address, folded = self._store.read(SQL.erc20_balance, key)[0]
            if holder_address != ZERO_ADDRESS:
                yield _Claim(token, balance_of(address, holder_address), unpack_uint(folded or b""))

    def _erc1155_claims(self, token: int, address: bytes, held: Iterator[Row], block: int) -> Iterator[_Claim]:
        for _, holder, token_id in held:
            key = {"holder": holder, "token": token, "token_id": token_id, "address": address, "block": block}
            holder_address, folded = self._store.read(SQL.erc1155_balance, key)[0]
            if holder_address != ZERO_ADDRESS:
                yield _Claim(
                    token, balance_of_id(address, holder_address, unpack_uint(token_id)), unpack_uint(folded or b"")
                )

    def _nft_claims(self, token: int, address: bytes, nfts: Iterator[Row], block: int) -> Iterator[_Claim]:
        for _, token_id in nfts:
            owner = self._store.read(SQL.owner, {"token": token, "token_id": token_id, "block": block})
            if owner:
                yield _Claim(token, owner_of(address, unpack_uint(token_id)), owner[0][0])


def _agrees(folded: int | bytes, answer: bytes | Reverted) -> bool:
    if isinstance(folded, int):
        return uint_of(answer) == folded
    if folded == ZERO_ADDRESS:  # burned: the call may revert
        return isinstance(answer, Reverted) or address_of(answer) == folded
    return address_of(answer) == folded


def _put_result(tx: Transaction, to: int, untrusted: set[int]) -> None:
    tx.run_many(SQL.mark_untrusted, [(to, token) for token in sorted(untrusted)])
    tx.run(SQL.put_audited, {"to": str(to)})
