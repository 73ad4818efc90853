"""The state that the asset chain's rules read, and the changes they make. Pure values and protocols."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from icefall.wire.avm.json import ChainNaming
from icefall.wire.avm.types import Block, Output, Tx, Utxo
from icefall.wire.ids import id_text


class TxRefused(Exception):
    """A transaction or block that breaks a rule; the text is the one a node answers with.

    `is_final`: no later state of the chain makes it valid. A missing input that may still be created, a lock that ends
    and a conflict with a transaction that is in no block yet are not final.
    """

    def __init__(self, text: str, *, is_final: bool = True) -> None:
        super().__init__(text)
        self.is_final = is_final


class ChainRules(msgspec.Struct, frozen=True):
    """What is fixed for one chain from its genesis on."""

    network_id: int
    chain_id: bytes
    fee_asset_id: bytes
    tx_fee: int
    create_asset_tx_fee: int
    fx_count: int = 3


class LedgerState(Protocol):
    """The chain as verification sees it: the last accepted state, or that state with a block's earlier transactions."""

    def utxo(self, utxo_id: bytes) -> Utxo | None:
        """The unspent output with this ID (`ids.input_id`)."""
        ...

    def tx(self, txid: bytes) -> Tx | None:
        """An accepted transaction; assets are looked up by the transaction that created them."""
        ...

    def atomic_utxo(self, peer_chain_id: bytes, utxo_id: bytes) -> Utxo | None:
        """What `peer_chain_id` has exported to this chain and has not been imported yet."""
        ...

    def subnet_of(self, chain_id: bytes) -> bytes:
        """The subnet a chain belongs to; TxRefused with the node's text if there is no such chain."""
        ...


def owners_of(output: Output) -> tuple[bytes, ...]:
    """The addresses in whose lists an output is."""
    return output.owners.addresses


class NewUtxo(msgspec.Struct, frozen=True, gc=False):
    """A UTXO that a transaction created. `raw` is what getUTXOs returns; `addresses` are its owners."""

    utxo_id: bytes
    utxo: Utxo
    raw: bytes
    addresses: tuple[bytes, ...]


class TxEffects(msgspec.Struct, frozen=True, gc=False):
    """All that one transaction changes. `spent_utxos` are the outputs it consumed, for the history of their owners."""

    tx: Tx
    created: tuple[NewUtxo, ...]
    spent: tuple[bytes, ...]  # IDs of this chain's UTXOs
    spent_utxos: tuple[Utxo, ...]  # those, and imported ones, as they were
    peer_chain_id: bytes  # of an import or export; empty otherwise
    imported: tuple[bytes, ...]  # IDs taken out of what the peer exported to us
    exported: tuple[NewUtxo, ...]  # put into the peer's memory


class AcceptedBlock(msgspec.Struct, frozen=True):
    """Everything an accepted block changes: written in one transaction, or not at all."""

    block: Block
    container_id: bytes
    container: bytes  # the block as the proposer wrapped it
    accepted_ns: int  # when this node accepted it
    effects: tuple[TxEffects, ...]


class ChainView(msgspec.Struct, frozen=True):
    chain_id: bytes
    naming: ChainNaming
    asset_ids: Mapping[str, bytes]  # by genesis alias, the fee asset first
    tx_fee: int
    create_asset_tx_fee: int

    def asset_name(self, asset_id: bytes) -> str:
        """A genesis asset by its alias, any other by its ID."""
        return next((name for name, known in self.asset_ids.items() if known == asset_id), "") or id_text(asset_id)
