"""Do logs tell the truth? What was folded from them is compared with what the contracts themselves say.

Everything that changed since the last audit, and holders of tokens whose storage changed while no log said why, at the
newest stored block. A token that disagrees once is odd for good: its balances are read from state.
"""

import asyncio
from collections.abc import Iterator
from itertools import groupby, islice
from typing import NamedTuple

from icefall.db.engine import Row, Transaction
from icefall.db.statements import load
from icefall.evm.amounts import unpack_uint
from icefall.evm.auditing.token_calls import address_of, balance_of, balance_of_id, owner_of, uint_of
from icefall.evm.following.settling import StateSource
from icefall.evm.model import ZERO_ADDRESS
from icefall.evm.positions import above
from icefall.evm.storing.journal import unpack_touched
from icefall.evm.storing.store import ChainStore, Tip
from icefall.evm.storing.writing import ERC20, ERC721, ERC1155
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import ContractCall

SQL = load("icefall.evm.auditing", "audit.sql")
_SAMPLE = 32  # holders asked of a token that changed in silence
_AT_ONCE = 500
_BLOCKS_AT_ONCE = 256  # an audit may have waited for millions


class _Claim(NamedTuple):
    """What we would answer, and the call whose answer it must be."""

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
        self.odd = 0  # tokens found out since the start

    def audited_to(self) -> int:
        return int(self._store.fact("audited_to") or -1)

    async def run(self, tip: Tip) -> None:
        """Up to the newest block. NoState where nobody remembers it; then nothing is taken as audited."""
        after = self.audited_to()
        if after >= tip.number:
            return
        claims = self._claims(await self._changed(after, tip.number), tip.number)
        odd: set[int] = set()
        while some := list(islice(claims, _AT_ONCE)):
            some = [claim for claim in some if claim.token not in odd]
            answers = await self._state.answers([claim.call for claim in some], tip.block_hash)
            odd |= {
                claim.token for claim, answer in zip(some, answers, strict=True) if not _agrees(claim.folded, answer)
            }
        self.odd += len(odd)
        await self._store.write(lambda tx: _settle(tx, tip.number, odd))

    async def _changed(self, after: int, to: int) -> _Changed:
        """Some blocks at a time: no query may take long, however much there is to catch up with."""
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
            self._add_some(changed, token)
        return changed

    def _add_some(self, changed: _Changed, token: int) -> None:
        """Of a token that changed in silence."""
        read = self._store.read
        standards = next((row[1] for row in read(SQL.even_token, (token,))), 0)
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
        """Without the tokens that are known to be odd."""
        for token, rows in groupby(sorted(found), key=lambda row: row[0]):
            even = self._store.read(SQL.even_token, (token,))
            if even:
                yield token, even[0][0], rows

    def _erc20_claims(self, token: int, address: bytes, pairs: Iterator[Row], block: int) -> Iterator[_Claim]:
        for _, holder in pairs:
            key = {"holder": holder, "token": token, "address": address, "block": block}
            who, folded = self._store.read(SQL.erc20_balance, key)[0]
            if who != ZERO_ADDRESS:
                yield _Claim(token, balance_of(address, who), unpack_uint(folded or b""))

    def _erc1155_claims(self, token: int, address: bytes, held: Iterator[Row], block: int) -> Iterator[_Claim]:
        for _, holder, token_id in held:
            key = {"holder": holder, "token": token, "token_id": token_id, "address": address, "block": block}
            who, folded = self._store.read(SQL.erc1155_balance, key)[0]
            if who != ZERO_ADDRESS:
                yield _Claim(token, balance_of_id(address, who, unpack_uint(token_id)), unpack_uint(folded or b""))

    def _nft_claims(self, token: int, address: bytes, nfts: Iterator[Row], block: int) -> Iterator[_Claim]:
        for _, token_id in nfts:
            owner = self._store.read(SQL.owner, {"token": token, "token_id": token_id, "block": block})
            if owner:
                yield _Claim(token, owner_of(address, unpack_uint(token_id)), owner[0][0])


def _agrees(folded: int | bytes, answer: bytes | Reverted) -> bool:
    if isinstance(folded, int):
        return uint_of(answer) == folded
    if folded == ZERO_ADDRESS:  # burned: a contract may refuse to answer
        return isinstance(answer, Reverted) or address_of(answer) == folded
    return address_of(answer) == folded


def _settle(tx: Transaction, to: int, odd: set[int]) -> None:
    tx.run_many(SQL.mark_odd, [(to, token) for token in sorted(odd)])
    tx.run(SQL.put_audited, {"to": str(to)})
