"""The protocol of the lists of a chain, and their rows decoded to structs, by the one module that knows the columns.

Rows of the views have all columns. Rows of the tables (stored.sql) have IDs where views have addresses, and no block:
`stored_txs` and `stored_transfers` complete them. Decoding is most of what a list costs, so it makes no detour.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from icefall.db.engine import Row
from icefall.evm.encoding import (
    BITS,
    CALL_TYPES,
    IMPLIED_SELECTORS,
    PER_BLOCK,
    selector_of,
    unpack_uint,
    unpack_uints,
)
from icefall.evm.enriching.reader import AnswerTokens, TokenDetails, details_of
from icefall.evm.model import ERC20
from icefall.evm.reading.model import LISTED_AMOUNTS, PageRange, TransferRead, TxLocation, TxRead


class AddressLists(Protocol):
    """Lists of one address, newest first, and the details of tokens that their rows name."""

    async def txs_of(self, address: bytes, span: PageRange, limit: int) -> list[TxRead]:
        """Read transactions whose sender, recipient or created contract is the address."""
        ...

    async def touched_txs(
        self, address: bytes, span: PageRange, limit: int, *, ascending: bool = False
    ) -> list[TxRead]:
        """Read also those that the address is part of only by a transfer or an internal transaction."""
        ...

    async def transfers_of(self, standard: int, address: bytes, span: PageRange, limit: int) -> list[TransferRead]:
        """Read transfers of one standard that an address sent or received. A cursor inside a batch continues it."""
        ...

    async def erc20_with_tokens(
        self, address: bytes, span: PageRange, limit: int, currency: str
    ) -> tuple[list[TransferRead], AnswerTokens | None]:
        """Read ERC-20 transfers of an address, with the details of their tokens and parties where one statement finds
        both."""
        ...

    async def transfers_of_page(
        self, address: bytes, txs: Sequence[TxRead], last: TransferRead | None, limit: int
    ) -> tuple[list[TransferRead], bool]:
        """Read transfers of the address in the transactions from the first to the last of `txs`, in log order behind
        `last`. Transfers between them that belong to none of `txs` may be among them. And tell whether the address may
        be a party of internal transactions between them: False saves a statement that finds none."""
        ...

    async def token_details(self, tokens: list[int], currency: str) -> dict[int, TokenDetails]:
        """Read names and current prices by the ID of the token; IDs that are not tokens are left out."""
        ...


TX_COLUMNS = (
    "tx_at", "block_hash", "time", "hash", "sender_address", "recipient_address", "amounts", "kind", "selector",
    "sender", "recipient",
)  # fmt: skip
TRANSFER_COLUMNS = (
    "standard", "log_at", "position", "tx_index", "block_hash", "time", "tx_hash", "token_address", "sender_address",
    "recipient_address", "token_id", "value", "token", "sender", "recipient",
)  # fmt: skip
_BLOCK_BITS = ~(PER_BLOCK - 1)
_from_bytes = int.from_bytes
_WHOLE, _REFS = len(TRANSFER_COLUMNS), slice(len(TRANSFER_COLUMNS) - 3, len(TRANSFER_COLUMNS))
# Columns of stored.sql: where a row is in the chain, and the IDs of addresses.
STORED_TX_AT, STORED_TX_IDS = 0, slice(5, 7)
STORED_LOG_AT, STORED_TRANSFER_IDS = 1, slice(6, 9)
ERC20_LOG_AT, ERC20_IDS = 0, slice(3, 6)  # of the statement erc20_of alone

BlockName = tuple[bytes, int]  # hash and time
_NOWHERE = TxLocation(0, b"", 0, b"")


def tx_of(row: Row) -> TxRead:
    tx_at, block_hash, time, txid, sender, to, amounts, kind, selector, sender_ref, to_ref = row
    value, nonce, gas_limit, gas_used, gas_price = unpack_uints(amounts, LISTED_AMOUNTS)
    return TxRead(
        TxLocation(tx_at >> BITS, block_hash, time, txid), tx_at, kind >> 2 & 1, kind >> 3, sender, to, value, nonce,
        gas_limit, gas_used, gas_price, amounts, CALL_TYPES[kind & 3], selector_of(kind, selector), sender_ref, to_ref,
    )  # fmt: skip


def transfers_of(rows: Iterable[Row]) -> list[TransferRead]:
    return [
        TransferRead(
            standard, TxLocation(at >> BITS, block_hash, time, txid), at, position, at & _BLOCK_BITS | index, token,
            sender, to, 0 if token_id is None else unpack_uint(token_id), 0 if value is None else unpack_uint(value),
            token_ref, sender_ref, to_ref,
        )
        for standard, at, position, index, block_hash, time, txid, token, sender, to, token_id, value, token_ref,
        sender_ref, to_ref in rows
    ]  # fmt: skip


# -- rows of tables: KeyError for an address or a block that is not in the mappings ------------------------------------


def stored_txs(rows: Iterable[Row], blocks: Mapping[int, BlockName], addresses: Mapping[int, bytes]) -> list[TxRead]:
    """Decode rows of the table tx. Their last column is the rollback count."""
    found = []
    for at, txid, amounts, kind, selector, sender, to, _ in rows:
        number = at >> BITS
        block_hash, time = blocks[number]
        value, nonce, gas_limit, gas_used, gas_price = unpack_uints(amounts, LISTED_AMOUNTS)
        found.append(
            TxRead(
                TxLocation(number, block_hash, time, txid), at, kind >> 2 & 1, kind >> 3, addresses[sender],
                addresses[to], value, nonce, gas_limit, gas_used, gas_price, amounts, CALL_TYPES[kind & 3],
                selector or IMPLIED_SELECTORS[kind & 3], sender, to,
            )
        )  # fmt: skip
    return found


def stored_erc20(
    rows: Iterable[Row], blocks: Mapping[int, BlockName], addresses: Mapping[int, bytes]
) -> list[TransferRead]:
    """Decode rows of the statement erc20_of, which has no columns that are the same for all transfers."""
    found = []
    for at, index, value, token, sender, to, txid, _ in rows:
        number = at >> BITS
        found.append(
            TransferRead(
                ERC20, TxLocation(number, *blocks[number], txid), at, 0, at & _BLOCK_BITS | index, addresses[token],
                addresses[sender], addresses[to], 0, _from_bytes(value[1:], "big"), token, sender, to,
            )
        )  # fmt: skip
    return found


def stored_transfers(
    rows: Iterable[Row], hashes: Iterable[bytes], blocks: Mapping[int, BlockName], addresses: Mapping[int, bytes]
) -> list[TransferRead]:
    """Decode rows of the three tables of transfers with the hashes of their transactions. The last columns of a row are
    such a hash, where the statement has it, and the rollback count."""
    found = []
    for (standard, at, position, index, token_id, value, token, sender, to, _, _), txid in zip(
        rows, hashes, strict=True
    ):
        number = at >> BITS
        found.append(
            TransferRead(
                standard, TxLocation(number, *blocks[number], txid), at, position, at & _BLOCK_BITS | index,
                addresses[token], addresses[sender], addresses[to],
                0 if token_id is None else _from_bytes(token_id[1:], "big"),
                0 if value is None else _from_bytes(value[1:], "big"), token, sender, to,
            )
        )  # fmt: skip
    return found


def transfers_in_txs(
    rows: Iterable[Row], locations: Mapping[int, TxLocation], addresses: Mapping[int, bytes]
) -> list[TransferRead]:
    """Decode the same columns with the locations of transactions by position. Rows of others, which are not used, have
    none."""
    found = []
    for standard, at, position, index, token_id, value, token, sender, to, _, _ in rows:
        tx_at = at & _BLOCK_BITS | index
        found.append(
            TransferRead(
                standard, locations.get(tx_at, _NOWHERE), at, position, tx_at, addresses[token], addresses[sender],
                addresses[to], 0 if token_id is None else _from_bytes(token_id[1:], "big"),
                0 if value is None else _from_bytes(value[1:], "big"), token, sender, to,
            )
        )  # fmt: skip
    return found


def positions_of_txs(rows: Iterable[Row]) -> list[int]:
    """The positions of the transactions that rows of transfers belong to."""
    return [row[1] & _BLOCK_BITS | row[3] for row in rows]


# -- transfers with the details of their tokens --------------------------------------------------------------------


def transfers_with_tokens(rows: Sequence[Row]) -> tuple[list[TransferRead], AnswerTokens]:
    """Decode rows of `erc20_of_with_tokens`: details of transferred tokens have a price, those of parties none."""
    tokens = AnswerTokens()
    transferred: dict[int, TokenDetails | None] = {}
    for row in rows:
        token, sender, to = row[_REFS]
        known = row[_WHOLE:]
        if token not in transferred:
            transferred[token] = _details(*known[:6])
        tokens.details[sender], tokens.details[to] = _party(*known[6:11]), _party(*known[11:])
    tokens.details.update(transferred)
    return transfers_of(row[:_WHOLE] for row in rows), tokens


def _details(
    ref: int | None,
    name: str | None,
    symbol: str | None,
    decimals: int | None,
    price: str | None,
    listed: str | None,
) -> TokenDetails | None:
    return None if ref is None else details_of(name, symbol, decimals, price, listed)


def _party(
    ref: int | None, name: str | None, symbol: str | None, decimals: int | None, listed: str | None
) -> TokenDetails | None:
    return _details(ref, name, symbol, decimals, None, listed)
