"""Token transfers and internal transactions: the nested form inside a transaction, and the standalone one of lists,
which says in addition where it happened."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from icefall.api.rest_kinds import BlockNumber, ChainName, EvmAddress, PageSize, PageToken
from icefall.api.schema.names import RestParams, RestResult
from icefall.api.schema.parties import Party
from icefall.api.schema.tokens import Erc20Token, Erc721Token, Erc1155Token

InternalTxType = Literal["UNKNOWN", "CALL", "CREATE", "CREATE2", "CREATE3", "CALLCODE", "DELEGATECALL", "STATICCALL"]


class AddressPage(RestParams, frozen=True):
    """Blocks from `startBlock` up to, but not including, `endBlock`."""

    chain_id: ChainName
    address: EvmAddress
    page_token: PageToken = ""
    page_size: PageSize = 10
    start_block: BlockNumber = None
    end_block: BlockNumber = None


class Erc20TransferDetails(RestResult, frozen=True, gc=False):
    from_: Party
    to: Party
    log_index: int
    value: str
    erc20_token: Erc20Token


class Erc721TransferDetails(RestResult, frozen=True, gc=False):
    from_: Party
    to: Party
    log_index: int
    erc721_token: Erc721Token


class Erc1155TransferDetails(RestResult, frozen=True, gc=False):
    from_: Party
    to: Party
    log_index: int
    value: str
    erc1155_token: Erc1155Token


class InternalTransactionDetails(RestResult, frozen=True, gc=False):
    from_: Party
    to: Party
    internal_tx_type: InternalTxType
    value: str
    is_reverted: bool
    gas_used: str
    gas_limit: str


class Erc20Transfer(RestResult, frozen=True, gc=False):
    block_number: str
    block_timestamp: int
    block_hash: str
    tx_hash: str
    from_: Party
    to: Party
    log_index: int
    value: str
    erc20_token: Erc20Token


class Erc721Transfer(RestResult, frozen=True, gc=False):
    block_number: str
    block_timestamp: int
    block_hash: str
    tx_hash: str
    from_: Party
    to: Party
    log_index: int
    erc721_token: Erc721Token


class Erc1155Transfer(RestResult, frozen=True, gc=False):
    block_number: str
    block_timestamp: int
    block_hash: str
    tx_hash: str
    from_: Party
    to: Party
    log_index: int
    value: str
    erc1155_token: Erc1155Token


class InternalTransaction(RestResult, frozen=True, gc=False):
    block_number: str
    block_timestamp: int
    block_hash: str
    tx_hash: str
    from_: Party
    to: Party
    internal_tx_type: InternalTxType
    value: str
    is_reverted: bool
    gas_used: str
    gas_limit: str


class Erc20TransferPage(RestResult, frozen=True, kw_only=True):
    next_page_token: str | UnsetType = UNSET
    transactions: list[Erc20Transfer]


class Erc721TransferPage(RestResult, frozen=True, kw_only=True):
    next_page_token: str | UnsetType = UNSET
    transactions: list[Erc721Transfer]


class Erc1155TransferPage(RestResult, frozen=True, kw_only=True):
    next_page_token: str | UnsetType = UNSET
    transactions: list[Erc1155Transfer]


class InternalTransactionPage(RestResult, frozen=True, kw_only=True):
    next_page_token: str | UnsetType = UNSET
    transactions: list[InternalTransaction]


TokenTransfer = Erc20Transfer | Erc721Transfer | Erc1155Transfer
_ONE_OF_THREE = {
    "items": {"anyOf": [{"$ref": f"#/components/schemas/{kind}Transfer"} for kind in ("Erc20", "Erc721", "Erc1155")]}
}


class TokenTransferPage(RestResult, frozen=True, kw_only=True):
    """Items of all three kinds, told apart by the name of their token field."""

    next_page_token: str | UnsetType = UNSET
    transfers: Annotated[list[Any], Meta(extra_json_schema=_ONE_OF_THREE)]
