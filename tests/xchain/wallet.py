"""Random valid transactions of every kind, endlessly, from a seed.

A wallet keeps its own view of what it may spend, so it works with any store: let it make transactions, have them
accepted, tell it so. It starts from the local network's genesis, whose one rich key it knows.

    wallet = Wallet(seed=1)
    wallet.fan_out()                 # first, by itself in a block
    for _ in range(10):
        tx = wallet.tx()             # issue it
    wallet.accepted()                # once all of them are in blocks
    wallet.receive()                 # put what it returns into the atomic memory, and it will be imported
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any, NamedTuple

from tests.xchain.memory_state import GENESIS, RULES
from tests.xchain.random_parts import CREDENTIALS, Parts

from icefall.wire.avm.codec import genesis_txs, pack_tx, pack_unsigned, unpack_genesis
from icefall.wire.avm.parts import pack_operation, pack_part
from icefall.wire.avm.types import (
    AnyCredential,
    BaseTx,
    CreateAssetTx,
    Credential,
    ExportTx,
    ImportTx,
    InitialState,
    Operation,
    OperationTx,
    Owners,
    TransferableInput,
    TransferableOutput,
    TransferInput,
    TransferOutput,
    Tx,
    Utxo,
    UtxoId,
)
from icefall.wire.avm.utxos import produced
from icefall.wire.ids import PLATFORM_CHAIN, hash256, input_id
from icefall.wire.keys import address_of, private_key_from_text, sign

EWOQ = private_key_from_text("PrivateKey-ewoqjP7PxY4yr3iLTpLisriqt94hdyDFNgchSxGGztUrTXtNN")
PEERS = (PLATFORM_CHAIN, GENESIS.c_chain_id)
NOW_S = 1_800_000_000  # locks before it are open, locks after it are not
MEMO_SIZE_MAX = 256

AVAX = RULES.fee_asset_id


class Peered(NamedTuple):
    """A UTXO that a peer chain has exported to this one."""

    peer_chain_id: bytes
    utxo: Utxo


class Spend(NamedTuple):
    """An input, and the keys that must sign for it."""

    input: TransferableInput
    signers: list[bytes]


class Wallet:
    """`burned` counts, per asset, what its transactions have destroyed: fees, and now and then a surplus. `target` is
    how many outputs it tries to have at hand; a transaction may take eight of them."""

    def __init__(self, seed: int = 1, key_count: int = 12, target: int = 300) -> None:
        self.random = random.Random(seed)
        self.target = target
        self.burned: Counter[bytes] = Counter()
        secrets = [EWOQ, *(sha256(f"{seed}/{index}".encode()).digest() for index in range(key_count))]
        self.secrets = {address_of(secret): secret for secret in secrets}
        self.parts = Parts(self.random, sorted(self.secrets), NOW_S)
        self.transfers: dict[bytes, Utxo] = {}  # what inputs can spend
        self.tokens: dict[bytes, Utxo] = {}  # what only operations can
        self.peered: dict[bytes, Peered] = {}
        self._coming: list[Utxo] = []
        self._taken: dict[bytes, Utxo] = {}
        self._taken_peered: dict[bytes, Peered] = {}
        self._burning: Counter[bytes] = Counter()
        self._serial = 0
        self._coming.extend(utxo for tx in genesis_txs(unpack_genesis(GENESIS.x_genesis)) for utxo in produced(tx))
        self.accepted()

    # -- what the caller does ------------------------------------------------------------------------------------

    def tx(self) -> Tx:
        """A transaction of a random kind, spending only what was accepted."""
        kinds: list[Callable[[], Tx | None]] = [self.base, self.base, self.create_asset, self.operation, self.operation]
        kinds += [self.export, self.import_] if self.peered else [self.export]
        return self.random.choice(kinds)() or self.base()

    def accepted(self) -> None:
        """All transactions made so far are in blocks: what they made may be spent."""
        self._taken.clear()
        self._taken_peered.clear()
        self.burned.update(self._burning)
        self._burning.clear()
        for utxo in self._coming:
            if self._signers(utxo.output.owners) is not None:
                self._put(input_id(utxo.txid, utxo.output_index), utxo)
        self._coming.clear()

    def undo(self) -> None:
        """None of the transactions made since then will be: what they spent may be spent again."""
        for utxo_id, utxo in self._taken.items():
            self._put(utxo_id, utxo)
        self.peered.update(self._taken_peered)
        for pending in (self._taken, self._taken_peered, self._burning, self._coming):
            pending.clear()

    def receive(self, amount: int = 0) -> Peered:
        """A peer chain exports to this one; the caller puts it into the atomic memory."""
        self._serial += 1
        output = TransferOutput(amount or self.parts.amount(10**9), self.parts.owners())
        txid = hash256(b"export" + self._serial.to_bytes(8, "big"))
        peered = Peered(self.random.choice(PEERS), Utxo(txid, self.random.randrange(3), AVAX, output))
        if self._signers(output.owners) is not None:
            self.peered[input_id(txid, peered.utxo.output_index)] = peered
        return peered

    def fan_out(self, count: int = 200) -> Tx:
        """Splits the largest holding, so that many transactions can be made at once."""
        utxo_id, utxo = max(self.transfers.items(), key=lambda row: _amount_of(row[1]))
        share = (_amount_of(utxo) - RULES.tx_fee) // count
        outputs = [self._to_one(AVAX, share) for _ in range(count)]
        return self._finish(BaseTx, [self._spend(utxo_id, utxo)], outputs)

    def send(self) -> Tx:
        """The plainest of all: one input, one key, two outputs."""
        plain = (row for row in self.transfers.items() if row[1].output.owners.threshold == 1)
        utxo_id, utxo = next(row for row in plain if _amount_of(row[1]) > 2 * RULES.tx_fee)
        sent = self.parts.amount(1000)
        change = _amount_of(utxo) - RULES.tx_fee - sent
        outputs = [self._to_one(AVAX, sent), self._to_one(AVAX, change)]
        return self._finish(BaseTx, [self._spend(utxo_id, utxo)], outputs)

    # -- kinds of transactions -----------------------------------------------------------------------------------

    def base(self) -> Tx:
        spends = self._inputs(self.random.randint(1, 4))
        return self._finish(BaseTx, spends, self._outputs(spends))

    def create_asset(self) -> Tx:
        spends = self._inputs(1)
        fxs = sorted(self.random.sample(range(3), self.random.randint(1, 3)))
        states = tuple(InitialState(fx, self.parts.state_outputs(fx)) for fx in fxs)
        name = "Asset " + str(self.random.randrange(1000))
        symbol = "".join(self.random.choices("ABCXYZ", k=self.random.randint(1, 4)))
        return self._finish(CreateAssetTx, spends, self._outputs(spends), name, symbol, 9, states)

    def operation(self) -> Tx | None:
        if not self.tokens:
            return None
        made = []
        count = min(len(self.tokens), self.random.randint(1, 3))
        for utxo_id, utxo in self.random.sample(list(self.tokens.items()), count):
            self._taken[utxo_id] = self.tokens.pop(utxo_id)
            signers = self._signers(utxo.output.owners) or []
            indices = tuple(range(len(signers)))
            done = self.parts.operation_on(utxo.output, indices)
            made.append((Operation(utxo.asset_id, (UtxoId(utxo.txid, utxo.output_index),), done), signers))
        made.sort(key=lambda row: pack_operation(row[0]))
        spends = self._inputs(1)
        operations = tuple(operation for operation, _ in made)
        unlock = [(CREDENTIALS[type(operation.operation)], signers) for operation, signers in made]
        return self._finish(OperationTx, spends, self._outputs(spends), operations, unlock=unlock)

    def import_(self) -> Tx:
        source = self.random.choice(sorted({row.peer_chain_id for row in self.peered.values()}))
        found = [row for row in self.peered.items() if row[1].peer_chain_id == source][: self.random.randint(1, 3)]
        imported = sorted((self._spend(utxo_id, row.utxo) for utxo_id, row in found), key=_input_order)
        spends = self._inputs(self.random.randint(1, 2))
        fields = (source, tuple(spend.input for spend in imported))
        unlock = [(Credential, spend.signers) for spend in imported]
        return self._finish(ImportTx, spends, self._outputs([*spends, *imported]), *fields, unlock=unlock)

    def export(self) -> Tx:
        """Sends away anything but the greatest amount, which would soon leave nothing here."""
        spends = self._inputs(self.random.randint(1, 3))
        outputs = sorted(self._outputs(spends), key=lambda row: row.output.amount)
        away = self.random.randrange(len(outputs))
        largest = outputs.pop()
        rest = TransferOutput(largest.output.amount - 1, largest.output.owners)
        exported = [*outputs[:away], self._to_one(largest.asset_id, 1)]
        kept = [*outputs[away:], TransferableOutput(largest.asset_id, rest)]
        destination = self.random.choice(PEERS)
        return self._finish(ExportTx, spends, kept, destination, tuple(sorted(exported, key=_output_order)))

    # -- parts ---------------------------------------------------------------------------------------------------

    def _to_one(self, asset_id: bytes, amount: int) -> TransferableOutput:
        owners = Owners(0, 1, (self.random.choice(self.parts.addresses),))
        return TransferableOutput(asset_id, TransferOutput(amount, owners))

    def _put(self, utxo_id: bytes, utxo: Utxo) -> None:
        of = self.transfers if isinstance(utxo.output, TransferOutput) else self.tokens
        of[utxo_id] = utxo

    def _signers(self, owners: Owners) -> list[bytes] | None:
        """The keys that unlock what these owners hold; None if it cannot be unlocked now."""
        if owners.locktime > NOW_S or not all(address in self.secrets for address in owners.addresses):
            return None
        return [self.secrets[address] for address in owners.addresses[: owners.threshold]]

    def _spend(self, utxo_id: bytes, utxo: Utxo) -> Spend:
        if utxo_id in self.peered:
            self._taken_peered[utxo_id] = self.peered.pop(utxo_id)
        else:
            self._taken[utxo_id] = self.transfers.pop(utxo_id)
        output = utxo.output
        assert isinstance(output, TransferOutput)
        signers = self._signers(output.owners) or []
        given = TransferInput(output.amount, tuple(range(len(signers))))
        return Spend(TransferableInput(utxo.txid, utxo.output_index, utxo.asset_id, given), signers)

    def _inputs(self, count: int) -> list[Spend]:
        """What pays the fee, and perhaps some more of anything."""
        found = list(self.transfers.items())
        draws = (self.random.choice(found) for _ in range(10_000))
        first = next((row for row in draws if _amount_of(row[1]) > 3 * RULES.tx_fee), None)
        assert first, "nothing left that pays a fee: call fan_out() first, and accepted() more often"
        count += 0 if len(found) < self.target else 2
        others = self.random.sample(found, min(len(found), count))
        chosen = dict([first, *others[1:]])
        spends = [self._spend(utxo_id, utxo) for utxo_id, utxo in chosen.items()]
        return sorted(spends, key=_input_order)

    def _outputs(self, spends: Iterable[Spend]) -> list[TransferableOutput]:
        """All that the inputs hold less the fee, in random shares. Now and then a share is left to burn."""
        held: Counter[bytes] = Counter({AVAX: -RULES.tx_fee})
        for spend in spends:
            held[spend.input.asset_id] += spend.input.input.amount
        outputs = []
        for asset_id, amount in held.items():
            rest = amount
            while rest and self.random.random() < 0.5:
                share = self.parts.amount(min(rest, 10**9))
                rest -= share
                if self.random.random() > 0.05:
                    outputs.append(TransferableOutput(asset_id, TransferOutput(share, self.parts.owners())))
            parts = 2 if len(self.transfers) < self.target and rest > 10**9 else 1
            outputs += [self._to_one(asset_id, rest // parts)] * parts if rest else []
        return sorted(outputs, key=_output_order)

    def _finish(
        self,
        kind: Callable[..., BaseTx],
        spends: list[Spend],
        outputs: list[TransferableOutput],
        *fields: Any,
        unlock: Iterable[tuple[type[AnyCredential], list[bytes]]] = (),
    ) -> Tx:
        """Signs; `unlock` is what follows the credentials of the inputs."""
        memo = self.random.randbytes(self.random.choice((0, 0, 0, 20, MEMO_SIZE_MAX)))
        inputs = tuple(spend.input for spend in spends)
        ordered = tuple(sorted(outputs, key=_output_order))
        unsigned = kind(RULES.network_id, RULES.chain_id, ordered, inputs, memo, *fields)
        digest = hash256(pack_unsigned(unsigned))
        locks: list[tuple[type[AnyCredential], list[bytes]]] = [(Credential, spend.signers) for spend in spends]
        tx = pack_tx(unsigned, [fx(tuple(sign(key, digest) for key in signers)) for fx, signers in (*locks, *unlock)])
        self._coming.extend(produced(tx))
        self._count_burned(unsigned)
        return tx

    def _count_burned(self, unsigned: BaseTx) -> None:
        for spent in (*unsigned.inputs, *getattr(unsigned, "imported_inputs", ())):
            self._burning[spent.asset_id] += spent.input.amount
        for made in (*unsigned.outputs, *getattr(unsigned, "exported_outputs", ())):
            self._burning[made.asset_id] -= made.output.amount


def _amount_of(utxo: Utxo) -> int:
    """How much of the fee asset it is."""
    return utxo.output.amount if isinstance(utxo.output, TransferOutput) and utxo.asset_id == AVAX else 0


def _input_order(spend: Spend) -> tuple[bytes, int]:
    return spend.input.txid, spend.input.output_index


def _output_order(row: TransferableOutput) -> tuple[bytes, bytes]:
    return row.asset_id, pack_part(row.output)
