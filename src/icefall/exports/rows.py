"""The columns of the files of an EVM export, and how a row of an address's history becomes text.

Every row is about one of the addresses or tokens that were asked for: `direction` is in, out or self as that address
sees it, and empty where a token is not itself a party.
Amounts are exact, in the smallest unit and as decimal numbers. Text that anyone can write, as the names of tokens, is
guarded: a spreadsheet would run some of it as formulas.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from icefall.evm.enriching.reader import TokenDetails
from icefall.evm.model import CallType
from icefall.evm.reading.contracts import MethodNames
from icefall.evm.reading.directory import ChainInfo
from icefall.evm.reading.model import InternalRead, TransferRead, TxLocation, TxRead
from icefall.evm.standards import BY_NUMBER, STANDARDS, TokenStandard
from icefall.exports.formats import guarded
from icefall.exports.histories import INTERNALS, TRANSACTIONS, HistoryRow
from icefall.wire.evm.hex import checksummed

_BEGIN = ("address", "direction", "chainId", "blockNumber", "blockTimestamp", "datetimeUtc", "txHash")
_TOKEN = ("from", "to", "tokenAddress", "tokenName", "tokenSymbol")


def _transfer_columns(standard: TokenStandard) -> tuple[str, ...]:
    position = ("batchIndex",) if standard.has_batches else ()
    if not standard.has_ids:
        return (*_BEGIN, "logIndex", *position, *_TOKEN, "decimals", "value", "valueDecimal")
    return (*_BEGIN, "logIndex", *position, *_TOKEN, "tokenId", "value" if standard.has_amounts else "lastTokenId")


COLUMNS: dict[str, tuple[str, ...]] = {
    TRANSACTIONS: (
        *_BEGIN, "blockIndex", "from", "to", "contractAddress", "value", "valueDecimal", "symbol", "gasUsed",
        "gasPrice", "fee", "feeDecimal", "status", "methodId", "methodName", "nonce", "type",
    ),
    INTERNALS: (
        *_BEGIN, "traceIndex", "from", "to", "internalTxType", "value", "valueDecimal", "symbol", "isReverted",
    ),
    **{f"{standard.table}_transfers": _transfer_columns(standard) for standard in STANDARDS},
}  # fmt: skip


def decimal_text(value: int, decimals: int | None) -> str:
    """An amount with its decimal point, exactly; empty where its decimals are not known."""
    if decimals is None:
        return ""
    digits = str(value).rjust(decimals + 1, "0")
    whole, part = digits[: len(digits) - decimals], digits[len(digits) - decimals :].rstrip("0")
    return f"{whole}.{part}" if part else whole


def encoded(rows: Iterable[Sequence[object]]) -> bytes:
    """Rows as RFC 4180 has them, but with one line feed."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


class RowText:
    """Makes the text of rows of one chain."""

    def __init__(self, chain: ChainInfo, method_names: MethodNames) -> None:
        self._chain = chain
        self._methods = method_names

    def values(self, address: bytes, row: HistoryRow, tokens: Mapping[int, TokenDetails]) -> list[object]:
        """The columns of a row of any kind."""
        begin = self._begin(address, row.sender, row.to, row.location)
        if isinstance(row, TxRead):
            return [*begin, *self._transaction(row)]
        if isinstance(row, InternalRead):
            return [*begin, *self._internal(row)]
        return [*begin, *_transfer(row, tokens.get(row.token_ref) or TokenDetails())]

    def _begin(self, address: bytes, sender: bytes, to: bytes, where: TxLocation) -> list[object]:
        is_out, is_in = sender == address, to == address
        direction = "self" if is_out and is_in else "out" if is_out else "in" if is_in else ""
        time = datetime.fromtimestamp(where.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        txid = f"0x{where.tx_hash.hex()}"
        return [checksummed(address), direction, self._chain.id, where.block_number, where.time, time, txid]

    def _amount(self, value: int) -> list[object]:
        token = self._chain.token
        return [value, decimal_text(value, token.decimals), guarded(token.symbol)]

    def _transaction(self, tx: TxRead) -> list[object]:
        to = checksummed(tx.to)
        parties = [checksummed(tx.sender), *(["", to] if tx.call_type is CallType.CONTRACT_CREATION else [to, ""])]
        fee = tx.gas_used * tx.gas_price
        costs = [tx.gas_used, tx.gas_price, fee, decimal_text(fee, self._chain.token.decimals)]
        selector = f"0x{tx.selector.hex()}" if tx.selector else ""
        method = guarded(self._methods.of(tx.to, tx.selector) or "")
        return [
            tx.tx_index, *parties, *self._amount(tx.value), *costs, tx.status, selector, method, tx.nonce, tx.type_id,
        ]  # fmt: skip

    def _internal(self, call: InternalRead) -> list[object]:
        to = checksummed(call.to) if call.to else ""
        reverted = "true" if call.is_reverted else "false"
        return [call.frame, checksummed(call.sender), to, call.kind, *self._amount(call.value), reverted]


def _transfer(row: TransferRead, token: TokenDetails) -> list[object]:
    standard = BY_NUMBER[row.standard]
    parties = [checksummed(row.sender), checksummed(row.to), checksummed(row.token)]
    own: list[object] = [row.log_index, *([row.position] if standard.has_batches else []), *parties]
    own += [guarded(token.name), guarded(token.symbol)]
    if not standard.has_ids:
        known = "" if token.decimals is None else token.decimals
        return [*own, known, row.value, decimal_text(row.value, token.decimals)]
    return [*own, row.token_id, row.value if standard.has_amounts else row.value or ""]
