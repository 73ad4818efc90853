"""Results of the atomic side of the C-Chain, and operations that are the same on every chain."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from icefall.api.http.rest_params import PageSize, PageToken, SortOrder, Switch
from icefall.api.http.structs import InvalidValue, Page, RestParams, RestResult
from icefall.api.networks.params import (
    POSTED_ADDRESSES_MAX,
    Addresses,
    ManyUtxos,
    MaybeId,
    MinAmount,
    NetworkName,
    NodeId,
    PrimaryChain,
    Time,
    UtxoSortBy,
    read_addresses,
)
from icefall.api.networks.schema.assets import NetworkAsset, PrimaryChainInfo
from icefall.api.networks.schema.x_chain import UtxoCredential, UtxoResult
from icefall.errors import BadRequest

_ADDRESS_TEXT_MAX = 128 * 1024  # of 1,024 addresses


class NodeBlocksParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    node_id: NodeId
    start_timestamp: Time = None
    end_timestamp: Time = None
    page_token: PageToken = ""
    page_size: PageSize = 10


class ChainUtxosParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    addresses: Addresses
    asset_id: MaybeId = None
    min_utxo_amount: MinAmount = 0
    include_spent: Switch = False
    sort_by: UtxoSortBy = "timestamp"
    sort_order: SortOrder = "desc"
    page_token: PageToken = ""
    page_size: PageSize = 10


class PostedUtxosParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    asset_id: MaybeId = None
    min_utxo_amount: MinAmount = 0
    include_spent: Switch = False
    sort_by: UtxoSortBy = "timestamp"
    sort_order: SortOrder = "desc"
    page_token: PageToken = ""
    page_size: ManyUtxos = 10


class AddressesBody(msgspec.Struct, frozen=True):
    """Addresses in the body of a request, where a path would be too long for them."""

    addresses: Annotated[str, Meta(min_length=1, max_length=_ADDRESS_TEXT_MAX)]

    def read(self) -> tuple[tuple[str, bytes], ...]:
        """The addresses; BadRequest if one of them is none, or there are too many."""
        try:
            return read_addresses(self.addresses, POSTED_ADDRESSES_MAX)
        except InvalidValue as invalid:
            raise BadRequest(f"addresses must be {invalid}") from None


class NetworkChainParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain


class ActivityParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    addresses: Addresses


class LastActivity(RestResult, frozen=True):
    """The newest transaction that took from the addresses or gave to them."""

    timestamp: int
    block_number: str
    tx_hash: str
    utxo_id: str
    is_consumed: bool
    chain_name: Literal["p-chain", "x-chain", "c-chain"]
    network: str


class ChainIdsParams(RestParams, frozen=True):
    network: NetworkName
    addresses: Addresses


class ChainsOfAddress(RestResult, frozen=True):
    address: str
    blockchain_ids: list[str]


class ChainsOfAddressesResult(RestResult, frozen=True):
    addresses: list[ChainsOfAddress]


class EvmInput(RestResult, frozen=True):
    """An amount that an export takes from an account."""

    from_address: str
    asset: NetworkAsset
    credentials: list[UtxoCredential]


class EvmOutput(RestResult, frozen=True):
    """An amount that an import gives to an account."""

    to_address: str
    asset: NetworkAsset


class CTransaction(RestResult, frozen=True, kw_only=True):
    """An atomic transaction of C. An export takes from accounts and makes outputs, an import does the reverse."""

    tx_hash: str
    block_height: int
    block_hash: str
    timestamp: int
    memo: str
    amount_unlocked: list[NetworkAsset]
    amount_created: list[NetworkAsset]
    source_chain: str
    destination_chain: str
    tx_type: Literal["ExportTx", "ImportTx"]
    evm_inputs: list[EvmInput] | UnsetType = UNSET
    emitted_utxos: list[UtxoResult] | UnsetType = UNSET
    evm_outputs: list[EvmOutput] | UnsetType = UNSET
    consumed_utxos: list[UtxoResult] | UnsetType = UNSET


class CTransactionPage(Page, frozen=True):
    transactions: list[CTransaction]
    chain_info: PrimaryChainInfo
