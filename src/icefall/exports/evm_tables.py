"""The tables of an EVM chain that can be exported: their columns, and how a stored row becomes values."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from icefall.db.engine import BlockingReader, Row
from icefall.evm.encoding import BITS, block_of, index_of, position_of, unpack_data, unpack_uint
from icefall.evm.reading.chain import full_tx_of
from icefall.evm.standards import BY_ID, BY_NUMBER, STANDARDS, TokenStandard, load_statements
from icefall.exports.tables import ExportColumn, Kept, Table, by_steps, columns, hex_text
from icefall.wire.evm.messages import EXECUTED, FAILED, FEE, RECEIPT, RECEIVED, SENT, fee_of, message_of
from icefall.wire.ids import id_text

SQL = load_statements("icefall.exports", "evm_tables.sql")
_TOPIC_SIZE = 32
_TOPICS = 4
_EVENTS = {
    SENT: "sent",
    RECEIVED: "received",
    EXECUTED: "executed",
    FAILED: "failed",
    RECEIPT: "receipt",
    FEE: "fee_added",
}


def _uint(packed: bytes) -> str:
    return str(unpack_uint(packed))


def _block(row: Row) -> tuple[Any, ...]:
    number, block_hash, parent, time, tx_count, *amounts, recipient, size, burned = row
    details = (hex_text(recipient), size, None if burned is None else _uint(burned))
    return (number, time, hex_text(block_hash), hex_text(parent), tx_count, *map(_uint, amounts), *details)


def _transaction(row: Row) -> tuple[Any, ...]:
    full = full_tx_of(row)
    tx = full.tx
    where = tx.location
    fees = (None if fee is None else str(fee) for fee in tx.max_fees)
    return (
        where.block_number, where.time, index_of(tx.tx_at), hex_text(where.tx_hash), hex_text(tx.sender),
        hex_text(tx.to),
        tx.call_type.name.lower(), bool(tx.status), tx.type_id, tx.nonce, str(tx.value), tx.gas_limit, tx.gas_used,
        str(tx.gas_price), *fees, str(tx.gas_used * tx.gas_price), hex_text(tx.selector), hex_text(full.input),
    )  # fmt: skip


def _log(row: Row) -> tuple[Any, ...]:
    log_at, _, time, tx_hash, address, topic0, rest, data = row
    topics = [topic0] if topic0 else []
    topics += [rest[at : at + _TOPIC_SIZE] for at in range(0, len(rest), _TOPIC_SIZE)]
    topics += [None] * (_TOPICS - len(topics))
    shown = (hex_text(topic) for topic in topics)
    return (
        block_of(log_at),
        time,
        index_of(log_at),
        hex_text(tx_hash),
        hex_text(address),
        *shown,
        hex_text(unpack_data(data)),
    )


def _transfer(standard: TokenStandard, row: Row) -> tuple[Any, ...]:
    _, log_at, position, _, _, time, tx_hash, token, sender, recipient, token_id, value, *_ = row
    parties = (hex_text(token), hex_text(sender), hex_text(recipient))
    own = ((position,) if standard.has_batches else ()) + parties
    own += (_uint(token_id),) if standard.has_ids else ()
    own += (None if value is None else _uint(value),)  # of an NFT the last ID of a range
    return (log_at >> BITS, time, index_of(log_at), hex_text(tx_hash), *own)


def _transfer_columns(standard: TokenStandard) -> tuple[ExportColumn, ...]:
    position = " batch_index:uint32" if standard.has_batches else ""
    token_id = " token_id:uint256" if standard.has_ids else ""
    value = " value:uint256" if standard.has_amounts else " last_token_id:uint256"
    return columns(
        "block_number:uint64 block_time:time log_index:uint32 tx_hash:hex"
        f"{position} token:hex from_address:hex to_address:hex{token_id}{value}"
    )


def _internal(row: Row) -> tuple[Any, ...]:
    at, frame, _, time, tx_hash, call_type, sender, recipient, value, gas_limit, gas_used, is_reverted = row
    amounts = (_uint(value), unpack_uint(gas_limit), unpack_uint(gas_used))
    parties = (hex_text(sender), hex_text(recipient))
    return (
        block_of(at),
        time,
        index_of(at),
        hex_text(tx_hash),
        frame,
        call_type,
        *parties,
        *amounts,
        bool(is_reverted),
    )


def _message_event(row: Row) -> tuple[Any, ...]:
    log_at, time, tx_hash, kind, message_id, messenger, peer, sender, recipient, party, packed = row
    data = unpack_data(packed)
    body = message_of(kind, data) if kind in (SENT, RECEIVED) else None
    fee = fee_of(kind, data) if kind in (SENT, RECEIPT, FEE) else None
    said = (None, None) if body is None else (str(body.nonce), hex_text(body.data))
    return (
        block_of(log_at), time, index_of(log_at), hex_text(tx_hash), _EVENTS[kind], hex_text(message_id),
        hex_text(messenger), id_text(peer) if peer else None,
        hex_text(sender or None), hex_text(recipient or None), *said, hex_text(party or None),
        None if fee is None else hex_text(fee.token), None if fee is None else str(fee.amount),
    )  # fmt: skip


def _contract(row: Row) -> tuple[Any, ...]:
    address, tx_at, time, tx_hash, sender, creator = row
    return (block_of(tx_at), time, hex_text(address), hex_text(tx_hash), hex_text(sender), hex_text(creator))


def _native_change(row: Row) -> tuple[Any, ...]:
    number, time, address, balance = row
    return (number, time, hex_text(address), _uint(balance))


def _token_change(row: Row) -> tuple[Any, ...]:
    number, time, token, holder, balance = row
    return (number, time, hex_text(token), hex_text(holder), _uint(balance))


def _token_id_change(row: Row) -> tuple[Any, ...]:
    number, time, token, token_id, holder, balance = row
    return (number, time, hex_text(token), _uint(token_id), hex_text(holder), _uint(balance))


def _owner_change(row: Row) -> tuple[Any, ...]:
    number, time, token, token_id, owner = row
    return (number, time, hex_text(token), _uint(token_id), hex_text(owner))


def _token(row: Row) -> tuple[Any, ...]:
    address, first_block, standards, name, symbol, decimals, is_trusted = row
    names = " ".join(one.name for number, one in BY_NUMBER.items() if standards & number)
    return (hex_text(address), first_block, names, name, symbol, decimals, bool(is_trusted))


TABLES = (
    Table(
        "blocks",
        "A row is a block. The last three columns are not known of a block that an older release indexed.",
        columns(
            "number:uint64 time:time hash:hex parent_hash:hex tx_count:uint32 base_fee:uint256 gas_used:uint256 "
            "gas_limit:uint256 gas_cost:uint256 fees_spent:uint256 fee_recipient:hex size:uint64 fees_burned:uint256"
        ),
        SQL.blocks,
        _block,
    ),
    Table(
        "transactions",
        "A row is a transaction, with its call data.",
        columns(
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
        columns(
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
        columns(
            "block_number:uint64 block_time:time tx_index:uint32 tx_hash:hex frame:uint32 call_type:text "
            "from_address:hex to_address:hex value:uint256 gas_limit:uint64 gas_used:uint64 is_reverted:bool"
        ),
        SQL.internal_transactions,
        _internal,
    ),
    Table(
        "message_events",
        "A row is an event of a message between chains: on this chain it was sent, received, executed, failed, or "
        "acknowledged by a receipt, or its fee was raised.",
        columns(
            "block_number:uint64 block_time:time log_index:uint32 tx_hash:hex event:text message_id:hex messenger:hex "
            "other_blockchain_id:text from_address:hex to_address:hex nonce:uint256 data:hex relayer:hex "
            "fee_token:hex fee:uint256"
        ),
        SQL.message_events,
        _message_event,
        missing_below="messages_missing_below",
    ),
    Table(
        "contracts",
        "A row is the deployment of a contract.",
        columns("block_number:uint64 block_time:time address:hex tx_hash:hex sender:hex creator:hex"),
        SQL.contracts,
        _contract,
    ),
    Table(
        "native_balance_changes",
        "A row says: from this block on, the address had this native balance.",
        columns("block_number:uint64 block_time:time address:hex balance:uint256"),
        SQL.native_balance_changes,
        _native_change,
        Kept.WHOLE,
    ),
    Table(
        "token_balance_changes",
        "A row says: from this block on, the holder had this balance of the fungible token.",
        columns("block_number:uint64 block_time:time token:hex holder:hex balance:uint256"),
        SQL.token_balance_changes,
        _token_change,
        Kept.WHOLE,
    ),
    *(
        Table(
            f"{standard.table}_balance_changes",
            f"A row says: from this block on, the holder had this balance of the ID of an {standard.name} token.",
            columns("block_number:uint64 block_time:time token:hex token_id:uint256 holder:hex balance:uint256"),
            SQL.named(f"{standard.table}_balance_changes"),
            _token_id_change,
            Kept.WHOLE,
        )
        for standard in BY_ID
    ),
    Table(
        "nft_owner_changes",
        "A row says: from this block on, the NFT belonged to this owner; to the zero address: it is burned.",
        columns("block_number:uint64 block_time:time token:hex token_id:uint256 owner:hex"),
        SQL.nft_owner_changes,
        _owner_change,
        Kept.WHOLE,
    ),
    Table(
        "tokens",
        "A row is a token contract and what is known of it.",
        columns("address:hex first_block:uint64 standards:text name:text symbol:text decimals:uint32 is_trusted:bool"),
        SQL.tokens,
        _token,
        Kept.WHOLE,
    ),
)


class EvmTables:
    """The tables of an EVM chain in its store. `name` is its chain ID."""

    def __init__(self, reader: BlockingReader, chain_id: str) -> None:
        self._reader = reader
        self.name = chain_id

    @property
    def tables(self) -> Sequence[Table]:
        return TABLES

    def span(self) -> tuple[int, int] | None:
        lowest, tip = self._reader.read(SQL.lowest), self._reader.read(SQL.tip)
        return (lowest[0][0], tip[0][0]) if lowest and tip else None

    def stored_from(self, table: Table) -> int | None:
        if table.missing_below:
            return int(self._meta(table.missing_below) or 0)
        if not table.needs:
            return 0
        stored = self._meta(table.needs)
        return int(stored) if stored else None

    def block_hash(self, number: int) -> str:
        rows = self._reader.read(SQL.block, {"number": number})
        return f"0x{rows[0][0].hex()}" if rows else ""

    def block_time(self, number: int) -> int:
        return int(self._reader.read(SQL.block, {"number": number})[0][1])

    def first_block_since(self, after: int, last: int, time: int) -> int | None:
        rows = self._reader.read(SQL.first_block_since, {"after": after, "last": last, "time": time})
        return int(rows[0][0]) if rows else None

    def history(self) -> str:
        return self._meta("rollbacks")

    def _meta(self, name: str) -> str:
        rows = self._reader.read(SQL.meta, {"name": name})
        return str(rows[0][0]) if rows else ""

    def pieces(self, table: Table, first: int, last: int) -> Iterator[list[Row]]:
        """Tables in the order of the chain are read by blocks, the others by the numbers of addresses."""
        if table.kept is Kept.BY_BLOCK:

            def read(low: int, high: int) -> list[Row]:
                return self._reader.read(table.statement, {"low": position_of(low, 0), "high": position_of(high, 0)})

            return by_steps(read, first, last + 1)

        def read_addresses(low: int, high: int) -> list[Row]:
            return self._reader.read(table.statement, {"low": low, "high": high, "first": first, "last": last})

        return by_steps(read_addresses, 0, self._reader.read(SQL.addresses_end)[0][0])
