"""Token transfers and internal transactions: nested in their transaction, and as items of a list, with the block
and the transaction they belong to."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from icefall.api.data.schema.tokens import Erc20Token, Erc721Token, Erc1155Token, Party
from icefall.api.http.rest_params import ChainName, EndBlock, EvmAddress, PageSize, PageToken, StartBlock
from icefall.api.http.structs import Page, RestParams, RestResult

InternalTxType = Literal["UNKNOWN", "CALL", "CREATE", "CREATE2", "CREATE3", "CALLCODE", "DELEGATECALL", "STATICCALL"]


class AddressPage(RestParams, frozen=True):
    """The range is from `startBlock` up to, but not including, `endBlock`."""

    chain_id: ChainName
    address: EvmAddress
    page_token: PageToken = ""
    page_size: PageSize = 10
    start_block: StartBlock = None
    end_block: EndBlock = None


class TransferDetails(RestResult, frozen=True, gc=False):
    """The fields of a nested transfer of any standard."""

    from_: Party
    to: Party
    log_index: int


class Erc20TransferDetails(TransferDetails, frozen=True, gc=False):
    value: str
    erc20_token: Erc20Token


class Erc721TransferDetails(TransferDetails, frozen=True, gc=False):
    erc721_token: Erc721Token
    last_token_id: str | UnsetType = UNSET


class Erc1155TransferDetails(TransferDetails, frozen=True, gc=False):
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


class InTransaction(RestResult, frozen=True, gc=False):
    """The block and transaction of an item of a list, and its parties."""

    block_number: str
    block_timestamp: int
    block_hash: str
    tx_hash: str
    from_: Party
    to: Party


class Erc20Transfer(InTransaction, frozen=True, gc=False):
    log_index: int
    value: str
    erc20_token: Erc20Token


class Erc721Transfer(InTransaction, frozen=True, gc=False):
    log_index: int
    erc721_token: Erc721Token
    last_token_id: str | UnsetType = UNSET


class Erc1155Transfer(InTransaction, frozen=True, gc=False):
    log_index: int
    value: str
    erc1155_token: Erc1155Token


class InternalTransaction(InTransaction, frozen=True, gc=False):
    internal_tx_type: InternalTxType
    value: str
    is_reverted: bool
    gas_used: str
    gas_limit: str


class Erc20TransferPage(Page, frozen=True, kw_only=True):
    transactions: list[Erc20Transfer]


class Erc721TransferPage(Page, frozen=True, kw_only=True):
    transactions: list[Erc721Transfer]


class Erc1155TransferPage(Page, frozen=True, kw_only=True):
    transactions: list[Erc1155Transfer]


class InternalTransactionPage(Page, frozen=True, kw_only=True):
    transactions: list[InternalTransaction]


TokenTransferDetails = Erc20TransferDetails | Erc721TransferDetails | Erc1155TransferDetails
TokenTransfer = Erc20Transfer | Erc721Transfer | Erc1155Transfer
_ONE_OF_THREE = {
    "items": {"anyOf": [{"$ref": f"#/components/schemas/{kind}Transfer"} for kind in ("Erc20", "Erc721", "Erc1155")]}
}


class TokenTransferPage(Page, frozen=True, kw_only=True):
    """Items of all three standards, distinguished by the name of their token field."""

    transfers: Annotated[list[Any], Meta(extra_json_schema=_ONE_OF_THREE)]
