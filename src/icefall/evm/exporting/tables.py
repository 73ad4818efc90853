"""The tables that can be exported: their columns, and how a stored row becomes values.

Hashes, addresses and data are 0x and lower-case hex. Amounts are decimal text: they exceed every number type of CSV
readers, and DuckDB and others cast them where a question needs it. Times are Unix seconds here; a format writes them.
"""

import enum
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from icefall.db.engine import Row
from icefall.evm.encoding import BITS, block_of, index_of, unpack_data, unpack_uint
from icefall.evm.reading.chain import full_tx_of
from icefall.evm.standards import BY_ID, BY_NUMBER, STANDARDS, TokenStandard, load_statements

SQL = load_statements("icefall.evm.exporting", "tables.sql")
_TOPIC_SIZE = 32
_TOPICS = 4


class Kept(enum.Enum):
    """The order in which the store holds a table: it decides how the table is divided into files."""

    BY_BLOCK = "in the order of the chain: a file for each range of blocks"
    BY_ADDRESS = "in the order of addresses: one file, written anew by each export"


class ExportColumn(NamedTuple):
    """A column of a file. `type`: uint32, uint64, uint256 (decimal text), time, hex, text or bool."""

    name: str
    type: str


class Table(NamedTuple):
    """A table that can be exported. `values` makes the columns of a row that its statement has read."""

    name: str
    summary: str
    columns: tuple[ExportColumn, ...]
    statement: str
    values: Callable[[Row], tuple[Any, ...]]
    kept: Kept = Kept.BY_BLOCK
    needs: str = ""  # the meta value with the block from which on rows are stored; empty: from the first one


def _columns(text: str) -> tuple[ExportColumn, ...]:
    return tuple(ExportColumn(*one.split(":")) for one in text.split())


def _hex(value: bytes | None) -> str | None:
    return None if value is None else f"0x{value.hex()}"


def _uint(packed: bytes) -> str:
    return str(unpack_uint(packed))


def _block(row: Row) -> tuple[Any, ...]:
    number, block_hash, parent, time, tx_count, *amounts = row
    return (number, time, _hex(block_hash), _hex(parent), tx_count, *map(_uint, amounts))


def _transaction(row: Row) -> tuple[Any, ...]:
    full = full_tx_of(row)
    tx = full.tx
    where = tx.location
    fees = (None if fee is None else str(fee) for fee in (tx.max_fee, tx.max_priority_fee))
    return (
        where.block_number, where.time, index_of(tx.tx_at), _hex(where.tx_hash), _hex(tx.sender), _hex(tx.to),
        tx.call_type.name.lower(), bool(tx.status), tx.type_id, tx.nonce, str(tx.value), tx.gas_limit, tx.gas_used,
        str(tx.gas_price), *fees, str(tx.gas_used * tx.gas_price), _hex(tx.selector), _hex(full.input),
    )  # fmt: skip


def _log(row: Row) -> tuple[Any, ...]:
    log_at, _, time, tx_hash, address, topic0, rest, data = row
    topics = [topic0] if topic0 else []
    topics += [rest[at : at + _TOPIC_SIZE] for at in range(0, len(rest), _TOPIC_SIZE)]
    topics += [None] * (_TOPICS - len(topics))
    shown = (_hex(topic) for topic in topics)
    return (block_of(log_at), time, index_of(log_at), _hex(tx_hash), _hex(address), *shown, _hex(unpack_data(data)))


def _transfer(standard: TokenStandard, row: Row) -> tuple[Any, ...]:
    _, log_at, position, _, _, time, tx_hash, token, sender, recipient, token_id, value, *_ = row
    parties = (_hex(token), _hex(sender), _hex(recipient))
    own = ((position,) if standard.has_batches else ()) + parties
    own += (_uint(token_id),) if standard.has_ids else ()
    own += (None if value is None else _uint(value),)  # of an NFT the last ID of a range
    return (log_at >> BITS, time, index_of(log_at), _hex(tx_hash), *own)


def _transfer_columns(standard: TokenStandard) -> tuple[ExportColumn, ...]:
    position = " batch_index:uint32" if standard.has_batches else ""
    token_id = " token_id:uint256" if standard.has_ids else ""
    value = " value:uint256" if standard.has_amounts else " last_token_id:uint256"
    return _columns(
        "block_number:uint64 block_time:time log_index:uint32 tx_hash:hex"
        f"{position} token:hex from_address:hex to_address:hex{token_id}{value}"
    )


def _internal(row: Row) -> tuple[Any, ...]:
    at, frame, _, time, tx_hash, call_type, sender, recipient, value, gas_limit, gas_used, is_reverted = row
    amounts = (_uint(value), unpack_uint(gas_limit), unpack_uint(gas_used))
    parties = (_hex(sender), _hex(recipient))
    return (block_of(at), time, index_of(at), _hex(tx_hash), frame, call_type, *parties, *amounts, bool(is_reverted))


