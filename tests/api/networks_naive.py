"""A second implementation of X and the atomic side of C: recorded containers in memory, and simple loops over them."""

import json
from typing import Any, NamedTuple

import msgspec
from tests.pchain.recorded import GENESIS_FILES, recorded_containers, recorded_network
from tests.wire.wire_vectors import VECTORS

from icefall.wire.avm import types as x
from icefall.wire.avm.codec import genesis_txs, unpack_genesis
from icefall.wire.avm.codec import unpack_block as unpack_x_block
from icefall.wire.avm.utxos import consumed, exported, imported, produced
from icefall.wire.container.core_txs import core_txs_of
from icefall.wire.container.coreth import unpack_coreth_block
from icefall.wire.container.platform import block_in_container
from icefall.wire.container.proposer import unpack_container
from icefall.wire.errors import WireError
from icefall.wire.ids import PLATFORM_CHAIN, id_text, node_id_text
from icefall.wire.pvm import types as p
from icefall.wire.pvm.codec import unpack_block as unpack_p_block
from icefall.wire.text import bech32


class Made(msgspec.Struct):
    """An output, from its making to its spending."""

    txid: str
    index: int
    asset: str
    amount: int
    owners: tuple[bytes, ...]
    threshold: int
    locktime: int
    source: str
    destination: str
    time: int
    spent_by: str | None = None
    spent_time: int | None = None


class Moved(NamedTuple):
    """A transaction with the outputs that it consumed and made; of C also the accounts."""

    chain: str
    txid: str
    kind: str
    height: int
    time: int
    block: str
    consumed: list[Made]
    made: list[Made]
    accounts: list[tuple[bytes, int, str]]
    tx: Any


