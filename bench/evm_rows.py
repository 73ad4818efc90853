"""Rows of a synthetic chain of ERC-20 transfers, written straight into a store for benchmarks with many rows."""

import random
from collections.abc import Iterator

from icefall.db.engine import Transaction
from icefall.evm.auditing.due import SQL as AUDIT_SQL
from icefall.evm.deriving.packing import packed
from icefall.evm.indexing.batches import batch_txs
from icefall.evm.model import (
    BlockRow,
    BlockRows,
    CallType,
    Erc20Delta,
    Erc20TransferRow,
    NativeRow,
    NativeTx,
    Participant,
)
from icefall.evm.packed import ResolvedBlock
from icefall.evm.storing.store import ChainStore
from icefall.wire.evm.rlp import keccak256

TOKENS = 50
_SELECTOR = bytes.fromhex("a9059cbb")


def address(number: int) -> bytes:
    return keccak256(number.to_bytes(4, "big"))[-20:]


BUSY, QUIET = address(0), address(1)


class Rows:
    """`busy_every`: every so many transfers one is from or to BUSY; QUIET has ten in all."""

    def __init__(self, addresses: int, per_block: int, busy_every: int, seed: int = 1) -> None:
        self._draw = random.Random(seed)
        self._people = [address(number) for number in range(2, addresses)]
        self._tokens = [address(1_000_000 + number) for number in range(TOKENS)]
        self._per_block = per_block
        self._busy_every = busy_every
        self._count = 0
        self._nonces: dict[bytes, int] = {}
        self._native: dict[bytes, int] = {}

    def blocks(self, count: int) -> Iterator[ResolvedBlock]:
        parent = bytes(32)
        for number in range(count):
            own = keccak256(number.to_bytes(8, "big"))
            yield self._block(number, own, parent)
            parent = own

    def _pair(self) -> tuple[bytes, bytes]:
        draw, addresses = self._draw, self._people
        self._count += 1
        sender, to = addresses[int(draw.random() * len(addresses))], addresses[int(draw.random() * len(addresses))]
        if self._count % self._busy_every == 0:
            return (BUSY, to) if self._count % 2 else (sender, BUSY)
        if self._count in (500 * index + 7 for index in range(10)):
            return (QUIET, to) if self._count % 2 else (sender, QUIET)
        return sender, to

    def _block(self, number: int, own: bytes, parent: bytes) -> ResolvedBlock:
        draw = self._draw
        txs, moves, parties, native = [], [], [], {}
        deltas: dict[tuple[bytes, bytes], int] = {}
        for index in range(self._per_block):
            sender, to = self._pair()
            token, value = self._tokens[int(draw.random() ** 2 * TOKENS)], draw.randrange(1, 10**15)
            data = _SELECTOR + to.rjust(32, b"\0") + value.to_bytes(32, "big")
            nonce = self._nonces[sender] = self._nonces.get(sender, -1) + 1
            txid = keccak256(own + index.to_bytes(2, "big"))
            txs.append(
                NativeTx(
                    index, txid, 1, 2, sender, token, 0, nonce, 80_000, 51_000, 25 * 10**9, 50 * 10**9, 10**9,
                    CallType.CONTRACT_CALL, _SELECTOR, data,
                )
            )  # fmt: skip
            moves.append(Erc20TransferRow(index, index, token, sender, to, value))
            parties += [Participant(one, index) for one in dict.fromkeys((sender, token, to))]
            for holder, change in ((sender, -value), (to, value)):
                deltas[token, holder] = deltas.get((token, holder), 0) + change
            first = 10**23 if sender == BUSY else 10**21  # enough for the fees of its share of ten million
            had = self._native.get(sender, first)
            self._native[sender] = had - 51_000 * 25 * 10**9
            native[sender] = NativeRow(sender, number, self._native[sender], first if had == first else None)
        when, gas = 1_700_000_000 + 2 * number, 51_000 * len(txs)
        block = BlockRow(number, own, parent, when, len(txs), 10**9, gas, 15 * 10**6, 0, gas * 25 * 10**9)
        rows = BlockRows(
            block=block, txs=tuple(txs), erc20_transfers=tuple(moves), erc721_transfers=(), erc1155_transfers=(),
            internals=(), deployments=(), participants=tuple(parties), native_before=(), native_after=(),
            native_deltas=(), unknown_native=(),
            # Balances only grow here: one below zero would make the token untrusted.
            erc20_deltas=tuple(Erc20Delta(token, holder, abs(change)) for (token, holder), change in deltas.items()),
            erc1155_deltas=(), nft_owners=(), storage_changed_unlogged=(), code_changed=(), code_changes=(),
            metadata_changes=(), messages=(),
            skipped_logs={},
        )  # fmt: skip
        return ResolvedBlock(packed(rows), tuple(native.values()), ())


async def mark_audited(store: ChainStore) -> None:
    """Marks all blocks as audited: there is no contract to call."""

    def change(tx: Transaction) -> None:
        tx.run(AUDIT_SQL.put_checkpoint, {"block": 1 << 40, "credit": 0, "dropped_from": None})

    await store.write(change)


def runs(rows: Rows, blocks: int) -> Iterator[list[ResolvedBlock]]:
    """Batches as large as those of an index."""
    run: list[ResolvedBlock] = []
    stored = txs = 0
    for block in rows.blocks(blocks):
        run.append(block)
        txs += block.rows.block.tx_count
        if txs >= batch_txs(stored):
            yield run
            run, stored, txs = [], stored + txs, 0
    if run:
        yield run
