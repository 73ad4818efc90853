"""Results of the atomic side of the C-Chain, and operations that are the same on every chain."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from icefall.api.http.rest_params import PageSize, PageToken, SortOrder, Switch
from icefall.api.http.structs import Page, RestParams, RestResult
from icefall.api.networks.params import (
    Addresses,
    ManyUtxos,
    MaybeId,
    MinAmount,
    NetworkName,
    NodeId,
    PrimaryChain,
    Time,
    UtxoSortBy,
)
from icefall.api.networks.schema.assets import NetworkAsset, PrimaryChainInfo
from icefall.api.networks.schema.x_chain import UtxoCredential, UtxoResult

_ADDRESS_TEXT_MAX = 128 * 1024  # of 1,024 addresses


class NodeBlocksParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    node_id: NodeId
    start_timestamp: Time = None
    end_timestamp: Time = None
    page_token: PageToken = ""
    page_size: PageSize = 10


class UtxosParams(RestParams, frozen=True):
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


class ChainParams(RestParams, frozen=True):
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


class AddressChains(RestResult, frozen=True):
    address: str
    blockchain_ids: list[str]


class AddressChainsResult(RestResult, frozen=True):
    addresses: list[AddressChains]


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
    """The fields that every atomic transaction of C has."""

    tx_hash: str
    block_height: int
    block_hash: str
    timestamp: int
    memo: str
    amount_unlocked: list[NetworkAsset]
    amount_created: list[NetworkAsset]
    source_chain: str
    destination_chain: str


class CExportTransaction(CTransaction, frozen=True, kw_only=True):
    tx_type: Literal["ExportTx"]
    evm_inputs: list[EvmInput]
    emitted_utxos: list[UtxoResult]


class CImportTransaction(CTransaction, frozen=True, kw_only=True):
    tx_type: Literal["ImportTx"]
    evm_outputs: list[EvmOutput]
    consumed_utxos: list[UtxoResult]


class CTransactionPage(Page, frozen=True):
    transactions: list[CExportTransaction | CImportTransaction]
    chain_info: PrimaryChainInfo
