"""The asset chain on a real store: equal to a plain model after every block, whole after kill -9 at any point."""

import asyncio
import os
import random
from pathlib import Path

import pytest
from tests.forked import exit_code_of
from tests.steps import Steps
from tests.xchain.craft import ADDRESSES, KEYS, base, signed, spend
from tests.xchain.memory_state import BLOCK_0, RULES, MemoryState
from tests.xchain.stored import StoredChain, digest, history, run
from tests.xchain.wallet import AVAX, NOW_S, PEERS, Wallet, _amount_of

from icefall.db.sqlite import SqliteReader
from icefall.errors import CallFailed
from icefall.node.store import store_path
from icefall.wire.avm.codec import pack_utxo
from icefall.wire.avm.types import BaseTx, ExportTx, Owners, TransferableOutput, TransferOutput, Tx
from icefall.wire.avm.utxos import produced
from icefall.wire.ids import input_id
from icefall.wire.text import checksum_hex
from icefall.xchain.execute import verify_block
from icefall.xchain.paging import OwnUtxos, UtxoCursor, page_of
from icefall.xchain.reading import AssetChainReader
from icefall.xchain.store import NEWEST

SEED = 20261115
BLOCKS = int(os.environ.get("ICEFALL_FUZZ_CASES", "60"))
CRASHES = int(os.environ.get("ICEFALL_FUZZ_CRASHES", "6"))  # `bench` runs more
UTXOS = int(os.environ.get("ICEFALL_FUZZ_UTXOS", "14000"))  # of one address; a list that is walked is seen with these
AT_ONCE = 700  # outputs of a transaction


def test_the_store_holds_what_a_plain_model_holds_after_every_block(tmp_path: Path) -> None:
    asyncio.run(_beside_model(tmp_path))


async def _beside_model(directory: Path) -> None:
    stored, model, parent = StoredChain(directory), MemoryState(), BLOCK_0
    steps = []
    for step in history(SEED, BLOCKS):
        steps.append(step)
        await stored.carry_on(iter(steps))
        for peer_chain_id, utxo in step.received:
            model.put_atomic(peer_chain_id, utxo)
        block = stored.chain.ledger.tip
        assert [tx.txid for tx in block.txs] == [tx.txid for tx in step.txs]
        model.accept(verify_block(block, parent, RULES, model, NOW_S))
        parent = block
        rows = stored.store.read("select utxo_id, bytes from utxo")
        assert dict(rows) == {utxo_id: pack_utxo(utxo) for utxo_id, utxo in model.utxos.items()}
        owners = stored.store.read("select count(*) from utxo_owner")[0][0]
        assert owners == sum(len(utxo.output.owners.addresses) for utxo in model.utxos.values())
        here = stored.store.read("select source, utxo_id from atomic_utxo where destination = ?", (RULES.chain_id,))
        assert set(here) == set(model.atomic)
    stored.store.close()


def test_an_export_is_in_the_history_of_the_address_it_goes_to(tmp_path: Path) -> None:
    asyncio.run(_export(tmp_path))


async def _export(directory: Path) -> None:
    """The address is neither an owner of what is spent nor of what stays here."""
    stored, wallet = StoredChain(directory), Wallet(SEED)
    await stored.chain.ledger.start()
    receiver = b"\x01" * 20
    utxo_id, utxo = max(wallet.transfers.items(), key=lambda row: _amount_of(row[1]))
    exported = TransferableOutput(AVAX, TransferOutput(1000, Owners(0, 1, (receiver,))))
    change = wallet._to_one(AVAX, _amount_of(utxo) - RULES.tx_fee - 1000)
    tx = wallet._finish(ExportTx, [wallet._spend(utxo_id, utxo)], [change], PEERS[0], (exported,))
    await stored.chain.issue(checksum_hex.encode(tx.raw), "hex")
    assert await stored.chain.accept_pending()
    stored.store.close()
    reader = AssetChainReader(SqliteReader(store_path(directory)), RULES.chain_id)
    for asset in (b"", AVAX):
        rows = await reader.address_txs(receiver, asset, NEWEST, 10)
        assert [(txid, height) for _, txid, height in rows] == [(tx.txid, 1)]


def test_the_last_64_refusals_are_stored(tmp_path: Path) -> None:
    asyncio.run(_refusals(tmp_path))


async def _refusals(directory: Path) -> None:
    stored = StoredChain(directory)
    await stored.chain.ledger.start()
    txs = [signed(base([], [], bytes([number]))) for number in range(70)]
    for tx in txs:
        with pytest.raises(CallFailed, match="insufficient funds"):
            await stored.chain.issue(checksum_hex.encode(tx.raw), "hex")
        if tx in (txs[9], txs[-1]):  # stored together with what was stored before, and trimmed
            await stored.chain.accept_pending()
    stored.store.close()
    reader = AssetChainReader(SqliteReader(store_path(directory)), RULES.chain_id)
    kept = [tx for tx in txs if await reader.refusal(tx.txid) is not None]
    assert kept == txs[-64:]


