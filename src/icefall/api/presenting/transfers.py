"""Transfers and internal transactions, standing alone in a list or nested in their transaction."""

from typing import cast

from icefall.api.presenting.knowledge import AnswerContext
from icefall.api.presenting.texts import hash_text
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
    InternalTxType,
    TokenTransfer,
)
from icefall.evm.reading.model import Erc20Read, Erc721Read, Erc1155Read, InternalRead

# -- standing alone ----------------------------------------------------------------------------------------------------


def erc20(known: AnswerContext, row: Erc20Read) -> Erc20Transfer:
    place = row.place
    return Erc20Transfer(  # in the order of its fields: this is the busiest list
        str(place.block_number),
        place.time,
        hash_text(place.block_hash),
        hash_text(place.tx_hash),
        party(known, row.sender, row.sender_ref),
        party(known, row.to, row.to_ref),
        row.log_index,
        str(row.value),
        erc20_token(known, row.token, row.token_ref),
    )


def erc721(known: AnswerContext, row: Erc721Read) -> Erc721Transfer:
    return Erc721Transfer(
        block_number=str(row.place.block_number),
        block_timestamp=row.place.time,
        block_hash=hash_text(row.place.block_hash),
        tx_hash=hash_text(row.place.tx_hash),
        from_=party(known, row.sender, row.sender_ref),
        to=party(known, row.to, row.to_ref),
        log_index=row.log_index,
        erc721_token=erc721_token(known, row.token, row.token_ref, row.token_id),
    )


def erc1155(known: AnswerContext, row: Erc1155Read) -> Erc1155Transfer:
    return Erc1155Transfer(
        block_number=str(row.place.block_number),
        block_timestamp=row.place.time,
        block_hash=hash_text(row.place.block_hash),
        tx_hash=hash_text(row.place.tx_hash),
        from_=party(known, row.sender, row.sender_ref),
        to=party(known, row.to, row.to_ref),
        log_index=row.log_index,
        value=str(row.value),
        erc1155_token=erc1155_token(known, row.token, row.token_ref, row.token_id),
    )


def internal(known: AnswerContext, row: InternalRead) -> InternalTransaction:
    return InternalTransaction(
        block_number=str(row.place.block_number),
        block_timestamp=row.place.time,
        block_hash=hash_text(row.place.block_hash),
        tx_hash=hash_text(row.place.tx_hash),
        from_=party(known, row.sender, row.sender_ref),
        to=party(known, row.to, row.to_ref),
        internal_tx_type=cast(InternalTxType, row.kind),
        value=str(row.value),
        is_reverted=row.is_reverted,
        gas_used=str(row.gas_used),
        gas_limit=str(row.gas_limit),
    )


def token_transfer(known: AnswerContext, row: Erc20Read | Erc721Read | Erc1155Read) -> TokenTransfer:
    match row:
        case Erc20Read():
            return erc20(known, row)
        case Erc721Read():
            return erc721(known, row)
        case Erc1155Read():
            return erc1155(known, row)


# -- nested ------------------------------------------------------------------------------------------------------------


def nested_erc20(known: AnswerContext, row: Erc20Read) -> Erc20TransferDetails:
    return Erc20TransferDetails(
        from_=party(known, row.sender, row.sender_ref),
        to=party(known, row.to, row.to_ref),
        log_index=row.log_index,
        value=str(row.value),
        erc20_token=erc20_token(known, row.token, row.token_ref),
    )


def nested_erc721(known: AnswerContext, row: Erc721Read) -> Erc721TransferDetails:
    return Erc721TransferDetails(
        from_=party(known, row.sender, row.sender_ref),
        to=party(known, row.to, row.to_ref),
        log_index=row.log_index,
        erc721_token=erc721_token(known, row.token, row.token_ref, row.token_id),
    )


def nested_erc1155(known: AnswerContext, row: Erc1155Read) -> Erc1155TransferDetails:
    return Erc1155TransferDetails(
        from_=party(known, row.sender, row.sender_ref),
        to=party(known, row.to, row.to_ref),
        log_index=row.log_index,
        value=str(row.value),
        erc1155_token=erc1155_token(known, row.token, row.token_ref, row.token_id),
    )


def nested_internal(known: AnswerContext, row: InternalRead) -> InternalTransactionDetails:
    return InternalTransactionDetails(
        from_=party(known, row.sender, row.sender_ref),
        to=party(known, row.to, row.to_ref),
        internal_tx_type=cast(InternalTxType, row.kind),
        value=str(row.value),
        is_reverted=row.is_reverted,
        gas_used=str(row.gas_used),
        gas_limit=str(row.gas_limit),
    )
