"""Transfers and internal transactions, as items of a list or nested in their transaction."""

from typing import Any, cast

from icefall.api.presenting.context import AnswerContext
from icefall.api.presenting.hex import hash_text
from icefall.api.presenting.tokens import erc20_token, erc721_token, erc1155_token, party
from icefall.api.schema.transfers import (
    Erc20Transfer,
    Erc20TransferDetails,
    Erc721Transfer,
    Erc721TransferDetails,
    Erc1155Transfer,
    Erc1155TransferDetails,
    InternalTransaction,
    InternalTransactionDetails,
    TokenTransfer,
    TokenTransferDetails,
)
from icefall.evm.model import ERC20, ERC721, ERC1155
from icefall.evm.reading.model import InternalRead, TransferRead, TxLocation

_LISTED: dict[int, Any] = {ERC20: Erc20Transfer, ERC721: Erc721Transfer, ERC1155: Erc1155Transfer}
_NESTED: dict[int, Any] = {ERC20: Erc20TransferDetails, ERC721: Erc721TransferDetails, ERC1155: Erc1155TransferDetails}


def transfer(context: AnswerContext, row: TransferRead) -> TokenTransfer:
    return cast(TokenTransfer, _LISTED[row.standard](*_location(row.location), *_transfer_fields(context, row)))


def nested_transfer(context: AnswerContext, row: TransferRead) -> TokenTransferDetails:
    return cast(TokenTransferDetails, _NESTED[row.standard](*_transfer_fields(context, row)))


def internal(context: AnswerContext, row: InternalRead) -> InternalTransaction:
    return InternalTransaction(*_location(row.location), *_internal_fields(context, row))


def nested_internal(context: AnswerContext, row: InternalRead) -> InternalTransactionDetails:
    return InternalTransactionDetails(*_internal_fields(context, row))


# -- the fields of both forms, in the order of the schema: these are the busiest lists --------------------------------


def _location(location: TxLocation) -> tuple[str, int, str, str]:
    return (
        str(location.block_number),
        location.time,
        hash_text(location.block_hash),
        hash_text(location.tx_hash),
    )


def _transfer_fields(context: AnswerContext, row: TransferRead) -> tuple[Any, ...]:
    sender, to = party(context, row.sender, row.sender_ref), party(context, row.to, row.to_ref)
    if row.standard == ERC20:
        return sender, to, row.log_index, str(row.value), erc20_token(context, row.token, row.token_ref)
    if row.standard == ERC721:
        return sender, to, row.log_index, erc721_token(context, row.token, row.token_ref, row.token_id)
    token = erc1155_token(context, row.token, row.token_ref, row.token_id)
    return sender, to, row.log_index, str(row.value), token


def _internal_fields(context: AnswerContext, row: InternalRead) -> tuple[Any, ...]:
    return (
        party(context, row.sender, row.sender_ref),
        party(context, row.to, row.to_ref),
        row.kind,
        str(row.value),
        row.is_reverted,
        str(row.gas_used),
        str(row.gas_limit),
    )
