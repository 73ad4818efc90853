"""The tables of the P-Chain that can be exported: blocks, transactions, outputs, staking periods and rewards.

Outputs and staking periods are exported as they were after the last block of the export, whatever has become of them
since. (Whether a period had begun by then is not stored: one that has not ended has the state that it has when read.)
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from icefall.db.engine import BlockingReader, Row
from icefall.exports.tables import ROWS_WANTED, Kept, Table, by_steps, columns, hex_text
from icefall.pchain.model import StakerState, UtxoKind, plain_output
from icefall.pchain.store import unpacked_owner, unsigned
from icefall.pchain.sums import burned_by
from icefall.pchain.transactions import stake_of
from icefall.primary.exported import SQL, FinalChainTables, addresses_text, asset_chain, by_ids
from icefall.wire.ids import NODE_ID_PREFIX, id_text, short_id_text
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.pvm.codec import unpack_tx, unpack_utxo
from icefall.wire.pvm.types import PROPOSALS, BlockType, PlatformBaseTx

_KINDS = {
    UtxoKind.PLAIN: "transfer",
    UtxoKind.STAKE: "stake",
    UtxoKind.VALIDATOR_REWARD: "validator_reward",
    UtxoKind.DELEGATOR_REWARD: "delegator_reward",
    UtxoKind.VALIDATOR_FEE: "validator_fee",
}


def _id(value: bytes | None) -> str | None:
    return None if value is None else id_text(value)


def _node(node_id: bytes) -> str:
    return NODE_ID_PREFIX + short_id_text(node_id)


def _block(row: Row) -> tuple[Any, ...]:
    height, block_id, time, block_type, tx_count, size = row
    name = "".join(word.capitalize() for word in BlockType(block_type).name.split("_")) + "Block"
    return (height, time, id_text(block_id), name, tx_count, size)


def _transaction(avax: bytes, row: Row) -> tuple[Any, ...]:
    seq, txid, height, time, is_committed, raw = row
    unsigned_tx = unpack_tx(raw, GENESIS_SIZE_MAX).unsigned
    staked = sum(plain_output(one.output)[0] for one in stake_of(unsigned_tx))
    return (
        height, time, seq, id_text(txid), type(unsigned_tx).__name__.removeprefix("Platform"), bool(is_committed),
        str(burned_by(unsigned_tx, avax)), str(staked),
        hex_text(unsigned_tx.memo) if isinstance(unsigned_tx, PlatformBaseTx) else None, hex_text(raw),
    )  # fmt: skip


def _reward(hrp: str, row: Row) -> tuple[Any, ...]:
    height, time, reward_txid, txid, subnet_id, node_id, is_delegator, kind, raw, weight, start, end = row
    utxo = unpack_utxo(raw)
    amount, _, owners = plain_output(utxo.output)
    return (
        height, time, id_text(reward_txid), id_text(txid), id_text(subnet_id), _node(node_id), bool(is_delegator),
        _KINDS[UtxoKind(kind)], str(amount), id_text(utxo.asset_id), addresses_text(hrp, owners.addresses),
        str(unsigned(weight)), start, unsigned(end),
    )  # fmt: skip


def _utxo(hrp: str, row: Row) -> tuple[Any, ...]:
    utxo_id, raw, height, time, kind, is_staked, stake_start, stake_end, spent_txid, spent_height, spent_time = row
    utxo = unpack_utxo(raw)
    amount, stakeable_locktime, owners = plain_output(utxo.output)
    state = "spent" if spent_txid is not None else "staked" if is_staked else "unspent"
    return (
        height or 0, time, id_text(utxo_id), id_text(utxo.txid), utxo.output_index, _KINDS[UtxoKind(kind)], state,
        str(amount), id_text(utxo.asset_id), addresses_text(hrp, owners.addresses), owners.threshold, owners.locktime,
        stakeable_locktime, stake_start, stake_end, _id(spent_txid), spent_height, spent_time,
    )  # fmt: skip


def _staker(hrp: str, row: Row) -> tuple[Any, ...]:
    txid, height, time, subnet_id, node_id, is_delegator, state, start, end, weight, reward, shares, *rest = row
    own, fees, validator_txid, ended_txid = rest
    owner, fee_owner = unpacked_owner(own), None if is_delegator else unpacked_owner(fees)
    return (
        height, time, id_text(txid), id_text(subnet_id), _node(node_id), bool(is_delegator),
        StakerState(state).name.lower(), start, unsigned(end), str(unsigned(weight)), str(unsigned(reward)),
        None if is_delegator else shares, None if owner is None else addresses_text(hrp, owner.addresses),
        None if fee_owner is None else addresses_text(hrp, fee_owner.addresses), _id(validator_txid), _id(ended_txid),
    )  # fmt: skip


def _tables(hrp: str, avax: bytes) -> tuple[Table, ...]:
    return (
        Table(
            "blocks",
            "A row is a block.",
            columns("number:uint64 time:time block_id:text type:text tx_count:uint32 size:uint32"),
            SQL.p_blocks,
            _block,
        ),
        Table(
            "transactions",
            "A row is a transaction, with its bytes.",
            columns(
                "block_number:uint64 block_time:time number:uint64 tx_id:text type:text is_committed:bool "
                "burned:uint256 staked:uint256 memo:hex bytes:hex"
            ),
            SQL.p_transactions,
            partial(_transaction, avax),
        ),
        Table(
            "rewards",
            "A row is a reward that was paid for a staking period.",
            columns(
                "block_number:uint64 block_time:time tx_id:text staking_tx_id:text subnet_id:text node_id:text "
                "is_delegator:bool type:text amount:uint256 asset_id:text addresses:text weight:uint256 "
                "stake_start:time stake_end:time"
            ),
            SQL.p_rewards,
            partial(_reward, hrp),
        ),
        Table(
            "utxos",
            "A row is an output that was ever made, as it was after the last block.",
            columns(
                "block_number:uint64 block_time:time utxo_id:text tx_id:text output_index:uint32 type:text state:text "
                "amount:uint256 asset_id:text addresses:text threshold:uint32 locktime:uint64 "
                "stakeable_locktime:uint64 stake_start:time stake_end:time spent_tx_id:text spent_block_number:uint64 "
                "spent_block_time:time"
            ),
            SQL.p_utxos,
            partial(_utxo, hrp),
            Kept.WHOLE,
        ),
        Table(
            "stakers",
            "A row is a staking period of a validator or delegator.",
            columns(
                "block_number:uint64 block_time:time tx_id:text subnet_id:text node_id:text is_delegator:bool "
                "state:text stake_start:time stake_end:time weight:uint256 potential_reward:uint256 "
                "delegation_fee_millionths:uint32 reward_addresses:text fee_addresses:text validator_tx_id:text "
                "ended_tx_id:text"
            ),
            SQL.p_stakers,
            partial(_staker, hrp),
            Kept.WHOLE,
        ),
    )


class PlatformTables(FinalChainTables):
    """The tables of the P-Chain in a node's store."""

    name = "p-chain"

    def __init__(self, reader: BlockingReader, hrp: str) -> None:
        super().__init__(reader)
        self.tables: Sequence[Table] = _tables(hrp, asset_chain(reader).fee_asset_id)

    def _last(self) -> tuple[int, int] | None:
        """The last block is left out if it proposes something: its transactions are stored with the decision."""
        rows = self._reader.read(SQL.p_last)
        if not rows:
            return None
        height, tx_count, block_type = rows[0]
        return height - (block_type in PROPOSALS), tx_count

    def _block(self, number: int) -> tuple[bytes, int] | None:
        rows = self._reader.read(SQL.p_block, {"height": number})
        return (rows[0][0], int(rows[0][1])) if rows else None

    def _height_of_tx(self, seq: int) -> int:
        return int(self._reader.read(SQL.p_tx_height, {"seq": seq})[0][0])

    def pieces(self, table: Table, first: int, last: int) -> Iterator[list[Row]]:
        """Blocks are read by height, outputs by ID, and the rest by the numbers of transactions."""
        end = self.first_tx(last + 1)

        def read(low: int, high: int) -> list[Row]:
            return self._reader.read(table.statement, {"low": low, "high": high})

        def read_outputs(after: bytes) -> list[Row]:
            return self._reader.read(table.statement, {"after": after, "end": end, "limit": ROWS_WANTED})

        def read_stakers(low: int, high: int) -> list[Row]:
            return self._reader.read(table.statement, {"low": low, "high": high, "end": end, "last": last})

        if table.name == "blocks":
            return by_steps(read, first, last + 1)
        if table.name == "utxos":
            return by_ids(read_outputs)
        if table.name == "stakers":
            return by_steps(read_stakers, 0, end)
        return by_steps(read, self.first_tx(first), end)
