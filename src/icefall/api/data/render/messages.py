"""Messages between chains as the API returns them."""

from typing import Any, NamedTuple

from msgspec import UNSET

from icefall.api.data.render.text import Money
from icefall.api.data.render.tokens import logo_or_absent
from icefall.api.data.schema.messages import (
    DestinationTransaction,
    IcmMessageResult,
    MessageReceipt,
    MessageStatus,
    RewardDetails,
    SourceTransaction,
    TeleporterMessageResult,
)
from icefall.api.http.structs import address_text, hash_text
from icefall.evm.enriching.reader import TokenDetails
from icefall.evm.model import ZERO_ADDRESS
from icefall.evm.reading.links import BlockchainIds
from icefall.evm.reading.messages import JoinedMessage, Placed
from icefall.wire.evm.messages import Fee
from icefall.wire.ids import id_text

_NO_FEE, _NO_TOKEN = Fee(ZERO_ADDRESS, 0), TokenDetails()
TokensByChain = dict[tuple[str, bytes], TokenDetails]  # by EVM chain ID and address


class MessageContext(NamedTuple):
    """The details that messages are rendered with."""

    links: BlockchainIds
    tokens: TokensByChain
    money: Money


def icm_message(context: MessageContext, message: JoinedMessage) -> IcmMessageResult:
    contract = address_text(message.first.event.messenger)
    return IcmMessageResult(**_fields(context, message), icm_contract_address=contract)


def teleporter_message(context: MessageContext, message: JoinedMessage) -> TeleporterMessageResult:
    contract = address_text(message.first.event.messenger)
    newer = contract if message.sent is None else UNSET
    return TeleporterMessageResult(
        **_fields(context, message), teleporter_contract_address=contract, icm_contract_address=newer
    )


def _fields(context: MessageContext, message: JoinedMessage) -> dict[str, Any]:
    """The fields of both forms."""
    links, sent, received, body = context.links, message.sent, message.received, message.first.event.body
    source, destination = sides_of(links, message)
    return {
        "message_id": message.message_id.hex(),
        "source_blockchain_id": id_text(source) if source else "",
        "destination_blockchain_id": id_text(destination),
        "source_evm_chain_id": sent.chain if sent is not None else links.evm_chain_id(source),
        "destination_evm_chain_id": received.chain if received is not None else links.evm_chain_id(destination),
        "message_nonce": str(body.nonce),
        "from_": address_text(body.sender),
        "to": address_text(body.recipient),
        "data": hash_text(body.data) if body.data else UNSET,
        "message_executed": message.is_executed,
        "receipts": [
            MessageReceipt(received_message_nonce=str(nonce), relayer_reward_address=address_text(rewarded))
            for nonce, rewarded in body.receipts
        ],
        "receipt_delivered": message.is_receipt_delivered,
        "reward_details": _reward(context, message),
        "source_transaction": UNSET if sent is None else SourceTransaction(**_transaction(sent)),
        "destination_transaction": UNSET if received is None else _destination(received),
        "status": _status(message),
    }


def sides_of(links: BlockchainIds, message: JoinedMessage) -> tuple[bytes, bytes]:
    """The blockchain IDs of the chain that sent a message, empty if it is unknown, and of the one that it is for."""
    sent, received = message.sent, message.received
    source = links.blockchain_id(sent.chain) if sent is not None else b""
    destination = links.blockchain_id(received.chain) if received is not None else b""
    source = source or (received.event.peer if received is not None else b"")
    return source, destination or message.first.event.body.destination


def _status(message: JoinedMessage) -> MessageStatus:
    if message.sent is None:
        return "delivered_source_not_indexed"
    return "pending" if message.received is None else "delivered"


def _transaction(placed: Placed) -> dict[str, Any]:
    event = placed.event
    return {"tx_hash": hash_text(event.tx_hash), "timestamp": event.time, "gas_spent": str(event.fee_paid)}


def _destination(placed: Placed) -> DestinationTransaction:
    return DestinationTransaction(
        **_transaction(placed),
        reward_redeemer=address_text(placed.event.redeemer),
        deliverer_address=address_text(placed.event.party),
    )


def _reward(context: MessageContext, message: JoinedMessage) -> RewardDetails:
    """The fee, with what is known of its token. Without a fee the token that is named does not matter."""
    fee = message.fee if message.fee is not None and message.fee.amount else _NO_FEE
    details = context.tokens.get((message.first.chain, fee.token), _NO_TOKEN)
    return RewardDetails(
        address=address_text(fee.token),
        name=details.name,
        symbol=details.symbol,
        decimals=details.decimals or 0,
        logo_uri=logo_or_absent(details),
        names_read=UNSET if details.is_read or not fee.amount else False,
        price=context.money.price(details.price),
        value=str(fee.amount),
    )
