"""The asset chain: parameters and results."""

from typing import Annotated, Any

import msgspec

from icefall.api.kinds import NO_ID, Boolean, Encoding, Id, StartIndex, Text, Texts, Uint32, Uint64
from icefall.api.schema.names import Ask, Told


class AddressAsk(Ask, frozen=True):
    address: Text = ""
    include_partial: Boolean = False


class AssetAsk(Ask, frozen=True):
    asset_id: Text = ""


class BalanceAsk(Ask, frozen=True):
    address: Text = ""
    asset_id: Text = ""
    include_partial: Boolean = False


class BlockAsk(Ask, frozen=True):
    block_id: Id = NO_ID
    encoding: Encoding = "hex"


class HeightAsk(Ask, frozen=True):
    height: Uint64 = 0
    encoding: Encoding = "hex"


class TxAsk(Ask, frozen=True):
    tx_id: Id = NO_ID
    encoding: Encoding = "hex"


class TxStatusAsk(Ask, frozen=True):
    tx_id: Id = NO_ID


class UtxosAsk(Ask, frozen=True):
    addresses: Texts = []
    limit: Uint32 = 0
    start_index: StartIndex = ("", "")
    source_chain: Text = ""
    encoding: Encoding = "hex"


class IssueAsk(Ask, frozen=True):
    tx: Text = ""
    encoding: Encoding = "hex"


class AddressTxsAsk(Ask, frozen=True):
    address: Text = ""
    asset_id: Text = ""
    cursor: Uint64 = 0
    page_size: Uint64 = 0


# Bytes as text, or the object itself with encoding `json`.
Rendered = Annotated[Any, msgspec.Meta(extra_json_schema={"oneOf": [{"type": "string"}, {"type": "object"}]})]


class AssetBalance(Told, frozen=True):
    asset: str
    balance: str


class AllBalances(Told, frozen=True):
    balances: list[AssetBalance]


class AssetDescription(Told, frozen=True):
    asset_id: str
    name: str
    symbol: str
    denomination: str


class UtxoReference(Told, frozen=True):
    tx_id: str
    output_index: int


class Balance(Told, frozen=True):
    balance: str
    utxo_ids: list[UtxoReference]


class BlockTold(Told, frozen=True):
    block: Rendered
    encoding: str


class Height(Told, frozen=True):
    height: str


class TxTold(Told, frozen=True):
    tx: Rendered
    encoding: str


class TxFees(Told, frozen=True):
    tx_fee: str
    create_asset_tx_fee: str


class TxStatus(Told, frozen=True):
    status: str


class Index(Told, frozen=True):
    address: str
    utxo: str


class Utxos(Told, frozen=True):
    num_fetched: str
    utxos: list[str]
    end_index: Index
    encoding: str
    source_chain: str | msgspec.UnsetType = msgspec.UNSET


class Issued(Told, frozen=True):
    tx_id: str


class AddressTxs(Told, frozen=True):
    """`cursor` is there while more follow."""

    tx_ids: list[str]
    cursor: str | msgspec.UnsetType = msgspec.UNSET
