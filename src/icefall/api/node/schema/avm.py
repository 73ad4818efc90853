"""Parameters and results of the asset chain."""

from typing import Annotated, Any

import msgspec

from icefall.api.http.rpc_params import NO_ID, Boolean, Encoding, Id, StartIndex, String, Strings, Uint32, Uint64
from icefall.api.http.structs import Params, Result


class AddressParams(Params, frozen=True):
    address: String = ""
    include_partial: Boolean = False


class AssetParams(Params, frozen=True):
    asset_id: String = ""


class BalanceParams(Params, frozen=True):
    address: String = ""
    asset_id: String = ""
    include_partial: Boolean = False


class GetBlockParams(Params, frozen=True):
    block_id: Id = NO_ID
    encoding: Encoding = "hex"


class BlockByHeightParams(Params, frozen=True):
    height: Uint64 = 0
    encoding: Encoding = "hex"


class GetTxParams(Params, frozen=True):
    tx_id: Id = NO_ID
    encoding: Encoding = "hex"


class TxStatusParams(Params, frozen=True):
    tx_id: Id = NO_ID


class UtxosParams(Params, frozen=True):
    addresses: Strings = []
    limit: Uint32 = 0
    start_index: StartIndex = ("", "")
    source_chain: String = ""
    encoding: Encoding = "hex"


class IssueTxParams(Params, frozen=True):
    tx: String = ""
    encoding: Encoding = "hex"


class AddressTxsParams(Params, frozen=True):
    address: String = ""
    asset_id: String = ""
    cursor: Uint64 = 0
    page_size: Uint64 = 0


# Bytes as text, or the object itself with encoding `json`.
Rendered = Annotated[Any, msgspec.Meta(extra_json_schema={"oneOf": [{"type": "string"}, {"type": "object"}]})]


class AssetBalance(Result, frozen=True):
    asset: str
    balance: str


class AllBalances(Result, frozen=True):
    balances: list[AssetBalance]


class AssetDescription(Result, frozen=True):
    asset_id: str
    name: str
    symbol: str
    denomination: str


class UtxoReference(Result, frozen=True):
    tx_id: str
    output_index: int


class Balance(Result, frozen=True):
    balance: str
    utxo_ids: list[UtxoReference]


class GetBlockResult(Result, frozen=True):
    block: Rendered
    encoding: str


class Height(Result, frozen=True):
    height: str


class GetTxResult(Result, frozen=True):
    tx: Rendered
    encoding: str


class TxFees(Result, frozen=True):
    tx_fee: str
    create_asset_tx_fee: str


class TxStatus(Result, frozen=True):
    status: str


class Index(Result, frozen=True):
    address: str
    utxo: str


class Utxos(Result, frozen=True):
    num_fetched: str
    utxos: list[str]
    end_index: Index
    encoding: str
    source_chain: str | msgspec.UnsetType = msgspec.UNSET


class Issued(Result, frozen=True):
    tx_id: str


class AddressTxs(Result, frozen=True):
    """A page of transactions. `cursor` is absent on the last page."""

    tx_ids: list[str]
    cursor: str | msgspec.UnsetType = msgspec.UNSET