def test_a_refusal_that_is_not_final_is_neither_stored_nor_rejected(tmp_path: Path) -> None:
    asyncio.run(_child_before_parent(tmp_path))


async def _child_before_parent(directory: Path) -> None:
    stored = StoredChain(directory)
    chain = stored.chain
    await chain.ledger.start()
    parent, child = _parent_and_child()
    with pytest.raises(CallFailed, match="not found"):
        await chain.issue(checksum_hex.encode(child.raw), "hex")
    assert chain.state_of(child.txid) == ""
    await chain.issue(checksum_hex.encode(parent.raw), "hex")
    assert await chain.accept_pending()
    assert await chain.issue(checksum_hex.encode(child.raw), "hex") == child.txid
    assert chain.state_of(child.txid) == "Processing"
    assert await chain.accept_pending()
    rival = signed(base([], [spend(produced(parent)[0])], b"rival"), KEYS[:1])
    with pytest.raises(CallFailed, match="not found"):
        await chain.issue(checksum_hex.encode(rival.raw), "hex")
    assert chain.state_of(rival.txid) == "Rejected"
    await chain.accept_pending()
    stored.store.close()
    reader = AssetChainReader(SqliteReader(store_path(directory)), RULES.chain_id)
    assert await reader.refusal(child.txid) is None
    assert await reader.refusal(rival.txid) is not None


def _parent_and_child() -> tuple[Tx, Tx]:
    wallet = Wallet(SEED)
    utxo_id, utxo = max(wallet.transfers.items(), key=lambda row: _amount_of(row[1]))
    amount = _amount_of(utxo) - RULES.tx_fee
    output = TransferableOutput(AVAX, TransferOutput(amount, Owners(0, 1, ADDRESSES[:1])))
    parent = wallet._finish(BaseTx, [wallet._spend(utxo_id, utxo)], [output])
    return parent, signed(base([], [spend(produced(parent)[0])]), KEYS[:1])


def test_kill_9_at_any_write_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    clean, crashed = tmp_path / "clean", tmp_path / "crashed"
    clean.mkdir()
    crashed.mkdir()
    assert exit_code_of(run, clean, SEED, BLOCKS) == 0
    source = random.Random(SEED)
    for _ in range(CRASHES):
        exit_code_of(run, crashed, SEED, BLOCKS, source.randint(2, 120))
    assert exit_code_of(run, crashed, SEED, BLOCKS) == 0
    assert digest(crashed) == digest(clean)


def test_many_thousand_utxos_are_paged_once_each_at_the_cost_of_a_short_list(tmp_path: Path) -> None:
    asyncio.run(_many(tmp_path))


async def _many(directory: Path) -> None:
    stored = StoredChain(directory)
    await stored.chain.ledger.start()
    wallet = Wallet(SEED)
    rich, poor = b"\x01" * 20, b"\x02" * 20
    made: set[bytes] = set()
    for _ in range(-(-UTXOS // AT_ONCE)):
        tx = _spread(wallet, rich, AT_ONCE)
        await stored.chain.issue(checksum_hex.encode(tx.raw), "hex")
        await stored.chain.accept_pending()
        wallet.accepted()
        made |= {input_id(u.txid, u.output_index) for u in produced(tx) if u.output.owners.addresses == (rich,)}
    tx = _spread(wallet, poor, 10)
    await stored.chain.issue(checksum_hex.encode(tx.raw), "hex")
    await stored.chain.accept_pending()
    stored.store.close()
    assert len(made) >= UTXOS

    sqlite = SqliteReader(store_path(directory))
    reader = AssetChainReader(sqlite, RULES.chain_id)
    lists, cursor, seen = OwnUtxos(reader), UtxoCursor(), []
    while True:
        page = await page_of(lists, [rich], cursor, 1024)
        if not page.utxos:
            break
        seen += [utxo.utxo_id for utxo in page.utxos]
        cursor = page.end
    assert len(seen) == len(set(seen))
    assert set(seen) == made

    taken: dict[bytes, int] = {}
    for address in (rich, poor):
        with Steps(sqlite) as steps:
            page = await page_of(lists, [address], UtxoCursor(), 10)
        assert len(page.utxos) == 10
        taken[address] = steps.count
    assert 0 < taken[rich] < 1.1 * taken[poor]


def _spread(wallet: Wallet, to: bytes, count: int) -> Tx:
    """A transaction of the wallet that gives `count` outputs to one address and the rest back."""
    outputs = [TransferableOutput(AVAX, TransferOutput(1000 + i, Owners(0, 1, (to,)))) for i in range(count)]
    utxo_id, utxo = max(wallet.transfers.items(), key=lambda row: _amount_of(row[1]))
    change = _amount_of(utxo) - RULES.tx_fee - sum(out.output.amount for out in outputs)
    outputs.append(wallet._to_one(AVAX, change))
    return wallet._finish(BaseTx, [wallet._spend(utxo_id, utxo)], outputs)