def _contract(row: Row) -> tuple[Any, ...]:
    address, tx_at, time, tx_hash, sender, creator = row
    return (block_of(tx_at), time, _hex(address), _hex(tx_hash), _hex(sender), _hex(creator))


def _native_change(row: Row) -> tuple[Any, ...]:
    number, time, address, balance = row
    return (number, time, _hex(address), _uint(balance))


def _token_change(row: Row) -> tuple[Any, ...]:
    number, time, token, holder, balance = row
    return (number, time, _hex(token), _hex(holder), _uint(balance))


def _token_id_change(row: Row) -> tuple[Any, ...]:
    number, time, token, token_id, holder, balance = row
    return (number, time, _hex(token), _uint(token_id), _hex(holder), _uint(balance))


def _owner_change(row: Row) -> tuple[Any, ...]:
    number, time, token, token_id, owner = row
    return (number, time, _hex(token), _uint(token_id), _hex(owner))


def _token(row: Row) -> tuple[Any, ...]:
    address, first_block, standards, name, symbol, decimals, is_trusted = row
    names = " ".join(one.name for number, one in BY_NUMBER.items() if standards & number)
    return (_hex(address), first_block, names, name, symbol, decimals, bool(is_trusted))


TABLES = (
    Table(
        "blocks",
        "A row is a block.",
        _columns(
            "number:uint64 time:time hash:hex parent_hash:hex tx_count:uint32 base_fee:uint256 gas_used:uint256 "
            "gas_limit:uint256 gas_cost:uint256 fees_spent:uint256"
        ),
        SQL.blocks,
        _block,
    ),
    Table(
        "transactions",
        "A row is a transaction, with its call data.",
        _columns(
            "block_number:uint64 block_time:time tx_index:uint32 tx_hash:hex from_address:hex to_address:hex "
            "call_type:text succeeded:bool type:uint32 nonce:uint64 value:uint256 gas_limit:uint64 gas_used:uint64 "
            "gas_price:uint256 max_fee:uint256 max_priority_fee:uint256 fee:uint256 selector:hex input:hex"
        ),
        SQL.transactions,
        _transaction,
    ),
    Table(
        "logs",
        "A row is a log as the chain has it; only of chains with store_logs.",
        _columns(
            "block_number:uint64 block_time:time log_index:uint32 tx_hash:hex address:hex topic0:hex topic1:hex "
            "topic2:hex topic3:hex data:hex"
        ),
        SQL.logs,
        _log,
        needs="logs_from",
    ),
    *(
        Table(
            f"{standard.table}_transfers",
            f"A row is a transfer of an {standard.name} token.",
            _transfer_columns(standard),
            SQL.named(f"{standard.table}_transfers"),
            partial(_transfer, standard),
        )
        for standard in STANDARDS
    ),
    Table(
        "internal_transactions",
        "A row is a call within a transaction that moved value or created a contract.",
        _columns(
            "block_number:uint64 block_time:time tx_index:uint32 tx_hash:hex frame:uint32 call_type:text "
            "from_address:hex to_address:hex value:uint256 gas_limit:uint64 gas_used:uint64 is_reverted:bool"
        ),
        SQL.internal_transactions,
        _internal,
    ),
    Table(
        "contracts",
        "A row is the deployment of a contract.",
        _columns("block_number:uint64 block_time:time address:hex tx_hash:hex sender:hex creator:hex"),
        SQL.contracts,
        _contract,
    ),
    Table(
        "native_balance_changes",
        "A row says: from this block on, the address had this native balance.",
        _columns("block_number:uint64 block_time:time address:hex balance:uint256"),
        SQL.native_balance_changes,
        _native_change,
        Kept.BY_ADDRESS,
    ),
    Table(
        "token_balance_changes",
        "A row says: from this block on, the holder had this balance of the fungible token.",
        _columns("block_number:uint64 block_time:time token:hex holder:hex balance:uint256"),
        SQL.token_balance_changes,
        _token_change,
        Kept.BY_ADDRESS,
    ),
    *(
        Table(
            f"{standard.table}_balance_changes",
            f"A row says: from this block on, the holder had this balance of the ID of an {standard.name} token.",
            _columns("block_number:uint64 block_time:time token:hex token_id:uint256 holder:hex balance:uint256"),
            SQL.named(f"{standard.table}_balance_changes"),
            _token_id_change,
            Kept.BY_ADDRESS,
        )
        for standard in BY_ID
    ),
    Table(
        "nft_owner_changes",
        "A row says: from this block on, the NFT belonged to this owner; to the zero address: it is burned.",
        _columns("block_number:uint64 block_time:time token:hex token_id:uint256 owner:hex"),
        SQL.nft_owner_changes,
        _owner_change,
        Kept.BY_ADDRESS,
    ),
    Table(
        "tokens",
        "A row is a token contract and what is known of it.",
        _columns("address:hex first_block:uint64 standards:text name:text symbol:text decimals:uint32 is_trusted:bool"),
        SQL.tokens,
        _token,
        Kept.BY_ADDRESS,
    ),
)
BY_NAME = {table.name: table for table in TABLES}
