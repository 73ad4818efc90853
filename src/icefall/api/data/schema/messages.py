"""Parameters and results of messages between chains (ICM, Teleporter)."""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.data.schema.tokens import Price
from icefall.api.http.rest_params import EvmAddress, MaybeAddress, MaybeChain, MessageId, Network, PageSize, PageToken
from icefall.api.http.structs import Page, RestParams, RestResult

MessageStatus = Literal["pending", "delivered", "delivered_source_not_indexed"]


class MessageParams(RestParams, frozen=True):
    message_id: MessageId


class MessagesParams(RestParams, frozen=True):
    """The chains are given by blockchain ID, or by EVM chain ID or alias if they are indexed here."""

    source_blockchain_id: MaybeChain = None
    destination_blockchain_id: MaybeChain = None
    blockchain_id: MaybeChain = None
    from_: MaybeAddress = None
    to: MaybeAddress = None
    network: Network = None
    page_token: PageToken = ""
    page_size: PageSize = 10


class AddressMessagesParams(RestParams, frozen=True):
    address: EvmAddress
    network: Network = None
    page_token: PageToken = ""
    page_size: PageSize = 10


class MessageReceipt(RestResult, frozen=True, kw_only=True):
    """A receipt that a message carries: of a message that went the other way and was received."""

    received_message_nonce: str
    relayer_reward_address: str


class RewardDetails(RestResult, frozen=True, kw_only=True):
    """The fee of a message: an amount of an ERC-20 token of the source. Without one, and where the source is not
    indexed, everything is zero or empty."""

    address: str
    name: str
    symbol: str
    decimals: int
    logo_uri: str | UnsetType = UNSET
    names_read: bool | UnsetType = UNSET
    erc_type: Literal["ERC-20"] = "ERC-20"
    price: Price | UnsetType = UNSET
    value: str


class SourceTransaction(RestResult, frozen=True, kw_only=True):
    tx_hash: str
    timestamp: int
    gas_spent: str


class DestinationTransaction(SourceTransaction, frozen=True, kw_only=True):
    reward_redeemer: str
    deliverer_address: str


class MessageFields(RestResult, frozen=True, kw_only=True):
    """A message. `sourceTransaction` is that which sent it first. `data` is absent where it is empty."""

    message_id: str
    source_blockchain_id: str
    destination_blockchain_id: str
    source_evm_chain_id: str
    destination_evm_chain_id: str
    message_nonce: str
    from_: str
    to: str
    data: str | UnsetType = UNSET
    message_executed: bool
    receipts: list[MessageReceipt]
    receipt_delivered: bool
    reward_details: RewardDetails
    source_transaction: SourceTransaction | UnsetType = UNSET
    destination_transaction: DestinationTransaction | UnsetType = UNSET
    status: MessageStatus


class IcmMessageResult(MessageFields, frozen=True, kw_only=True):
    icm_contract_address: str


class IcmMessagePage(Page, frozen=True, kw_only=True):
    messages: list[IcmMessageResult]


class TeleporterMessageResult(MessageFields, frozen=True, kw_only=True):
    """The older form. Clients expect the newer name too where the source is not indexed."""

    teleporter_contract_address: str
    icm_contract_address: str | UnsetType = UNSET


class TeleporterMessagePage(Page, frozen=True, kw_only=True):
    messages: list[TeleporterMessageResult]
