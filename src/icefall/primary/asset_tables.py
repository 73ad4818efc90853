"""The tables of the X-Chain that can be exported: blocks, transactions and outputs."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from icefall.db.engine import BlockingReader, Row
from icefall.exports.tables import ROWS_WANTED, Kept, Table, by_steps, columns, hex_text
from icefall.primary.exported import SQL, FinalChainTables, addresses_text, asset_chain, by_ids
from icefall.wire.avm.codec import unpack_block, unpack_tx, unpack_utxo
from icefall.wire.ids import id_text
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.xchain.outputs import OUTPUT_TYPES, amount_of


def _block(row: Row) -> tuple[Any, ...]:
    height, block_id, time, inner = row
    txs = unpack_block(inner, GENESIS_SIZE_MAX).txs
    return (height, _time(time), id_text(block_id), len(txs), len(inner))


def _time(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


def _transaction(row: Row) -> tuple[Any, ...]:
    seq, txid, height, time, raw = row
    unsigned = unpack_tx(raw, GENESIS_SIZE_MAX).unsigned
    return (
        height, _time(time), seq, id_text(txid), type(unsigned).__name__, hex_text(unsigned.memo), hex_text(raw),
    )  # fmt: skip


def _utxo(hrp: str, row: Row) -> tuple[Any, ...]:
    utxo_id, destination, raw, height, time, spent_txid, spent_time = row
    utxo = unpack_utxo(raw)
    owners = utxo.output.owners
    return (
        height, time, id_text(utxo_id), id_text(utxo.txid), utxo.output_index, OUTPUT_TYPES[type(utxo.output)],
        str(amount_of(utxo.output)), id_text(utxo.asset_id), addresses_text(hrp, owners.addresses), owners.threshold,
        owners.locktime, id_text(destination), None if spent_txid is None else id_text(spent_txid), spent_time,
    )  # fmt: skip


def _tables(hrp: str) -> tuple[Table, ...]:
    return (
        Table(
            "blocks",
            "A row is a block.",
            columns("number:uint64 time:time block_id:text tx_count:uint32 size:uint32"),
            SQL.x_blocks,
            _block,
        ),
        Table(
            "transactions",
            "A row is a transaction, with its bytes.",
            columns("block_number:uint64 block_time:time number:uint64 tx_id:text type:text memo:hex bytes:hex"),
            SQL.x_transactions,
            _transaction,
        ),
        Table(
            "utxos",
            "A row is an output that was ever made here, as it was after the last block.",
            columns(
                "block_number:uint64 block_time:time utxo_id:text tx_id:text output_index:uint32 type:text "
                "amount:uint256 asset_id:text addresses:text threshold:uint32 locktime:uint64 spendable_on:text "
                "spent_tx_id:text spent_block_time:time"
            ),
            SQL.x_utxos,
            partial(_utxo, hrp),
            Kept.WHOLE,
        ),
    )


class AssetChainTables(FinalChainTables):
    """The tables of the X-Chain in a node's store."""

    name = "x-chain"

    def __init__(self, reader: BlockingReader, hrp: str) -> None:
        super().__init__(reader)
        chain = asset_chain(reader)
        self._number, self._chain_id = chain.number, chain.chain_id
        self.tables: Sequence[Table] = _tables(hrp)

    def _last(self) -> tuple[int, int] | None:
        chain = asset_chain(self._reader)
        return chain.height, chain.tx_count

    def _block(self, number: int) -> tuple[bytes, int] | None:
        rows = self._reader.read(SQL.x_block, {"chain": self._number, "height": number})
        return (rows[0][0], _time(rows[0][1])) if rows else None

    def _height_of_tx(self, seq: int) -> int:
        return int(self._reader.read(SQL.x_tx_height, {"chain": self._number, "seq": seq})[0][0])

    def pieces(self, table: Table, first: int, last: int) -> Iterator[list[Row]]:
        """Blocks are read by height, transactions by number, outputs by ID."""

        def read(low: int, high: int) -> list[Row]:
            return self._reader.read(table.statement, {"chain": self._number, "low": low, "high": high})

        def read_outputs(after: bytes) -> list[Row]:
            where = {"after": after, "chain_id": self._chain_id, "last": last, "limit": ROWS_WANTED}
            return self._reader.read(table.statement, where)

        if table.name == "blocks":
            return by_steps(read, first, last + 1)
        if table.name == "utxos":
            return by_ids(read_outputs)
        return by_steps(read, self.first_tx(first), self.first_tx(last + 1))
