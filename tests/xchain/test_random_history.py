"""Random histories of every kind of transaction, against a ledger so plain that it can be seen to be right.

ICEFALL_FUZZ_CASES sets how many transactions are made, ICEFALL_FUZZ_SEED which ones.
"""

import os
import random
from collections import Counter
from typing import Any

import pytest
from tests.xchain.memory_state import BLOCK_0, RULES, MemoryState
from tests.xchain.wallet import NOW_S, Wallet

from icefall.wire.avm.codec import pack_block
from icefall.wire.avm.types import (
    Block,
    CreateAssetTx,
    ExportTx,
    ImportTx,
    MintOperation,
    NftMintOperation,
    NftTransferOperation,
    NftTransferOutput,
    OperationTx,
    PropertyBurnOperation,
    PropertyMintOperation,
    TransferOutput,
    Tx,
)
from icefall.wire.text import checksum_hex
from icefall.xchain.chain import build
from icefall.xchain.execute import verify_block
from icefall.xchain.mempool import Mempool, issue, parse_issue
from icefall.xchain.model import TxRefused
from icefall.xchain.ownership import Signers

CASES = int(os.environ.get("ICEFALL_FUZZ_CASES", "1000"))
BLOCK_TXS_MAX = max(20, CASES // 50)  # comparing whole states takes its time
SEED = int(os.environ.get("ICEFALL_FUZZ_SEED", "1"))


class Ledger:
    """What is where, by (transaction, output number); and how much of each asset there must be in all."""

    def __init__(self, state: MemoryState) -> None:
        self.here = {(utxo.txid, utxo.output_index): (utxo.asset_id, utxo.output) for utxo in state.utxos.values()}
        self.arrived: dict[tuple[bytes, bytes, int], Any] = {}  # (peer, ...): exported to us
        self.left: dict[tuple[bytes, bytes, int], Any] = {}  # (peer, ...): exported by us
        self.supply: Counter[bytes] = Counter()
        self.kinds: Counter[str] = Counter()
        for asset_id, output in self.here.values():
            self.supply[asset_id] += output.amount  # type: ignore[union-attr]

    def accept(self, tx: Tx) -> None:
        unsigned = tx.unsigned
        self.kinds[type(unsigned).__name__] += 1
        for spent in unsigned.inputs:
            asset_id, output = self.here.pop((spent.txid, spent.output_index))
            assert (asset_id, output.amount) == (spent.asset_id, spent.input.amount)  # type: ignore[union-attr]
        made: list[tuple[bytes, Any]] = [(row.asset_id, row.output) for row in unsigned.outputs]
        if isinstance(unsigned, CreateAssetTx):
            for state in unsigned.initial_states:
                made += [(tx.txid, output) for output in state.outputs]
                self.supply[tx.txid] += sum(out.amount for out in state.outputs if isinstance(out, TransferOutput))
        if isinstance(unsigned, OperationTx):
            for operation in unsigned.operations:
                (at,) = operation.utxo_ids
                del self.here[at.txid, at.output_index]
                made += [(operation.asset_id, output) for output in self._made_by(operation.operation)]
                if isinstance(operation.operation, MintOperation):
                    self.supply[operation.asset_id] += operation.operation.transfer_output.amount
        if isinstance(unsigned, ImportTx):
            for spent in unsigned.imported_inputs:
                asset_id, output = self.arrived.pop((unsigned.source_chain, spent.txid, spent.output_index))
                self.supply[asset_id] += output.amount
        for index, row in enumerate(made):
            self.here[tx.txid, index] = row
        if isinstance(unsigned, ExportTx):
            for index, out in enumerate(unsigned.exported_outputs, len(made)):
                self.left[unsigned.destination_chain, tx.txid, index] = (out.asset_id, out.output)
                self.supply[out.asset_id] -= out.output.amount

    def _made_by(self, operation: Any) -> list[Any]:
        self.kinds[type(operation).__name__] += 1
        if isinstance(operation, MintOperation):
            return [operation.mint_output, operation.transfer_output]
        if isinstance(operation, NftMintOperation):
            return [NftTransferOutput(operation.group_id, operation.payload, owners) for owners in operation.outputs]
        if isinstance(operation, NftTransferOperation):
            return [operation.output]
        if isinstance(operation, PropertyMintOperation):
            return [operation.mint_output, operation.owned_output]
        assert isinstance(operation, PropertyBurnOperation)
        return []

    def held(self) -> Counter[bytes]:
        """How much of each asset there is."""
        total: Counter[bytes] = Counter()
        for asset_id, output in self.here.values():
            if isinstance(output, TransferOutput):
                total[asset_id] += output.amount
        return total


class History:
    def __init__(self, seed: int) -> None:
        self.wallet = Wallet(seed, target=10 * BLOCK_TXS_MAX)
        self.random = random.Random(seed)
        self.state = MemoryState()
        self.ledger = Ledger(self.state)
        self.mempool = Mempool()
        self.signers = Signers()
        self.tip: Block = BLOCK_0
        self.txs = 0

    def accept(self, txs: list[Tx]) -> None:
        """Issues transactions and accepts them: in one block, unless they are too large for one."""
        for tx in txs:
            again = parse_issue(checksum_hex.encode(tx.raw))
            assert again == tx
            issue(again, self.mempool, RULES, self.state, NOW_S, self.signers)
        left = list(txs)
        while left:
            included = self._block()
            assert list(included) == left[: len(included)]
            left = left[len(included) :]
        assert len(self.mempool) == 0
        self.txs += len(txs)
        self.wallet.accepted()
        self.compare_values()

    def _block(self) -> tuple[Tx, ...]:
        built = build(self.mempool, self.tip, RULES, self.state, NOW_S, recover=self.signers)
        assert built.block is not None
        assert not built.dropped
        effects = verify_block(built.block, self.tip, RULES, self.state, NOW_S)
        assert effects == built.effects
        self.state.accept(effects)
        self.mempool.accepted(built.block.txs)
        self.tip = built.block
        for tx in built.block.txs:
            self.ledger.accept(tx)
        self.compare()
        return built.block.txs

    def receive(self) -> None:
        peer_chain_id, utxo = self.wallet.receive()
        self.state.put_atomic(peer_chain_id, utxo)
        self.ledger.arrived[peer_chain_id, utxo.txid, utxo.output_index] = (utxo.asset_id, utxo.output)

    def compare(self) -> None:
        state, ledger = self.state, self.ledger
        utxos = state.utxos.values()
        assert {(utxo.txid, utxo.output_index): (utxo.asset_id, utxo.output) for utxo in utxos} == ledger.here
        arrived = {(peer, utxo.txid, utxo.output_index) for (peer, _), utxo in state.atomic.items()}
        assert arrived == set(ledger.arrived)
        assert len(state.exported) == len(ledger.left)

    def compare_values(self) -> None:
        """Only right once the wallet knows that all it made is accepted."""
        held = self.ledger.held()
        for asset_id, supply in self.ledger.supply.items():
            assert held[asset_id] == supply - self.wallet.burned[asset_id]


def test_state_follows_the_ledger_and_no_value_appears_or_vanishes() -> None:
    history = History(SEED)
    history.accept([history.wallet.fan_out(min(8 * BLOCK_TXS_MAX, 800))])
    while history.txs < CASES:
        for _ in range(history.random.randrange(4)):
            history.receive()
        history.accept([history.wallet.tx() for _ in range(history.random.randint(1, BLOCK_TXS_MAX))])
    assert history.wallet.burned[RULES.fee_asset_id] >= history.txs * RULES.tx_fee
    assert len(history.ledger.kinds) == 10, history.ledger.kinds  # five kinds of transactions, five of operations


def test_a_chain_of_transactions_fits_into_one_block() -> None:
    """Not through the mempool, which looks at the accepted state only; but a block from elsewhere may hold it."""
    history = History(SEED)
    txs = [history.wallet.fan_out(30)]
    for _ in range(min(CASES, 200)):
        history.wallet.accepted()
        txs.append(history.wallet.tx())
    block = pack_block(BLOCK_0.block_id, 1, NOW_S, txs)
    history.state.accept(verify_block(block, BLOCK_0, RULES, history.state, NOW_S))
    for tx in txs:
        history.ledger.accept(tx)
    history.wallet.accepted()
    history.compare()
    history.compare_values()


@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_damaged_transactions_are_refused_and_never_break_anything(seed: int) -> None:
    history = History(seed)
    history.accept([history.wallet.fan_out(60)])
    refused = 0
    for _ in range(min(CASES, 400)):
        raw = bytearray(history.wallet.tx().raw)
        history.wallet.undo()
        raw[history.random.randrange(len(raw))] ^= 1 << history.random.randrange(8)
        try:
            tx = parse_issue(checksum_hex.encode(bytes(raw)))
            issue(tx, Mempool(), RULES, history.state, NOW_S, history.signers)
        except TxRefused:
            refused += 1
    assert refused > 350 * min(CASES, 400) // 400
