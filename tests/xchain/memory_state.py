"""A chain state in plain dictionaries, and the local network's first one."""

from collections.abc import Iterable

from icefall.wire.avm.codec import genesis_txs, pack_utxo, unpack_block, unpack_genesis
from icefall.wire.avm.types import Block, Tx, Utxo
from icefall.wire.genesis.network import NetworkGenesis, network_genesis, packaged_genesis
from icefall.wire.ids import LOCAL_ID, PLATFORM_CHAIN, PRIMARY_NETWORK, id_text, input_id
from icefall.xchain.execute import EmptyState, effects_of
from icefall.xchain.model import ChainRules, TxEffects, TxRefused
from icefall.xchain.semantics import unknown_chain

GENESIS: NetworkGenesis = network_genesis(packaged_genesis(LOCAL_ID), LOCAL_ID, 1_794_753_768)
BLOCK_0: Block = unpack_block(GENESIS.x_block_0)
RULES = ChainRules(
    network_id=LOCAL_ID,
    chain_id=GENESIS.x_chain_id,
    fee_asset_id=GENESIS.avax_asset_id,
    tx_fee=1_000_000,
    create_asset_tx_fee=1_000_000,
)


class MemoryState:
    """The last accepted state. `raw` holds the UTXOs' bytes, as a store would."""

    def __init__(self) -> None:
        self.utxos: dict[bytes, Utxo] = {}
        self.raw: dict[bytes, bytes] = {}
        self.txs: dict[bytes, Tx] = {}
        self.atomic: dict[tuple[bytes, bytes], Utxo] = {}
        self.exported: dict[tuple[bytes, bytes], bytes] = {}
        self.subnets = {PLATFORM_CHAIN: PRIMARY_NETWORK, GENESIS.c_chain_id: PRIMARY_NETWORK}
        self.platform_txids: set[bytes] = set()
        self.accept(effects_of(asset, EmptyState()) for asset in genesis_txs(unpack_genesis(GENESIS.x_genesis)))

    def utxo(self, utxo_id: bytes) -> Utxo | None:
        return self.utxos.get(utxo_id)

    def tx(self, txid: bytes) -> Tx | None:
        return self.txs.get(txid)

    def atomic_utxo(self, peer_chain_id: bytes, utxo_id: bytes) -> Utxo | None:
        return self.atomic.get((peer_chain_id, utxo_id))

    def subnet_of(self, chain_id: bytes) -> bytes:
        if chain_id in self.subnets:
            return self.subnets[chain_id]
        if chain_id in self.platform_txids:  # only a node that keeps the P-Chain knows these
            text = id_text(chain_id)
            raise TxRefused(f'failed to get subnet of "{text}": "{text}" is not a blockchain')
        raise unknown_chain(chain_id)

    def put_atomic(self, peer_chain_id: bytes, utxo: Utxo) -> None:
        """Another chain exports to this one."""
        self.atomic[peer_chain_id, input_id(utxo.txid, utxo.output_index)] = utxo

    def accept(self, block_effects: Iterable[TxEffects]) -> None:
        for effects in block_effects:
            for utxo_id in effects.spent:
                del self.utxos[utxo_id], self.raw[utxo_id]
            for utxo_id in effects.imported:
                del self.atomic[effects.peer_chain_id, utxo_id]
            for new in effects.created:
                assert new.raw == pack_utxo(new.utxo)
                self.utxos[new.utxo_id] = new.utxo
                self.raw[new.utxo_id] = new.raw
            for new in effects.exported:
                self.exported[effects.peer_chain_id, new.utxo_id] = new.raw
            self.txs[effects.tx.txid] = effects.tx
