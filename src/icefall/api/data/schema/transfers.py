"""Token transfers and internal transactions: nested in their transaction, and as items of a list, with the block
and the transaction they belong to.

Each standard has its own structs, as the interface gives it its own fields.
"""

from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, UnsetType

from icefall.api.data.schema.tokens import Erc20Token, Erc721Token, Erc1155Token, Party
from icefall.api.http.rest_params import ChainName, EndBlock, EvmAddress, PageSize, PageToken, StartBlock
from icefall.api.http.structs import Page, RestParams, RestResult
from icefall.evm.model import ERC20, ERC721, ERC1155

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


class NestedTransfers(RestResult, frozen=True):
    """The transfers of a transaction, by standard."""

    erc20_transfers: list[Erc20TransferDetails]
    erc721_transfers: list[Erc721TransferDetails]
    erc1155_transfers: list[Erc1155TransferDetails]


class InternalTransactionDetails(RestResult, frozen=True, gc=False):
    from_: Party
    to: Party
    internal_tx_type: InternalTxType
    value: str
    is_reverted: bool
    gas_used: str
    gas_limit: str


class Method(RestResult, frozen=True, gc=False):
    """The function that a transaction calls. `methodHash` is the first four bytes of a contract call's input, `0x`
    where there are none."""

    call_type: Literal["NATIVE_TRANSFER", "CONTRACT_CALL", "CONTRACT_CREATION"]
    method_hash: str
    method_name: str | UnsetType = UNSET


class NativeTransaction(RestResult, frozen=True, gc=False):
    block_number: str
    block_timestamp: int
    block_hash: str
    chain_id: str
    block_index: int
    tx_hash: str
    tx_status: Literal["0", "1"]
    tx_type: int
    gas_limit: str
    gas_used: str
    gas_price: str
    nonce: str
    from_: Party
    to: Party
    method: Method
    value: str


class TransactionDetails(RestResult, frozen=True):
    """The nested lists hold the rows whose sender or receiver is the requested address. `truncated` is true where a
    transaction has more than 2,000 transfers or internal transactions: the others are at `.../{txHash}/transfers`."""

    native_transaction: NativeTransaction
    erc20_transfers: list[Erc20TransferDetails]
    erc721_transfers: list[Erc721TransferDetails]
    erc1155_transfers: list[Erc1155TransferDetails]
    internal_transactions: list[InternalTransactionDetails]
    truncated: bool | UnsetType = UNSET


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


# The page of transfers of one standard, by its number.
TRANSFER_PAGES: dict[int, type[Page]] = {
    ERC20: Erc20TransferPage,
    ERC721: Erc721TransferPage,
    ERC1155: Erc1155TransferPage,
}
TokenTransferDetails = Erc20TransferDetails | Erc721TransferDetails | Erc1155TransferDetails
TokenTransfer = Erc20Transfer | Erc721Transfer | Erc1155Transfer
_ANY_TRANSFER = {
    "items": {"anyOf": [{"$ref": f"#/components/schemas/{one.__name__}"} for one in get_args(TokenTransfer)]}
}


class TokenTransferPage(Page, frozen=True, kw_only=True):
    """Items of all three standards, distinguished by the name of their token field."""

    transfers: Annotated[list[Any], Meta(extra_json_schema=_ANY_TRANSFER)]
