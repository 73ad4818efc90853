"""Token balances and ownership, folded in block order into "from this block on" rows inside the writer's transaction.

Where logs cannot be the whole truth (a balance below zero, an owner who did not own), the token is odd: its state is
asked instead.
"""

from collections.abc import Iterable, Mapping

from icefall.db.engine import Transaction
from icefall.db.statements import load
from icefall.evm.amounts import pack_uint, unpack_uint
from icefall.evm.model import ZERO_ADDRESS, BlockRows
from icefall.evm.storing.writing import Ids

SQL = load("icefall.evm.storing", "writes.sql")

Baselines = Mapping[
    tuple[bytes, bytes, int], int
]  # (token, holder, token ID; -1 for ERC-20) -> balance before the index
NO_ID = -1


class BalanceFolding:
    """Over one run of blocks. `baselines` is for indexes that begin inside a chain."""

    def __init__(self, tx: Transaction, ids: Ids, baselines: Baselines) -> None:
        self._tx = tx
        self._ids = ids
        self._baselines = baselines
        self._odd: dict[int, int] = {}
        self._erc20: dict[tuple[int, int], int] = {}
        self._erc1155: dict[tuple[int, int, bytes], int] = {}
        self._owners: dict[tuple[int, bytes], int | None] = {}
        self._was: dict[tuple[int, bytes], tuple[int | None, bytes]] = {}
        self._lists: dict[str, list[tuple[object, ...]]] = {}

    def _put(self, statement: str, *row: object) -> None:
        self._lists.setdefault(statement, []).append(row)

    def add(self, rows: BlockRows) -> None:
        self._add_erc20(rows)
        self._add_erc1155(rows)
        self._add_nfts(rows)

    def write(self) -> None:
        for (token, token_id), (before, address) in self._was.items():
            now = self._owners[token, token_id]
            if before == now:
                continue  # moved away and back, or to itself
            if before is not None:
                self._put(SQL.drop_held, before, address, token_id)
            if now is not None and now != self._nobody():
                self._put(SQL.put_held, now, address, token_id, token)
        for statement, rows in self._lists.items():
            rows.sort()  # neighbours share pages
            self._tx.run_many(statement, rows)
        self.mark_odd()

    def mark_odd(self) -> None:
        """Needs the token's row to be there."""
        for token, block in self._odd.items():
            self._tx.run(SQL.mark_odd, {"token": token, "block": block})

    # -- ERC-20 ------------------------------------------------------------------------------------------------

    def _add_erc20(self, rows: BlockRows) -> None:
        number, ids = rows.block.number, self._ids
        for change in rows.erc20_deltas:
            holder, token = ids(change.holder), ids(change.token)
            balance = self._erc20.get((holder, token))
            if balance is None:
                balance = self._erc20_before(holder, token, change.token, change.holder, number)
            after = balance + change.delta
            if after < 0:
                self._odd.setdefault(token, number)
                after = 0
            self._erc20[holder, token] = after
            if change.delta:
                self._put(SQL.put_erc20_balance, holder, token, number, pack_uint(after))

    def _erc20_before(self, holder: int, token: int, token_address: bytes, address: bytes, block: int) -> int:
        known = self._tx.rows(SQL.known_erc20, (holder, token, token_address))[0][0]
        if known is not None:
            return unpack_uint(known)
        baseline = self._baselines.get((token_address, address, NO_ID), 0)
        self._put(SQL.put_erc20_holding, holder, token_address, token, block, pack_uint(baseline))
        return baseline

    # -- ERC-1155 ----------------------------------------------------------------------------------------------

    def _add_erc1155(self, rows: BlockRows) -> None:
        number, ids = rows.block.number, self._ids
        for change in rows.erc1155_deltas:
            holder, token, token_id = ids(change.holder), ids(change.token), pack_uint(change.token_id)
            key = holder, token, token_id
            balance = self._erc1155.get(key)
            if balance is None:
                known = self._tx.rows(SQL.known_erc1155, (holder, token, change.token, token_id))[0][0]
                if known is not None:
                    balance = unpack_uint(known)
                else:
                    balance = self._baselines.get((change.token, change.holder, change.token_id), 0)
                    row = (holder, change.token, token_id, token, number, pack_uint(balance))
                    self._put(SQL.put_erc1155_holding, *row)
            after = balance + change.delta
            if after < 0:
                self._odd.setdefault(token, number)
                after = 0
            self._erc1155[key] = after
            if change.delta:
                self._put(SQL.put_erc1155_balance, *key, number, pack_uint(after))

    # -- ERC-721 -----------------------------------------------------------------------------------------------

    def _add_nfts(self, rows: BlockRows) -> None:
        number, ids = rows.block.number, self._ids
        for moved in rows.nft_owners:
            token, token_id, owner = ids(moved.token), pack_uint(moved.token_id), ids(moved.owner)
            told = ids(moved.owner_before)
            key = token, token_id
            if key not in self._owners:
                found = self._tx.rows(SQL.newest_owner, key)
                self._owners[key] = found[0][0] if found else None
            before = self._owners[key]
            self._was.setdefault(key, (before, moved.token))
            if before is not None and before != told:
                self._odd.setdefault(token, number)
            if before != owner:
                self._put(SQL.put_nft_owner, token, token_id, number, owner, told if before is None else None)
            self._owners[key] = owner

    def _nobody(self) -> int:
        """The zero address is interned with every burn; if there was none, no ID is its."""
        try:
            return self._ids(ZERO_ADDRESS)
        except KeyError:
            return 0


def newly_held(run: Iterable[BlockRows]) -> set[tuple[bytes, bytes, int]]:
    """Everything a run names that may need a baseline: (token, holder, token ID)."""
    held = {(change.token, change.holder, NO_ID) for rows in run for change in rows.erc20_deltas}
    return held | {(change.token, change.holder, change.token_id) for rows in run for change in rows.erc1155_deltas}
