"""What must come out of scenario-1, worked out from its recorded containers alone, with no store in between."""

from functools import cache

from tests.sync.history import containers

from icefall.wire.avm.codec import genesis_txs, unpack_block, unpack_genesis, unpack_utxo
from icefall.wire.avm.types import Block, Tx, Utxo
from icefall.wire.avm.utxos import consumed, imported, produced
from icefall.wire.container.coreth import unpack_coreth_block
from icefall.wire.container.platform import unpack_platform_block
from icefall.wire.container.proposer import Container, unpack_container
from icefall.wire.genesis.network import network_genesis, packaged_genesis
from icefall.wire.ids import input_id
from icefall.wire.text import checksum_hex
from icefall.wire.text.bech32 import address_text

GENESIS = network_genesis(packaged_genesis(12345), 12345, 1_794_753_768)


@cache
def accepted(chain: str) -> list[Container]:
    return [unpack_container(checksum_hex.decode(row["bytes"])) for row in containers() if row["chain"] == chain]


@cache
def blocks() -> list[Block]:
    return [unpack_block(container.inner) for container in accepted("X")]


@cache
def txs() -> list[Tx]:
    return [tx for block in blocks() for tx in block.txs]


@cache
def assets() -> list[Tx]:
    return [*genesis_txs(unpack_genesis(GENESIS.x_genesis)), *txs()]


@cache
def unspent() -> dict[bytes, Utxo]:
    made = {input_id(utxo.txid, utxo.output_index): utxo for tx in assets() for utxo in produced(tx)}
    for tx in txs():
        for at in consumed(tx):
            del made[input_id(at.txid, at.output_index)]
    return made


@cache
def waiting(source: str) -> dict[bytes, Utxo]:
    """What P or C has exported to X, and X has not imported."""
    unpack = unpack_platform_block if source == "P" else unpack_coreth_block
    found = {
        export.utxo_id: unpack_utxo(export.utxo_raw)
        for container in accepted(source)
        for export in unpack(container.inner).exports_to(GENESIS.x_chain_id)
    }
    for tx in txs():
        for at in imported(tx):
            found.pop(input_id(at.txid, at.output_index), None)
    return found


def owned(utxos: dict[bytes, Utxo], *addresses: bytes) -> set[bytes]:
    return {utxo_id for utxo_id, utxo in utxos.items() if set(utxo.output.owners.addresses) & set(addresses)}


@cache
def holders() -> list[bytes]:
    """Every address of the history, the one that holds most first."""
    known = {address for utxo in unspent().values() for address in utxo.output.owners.addresses}
    return sorted(known, key=lambda address: (-len(owned(unspent(), address)), address))


def text_of(address: bytes) -> str:
    return address_text("X", "local", address)


def utxo_id_of(text: str) -> bytes:
    utxo = unpack_utxo(checksum_hex.decode(text))
    return input_id(utxo.txid, utxo.output_index)
