"""A made-up chain: blocks with one transaction each, stored as the follower stores them and served in this process."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.api.data_naive import address_text
from tests.api.data_scene import InProcess, chain_id
from tests.awaited import result_of
from tests.evm.indexed import open_store
from tests.metrics.synthetic import address, assembled, native

from icefall.api.dialect import INTERFACE, Dialect
from icefall.db.engine import Transaction
from icefall.evm.deriving.packing import packed
from icefall.evm.model import (
    BlockRows,
    Deployment,
    Erc20Delta,
    Erc20TransferRow,
    Erc721TransferRow,
    Erc1155TransferRow,
    IdDelta,
    NativeRow,
    NftOwner,
)
from icefall.evm.packed import ResolvedBlock
from icefall.evm.reading.balances import StateReader
from icefall.evm.standards import load_statements
from icefall.evm.storing.store import store_path

CHAIN = "berlin-1"  # its name and chain ID; nothing else of the recording is used
ID = chain_id(CHAIN)
TOKEN, ANN, BEN, EVE, FACTORY = (address(number) for number in range(1, 6))
ZERO_ADDRESS = bytes(20)
AUDIT_SQL = load_statements("icefall.evm.auditing", "audit.sql")


def block(number: int, sender: bytes = ANN, to: bytes = BEN, *, branch: int = 0, parent_branch: int = 0) -> BlockRows:
    """`branch` names the history it is part of."""
    tx = native(number, 0, sender, to, 10**9, branch)
    return assembled(number, 1_700_000_000 + number, (tx,), branch=branch, parent_branch=parent_branch)


def erc20(number: int, sender: bytes, to: bytes, value: int, token: bytes = TOKEN) -> BlockRows:
    deltas = [Erc20Delta(token, holder, delta) for holder, delta in ((sender, -value), (to, value)) if any(holder)]
    moved = Erc20TransferRow(0, 0, token, sender, to, value)
    return replace(block(number), erc20_transfers=(moved,), erc20_deltas=tuple(deltas))


def erc721(number: int, sender: bytes, to: bytes, token_id: int = 7) -> BlockRows:
    moved, owner = Erc721TransferRow(0, 0, TOKEN, sender, to, token_id), NftOwner(TOKEN, token_id, to, sender)
    return replace(block(number), erc721_transfers=(moved,), nft_owners=(owner,))


def minted(rows: BlockRows, to: bytes, count: int) -> BlockRows:
    """With so many ERC-20 tokens, ERC-721 tokens and ERC-1155 IDs that one address receives."""
    coins = [address(1000 + index) for index in range(count)]
    nfts, items = address(2000), address(3000)
    log = range(count)
    return replace(
        rows,
        erc20_transfers=tuple(Erc20TransferRow(0, at, coins[at], ZERO_ADDRESS, to, 5) for at in log),
        erc20_deltas=tuple(Erc20Delta(coins[at], to, 5) for at in log),
        erc721_transfers=tuple(Erc721TransferRow(0, count + at, nfts, ZERO_ADDRESS, to, at) for at in log),
        nft_owners=tuple(NftOwner(nfts, at, to, ZERO_ADDRESS) for at in log),
        erc1155_transfers=tuple(Erc1155TransferRow(0, 2 * count + at, 0, items, ZERO_ADDRESS, to, at, 5) for at in log),
        erc1155_deltas=tuple(IdDelta(items, to, at, 5) for at in log),
    )


def deployed(number: int, contract: bytes = TOKEN, *, sender: bytes = ANN) -> BlockRows:
    """By a factory that the transaction called."""
    made = Deployment(contract, 0, 1, FACTORY)
    return replace(block(number, sender, FACTORY), deployments=(made,), code_changed=(contract,))


def store_at(folder: Path) -> Path:
    path = store_path(folder / "data", ID)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def put(folder: Path, *batches: Sequence[BlockRows], audited: bool = True, native: Sequence[NativeRow] = ()) -> None:
    """Commits batches of blocks. `audited`: tokens without a contradiction count as compared with the contracts.
    `native`: balances after their blocks; those of other addresses are unknown."""

    async def work() -> None:
        store = open_store(store_at(folder))
        try:
            for batch in batches:
                await store.commit([ResolvedBlock(packed(rows), _of_block(native, rows), ()) for rows in batch])
                if audited:
                    checkpoint = {"block": batch[-1].block.number, "credit": 0, "dropped_from": None}
                    await store.write(partial(_run, AUDIT_SQL.put_checkpoint, checkpoint))
        finally:
            store.close()

    result_of(work())


def _of_block(native: Sequence[NativeRow], rows: BlockRows) -> tuple[NativeRow, ...]:
    return tuple(one for one in native if one.block == rows.block.number)


def _run(statement: str, params: dict[str, Any], tx: Transaction) -> None:
    tx.run(statement, params)


def put_meta(folder: Path, **meta: str) -> None:
    async def work() -> None:
        store = open_store(store_at(folder))
        try:
            await store.put_meta(meta)
        finally:
            store.close()

    result_of(work())


def roll_back(folder: Path, ancestor: int) -> None:
    async def work() -> None:
        store = open_store(store_at(folder))
        try:
            await store.roll_back(ancestor)
        finally:
            store.close()

    result_of(work())


@contextmanager
def served(folder: Path, dialect: Dialect = INTERFACE, state: StateReader | None = None) -> Iterator[InProcess]:
    """Without `state` everything that must be read from state is zero."""
    (folder / "data").mkdir(exist_ok=True)
    with InProcess(folder, {CHAIN: ""}, dialect, state) as app:
        yield app


def of(address: bytes, rest: str = "") -> str:
    return f"/v1/chains/{ID}/addresses/{address_text(address)}{rest}"
