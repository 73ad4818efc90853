"""A synthetic X-Chain history: one signed transfer per block, each block in its container."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from icefall.compose.node_setup import configured_network
from icefall.config.load import load
from icefall.db.sqlite import SqliteStore
from icefall.node.store import PACKAGE, StartRequest, admit, store_path
from icefall.primary.chains import index_x
from icefall.wire.avm.codec import genesis_txs, pack_block, pack_tx, pack_unsigned, unpack_block, unpack_genesis
from icefall.wire.avm.parts import pack_transferable_output
from icefall.wire.avm.types import (
    BaseTx,
    Credential,
    ExportTx,
    Owners,
    TransferableInput,
    TransferableOutput,
    TransferInput,
    TransferOutput,
    Tx,
    Utxo,
)
from icefall.wire.avm.utxos import produced
from icefall.wire.container.proposer import Container, next_epoch, pack_container
from icefall.wire.genesis.network import NetworkGenesis, network_genesis, packaged_genesis
from icefall.wire.ids import hash256
from icefall.wire.keys import address_of, private_key_from_text, sign
from icefall.xchain.ledger import Ledger
from icefall.xchain.replayed import FollowedLedger, ReceivedContainer

NETWORK_ID = 12345
SECRET = private_key_from_text("PrivateKey-ewoqjP7PxY4yr3iLTpLisriqt94hdyDFNgchSxGGztUrTXtNN")
ADDRESS = address_of(SECRET)
FEE, PAYMENT = 1_000_000, 1_000
FANOUT, RECIPIENTS = 500, 1000
_RUN = 500  # blocks per commit
_START = 1_794_753_768


def genesis() -> NetworkGenesis:
    return network_genesis(packaged_genesis(NETWORK_ID), NETWORK_ID, _START)


def containers(count: int) -> Iterator[Container]:
    """The first block splits the funds of the key; each other block pays a recipient and returns the change."""
    network = genesis()
    tip, parent = unpack_block(network.x_block_0), None
    ours = deque([_richest(network)])
    for number in range(count):
        utxo = ours.popleft()
        tx = _split(network, utxo) if number == 0 else _payment(network, utxo, number)
        ours.extend(made for made in produced(tx) if _is_ours(made))
        block = pack_block(tip.block_id, tip.height + 1, tip.time + 1, (tx,))
        if parent is None:
            parent = pack_container(tip.block_id, block.time, 0, block.raw)
        else:
            parent = pack_container(parent.container_id, block.time, 0, block.raw, epoch=next_epoch(parent))
        yield parent
        tip = block


def _richest(network: NetworkGenesis) -> Utxo:
    made = [utxo for tx in genesis_txs(unpack_genesis(network.x_genesis)) for utxo in produced(tx)]
    return max(filter(_is_ours, made), key=_amount)


def _is_ours(utxo: Utxo) -> bool:
    return utxo.output.owners.addresses == (ADDRESS,)


def _amount(utxo: Utxo) -> int:
    assert isinstance(utxo.output, TransferOutput)
    return utxo.output.amount


def _split(network: NetworkGenesis, utxo: Utxo) -> Tx:
    share = (_amount(utxo) - FEE) // FANOUT
    return signed_transfer(network.x_chain_id, utxo, [(share, ADDRESS)] * FANOUT)


def _payment(network: NetworkGenesis, utxo: Utxo, number: int) -> Tx:
    recipient = hash256((number % RECIPIENTS).to_bytes(4, "big"))[:20]
    return signed_transfer(network.x_chain_id, utxo, [(PAYMENT, recipient), (_amount(utxo) - FEE - PAYMENT, ADDRESS)])


def signed_transfer(chain_id: bytes, utxo: Utxo, pays: list[tuple[int, bytes]]) -> Tx:
    """Spends one UTXO of the key. `pays`: amounts and recipients."""
    outputs = [TransferableOutput(utxo.asset_id, TransferOutput(amount, Owners(0, 1, (to,)))) for amount, to in pays]
    spent = TransferableInput(utxo.txid, utxo.output_index, utxo.asset_id, TransferInput(_amount(utxo), (0,)))
    ordered = tuple(sorted(outputs, key=pack_transferable_output))
    return _signed(BaseTx(NETWORK_ID, chain_id, ordered, (spent,), b""))


def signed_export(
    chain_id: bytes, utxo: Utxo, to: bytes, pays: list[tuple[int, Owners]], network_id: int = NETWORK_ID
) -> Tx:
    """Spends one UTXO of the key for outputs that another chain may import; the rest belongs to the key again."""
    exported = [TransferableOutput(utxo.asset_id, TransferOutput(*one)) for one in pays]
    left = _amount(utxo) - sum(amount for amount, _ in pays) - FEE
    change = TransferableOutput(utxo.asset_id, TransferOutput(left, Owners(0, 1, (ADDRESS,))))
    spent = TransferableInput(utxo.txid, utxo.output_index, utxo.asset_id, TransferInput(_amount(utxo), (0,)))
    ordered = tuple(sorted(exported, key=pack_transferable_output))
    return _signed(ExportTx(network_id, chain_id, (change,), (spent,), b"", to, ordered))


def _signed(unsigned: BaseTx) -> Tx:
    return pack_tx(unsigned, [Credential((sign(SECRET, hash256(pack_unsigned(unsigned))),))])


async def store(data_dir: Path, history: list[Container]) -> None:
    """Writes the history into an empty data directory, as accepted X-Chain blocks with their index."""
    config = load("node", [f"--data-dir={data_dir}", "--index-enabled=true"], {}, data_dir).config
    network = configured_network(config, _START)
    spec = network.asset_chains[0]
    database = SqliteStore(store_path(data_dir), PACKAGE)
    await database.write(lambda tx: admit(tx, StartRequest(config.network_id, False, True, False), _START))
    ledger = Ledger(database, spec.rules, spec.genesis, spec.block_0, network.subnet_of, index_x)
    await ledger.start()
    followed = FollowedLedger(ledger)
    for start in range(0, len(history), _RUN):
        run = history[start : start + _RUN]
        await followed.accept([ReceivedContainer(row.container_id, row.raw, row.inner) for row in run])
    database.close()