class NaiveNetwork:
    """Everything that a recorded network moved, in the order of its acceptance."""

    def __init__(self, recording: str) -> None:
        self.network = recorded_network(recording)
        genesis = self.network.genesis
        self.ids = {"P": PLATFORM_CHAIN, "X": genesis.x_chain_id, "C": genesis.c_chain_id}
        self.x, self.c = id_text(genesis.x_chain_id), id_text(genesis.c_chain_id)
        self.p = id_text(PLATFORM_CHAIN)
        self.outputs: dict[tuple[str, int], Made] = {}
        self.txs: list[Moved] = []
        genesis_file = VECTORS / recording / GENESIS_FILES[recording]
        self._p_time = int(json.loads(genesis_file.read_bytes())["startTime"])
        self._proposed_time: int | None = None
        self.proposers: dict[tuple[str, str], list[int]] = {}
        self.sizes: dict[tuple[str, int], int] = {}
        self.blocks: dict[str, list[tuple[int, str, int]]] = {"P": [], "X": [], "C": []}
        spec = self.network.asset_chains[0]
        first = unpack_x_block(spec.block_0)
        self.blocks["X"].append((0, id_text(first.block_id), first.time))
        for tx in genesis_txs(unpack_genesis(spec.genesis)):
            self._x_tx(tx, 0, first.time, id_text(first.block_id))
        for chain, fetched, _ in recorded_containers(recording):
            inner = block_in_container(fetched.raw)
            height = {"P": self._p_block, "X": self._x_block, "C": self._c_block}[chain](inner)
            self.sizes[chain, height] = len(inner)
            try:
                certificate = unpack_container(fetched.raw).certificate
            except WireError:
                certificate = b""
            if certificate:
                self.proposers.setdefault((chain, node_id_text(certificate)), []).append(height)

    def _x_block(self, inner: bytes) -> int:
        block = unpack_x_block(inner)
        self.blocks["X"].append((block.height, id_text(block.block_id), block.time))
        for tx in block.txs:
            self._x_tx(tx, block.height, block.time, id_text(block.block_id))
        return block.height

    def _x_tx(self, tx: x.Tx, height: int, time: int, block: str) -> None:
        taken = [self._spend(one, tx.txid, time) for one in (*consumed(tx), *imported(tx))]
        made = [self._make(one, self.x, self.x, time) for one in produced(tx)]
        peer = id_text(getattr(tx.unsigned, "destination_chain", self.ids["X"]))
        made += [self._make(one, self.x, peer, time) for one in exported(tx)]
        kind = type(tx.unsigned).__name__
        self.txs.append(Moved("X", id_text(tx.txid), kind, height, time, block, taken, made, [], tx))

    def _make(self, utxo: x.Utxo, source: str, destination: str, time: int) -> Made:
        output = utxo.output
        owners = output.owners
        made = Made(
            id_text(utxo.txid),
            utxo.output_index,
            id_text(utxo.asset_id),
            getattr(output, "amount", 1 if isinstance(output, x.NftTransferOutput) else 0),
            owners.addresses,
            owners.threshold,
            owners.locktime,
            source,
            destination,
            time,
        )
        self.outputs[made.txid, made.index] = made
        return made

    def _spend(self, given: Any, txid: bytes, time: int) -> Made:
        found = self.outputs[id_text(given.txid), given.output_index]
        found.spent_by, found.spent_time = id_text(txid), time
        return found

    def _c_block(self, inner: bytes) -> int:
        block = unpack_coreth_block(inner)
        assert block.time is not None
        name = f"0x{block.block_id.hex()}"
        self.blocks["C"].append((block.height, name, block.time))
        for tx in core_txs_of(inner):
            taken = [self._spend(one, tx.txid, block.time) for one in tx.inputs]
            made = [
                self._make(x.Utxo(tx.txid, index, one.asset_id, one.output), self.c, id_text(tx.peer_chain), block.time)
                for index, one in enumerate(tx.outputs)
            ]
            accounts = [(one.address, one.amount, id_text(one.asset_id)) for one in tx.accounts]
            kind = "ImportTx" if tx.is_import else "ExportTx"
            txid = id_text(tx.txid)
            self.txs.append(Moved("C", txid, kind, block.height, block.time, name, taken, made, accounts, tx))
        return block.height

    def _p_block(self, inner: bytes) -> int:
        block = unpack_p_block(inner)
        if block.time is not None:
            self._p_time = block.time
        elif block.block_type.name.endswith("COMMIT") and self._proposed_time is not None:
            self._p_time = self._proposed_time
        proposed = block.proposal.unsigned if block.proposal is not None else None
        self._proposed_time = proposed.time if isinstance(proposed, p.AdvanceTimeTx) else None
        for tx in block.txs:
            unsigned, time = tx.unsigned, self._p_time
            if isinstance(unsigned, p.PlatformImportTx):
                for one in unsigned.imported_inputs:
                    self._spend(one, tx.txid, time)
            elif isinstance(unsigned, p.PlatformExportTx):
                for index, out in enumerate(unsigned.exported_outputs, len(unsigned.outputs)):
                    assert not isinstance(out.output, p.StakeableOutput)
                    utxo = x.Utxo(tx.txid, index, out.asset_id, out.output)
                    self._make(utxo, self.p, id_text(unsigned.destination_chain), time)
        return block.height

    # -- what is asked for ------------------------------------------------------------------------------------------

    def of_chain(self, chain: str) -> list[Moved]:
        """Transactions, newest first."""
        return [one for one in self.txs if one.chain == chain][::-1]

    def owners(self) -> list[bytes]:
        return sorted({address for one in self.outputs.values() for address in one.owners})

    def owned(self, chain: str, address: bytes) -> list[Made]:
        name = id_text(self.ids[chain])
        return [one for one in self.outputs.values() if address in one.owners and name in (one.source, one.destination)]

    def balances(self, chain: str, address: bytes, at: int) -> dict[str, dict[str, tuple[str, int]]]:
        """Amount and number of outputs by category and by asset, with the other chain for what is shared."""
        name = id_text(self.ids[chain])
        found: dict[str, dict[str, tuple[str, int]]] = {}
        for one in self.owned(chain, address):
            if one.time > at or (one.spent_time is not None and one.spent_time <= at) or not one.amount:
                continue
            lock = "locked" if one.locktime > at else "unlocked"
            key, category = one.asset, lock
            if one.source != one.destination:
                peer = one.source if one.destination == name else one.destination
                key, category = f"{one.asset} {peer}", f"atomicMemory{lock.capitalize()}"
            amount, count = found.setdefault(category, {}).get(key, ("0", 0))
            found[category][key] = str(int(amount) + one.amount), count + 1
        return found

    def text(self, address: bytes, hrp: str) -> str:
        return bech32.address_text("", hrp, address)[1:]


def is_touched(one: Moved, address: bytes) -> bool:
    """Whether a transaction took from an address or gave to it."""
    owners = {owner for output in (*one.consumed, *one.made) for owner in output.owners}
    return address in owners or address in {account for account, _, _ in one.accounts}
