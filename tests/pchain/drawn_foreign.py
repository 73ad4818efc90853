"""Outputs that X and C are said to have exported to a drawn P-Chain: known before it imports them, after, or never."""

import random
from collections.abc import Iterable

from tests.api.networks_naive import Made, Moved
from tests.pchain.drawing import ADDRESSES

from icefall.wire.avm.types import Owners, TransferInput, TransferOutput
from icefall.wire.ids import PLATFORM_CHAIN, id_text, input_id
from icefall.wire.pvm import types as t
from icefall.wire.pvm.codec import pack_utxo
from icefall.xchain.outputs import NewOutput

NEVER_SEEN = -1  # stands for the time of an output whose export was not seen
_EARLIER_S_MAX = 40


class ForeignOutputs:
    """`outputs` and `txs` are what a naive reading of X and C would have; `early` and `late` are to be stored before
    and after the blocks of P. Not `seen`: all are never known."""

    def __init__(self, seed: int, *, seen: bool) -> None:
        self._source = random.Random(seed)
        self._chances = ("early", "late", "never") if seen else ("never",)
        self.p = id_text(PLATFORM_CHAIN)
        self.outputs: dict[tuple[str, int], Made] = {}
        self.txs: list[Moved] = []
        self.early: list[NewOutput] = []
        self.late: list[NewOutput] = []

    def note(self, txs: Iterable[t.PlatformTx], time: int) -> None:
        """Draw the exports of what transactions import, and note what they export."""
        for tx in txs:
            body = tx.unsigned
            if isinstance(body, t.PlatformImportTx):
                for one in body.imported_inputs:
                    self._exported(tx, one, body.source_chain, time)
            elif isinstance(body, t.PlatformExportTx):
                for index, out in enumerate(body.exported_outputs, len(body.outputs)):
                    assert isinstance(out.output, TransferOutput)
                    self._note(tx.txid, index, out.asset_id, out.output, PLATFORM_CHAIN, body.destination_chain, time)

    def _note(
        self, txid: bytes, index: int, asset: bytes, output: TransferOutput, source: bytes, to: bytes, time: int
    ) -> Made:
        owners = output.owners
        own = owners.addresses, owners.threshold, owners.locktime
        made = Made(id_text(txid), index, id_text(asset), output.amount, *own, id_text(source), id_text(to), time)
        self.outputs[made.txid, index] = made
        return made

    def _exported(self, tx: t.PlatformTx, given: t.PlatformInput, chain: bytes, time: int) -> None:
        source = self._source
        assert isinstance(given.input, TransferInput)
        addresses = tuple(sorted(source.sample(ADDRESSES, source.choice((1, 1, 3)))))
        output = TransferOutput(given.input.amount, Owners(0, 1, addresses))
        when = source.choice(self._chances)
        made_at = NEVER_SEEN if when == "never" else time - source.randint(0, _EARLIER_S_MAX)
        at = given.txid, given.output_index, given.asset_id
        made = self._note(*at, output, chain, PLATFORM_CHAIN, made_at)
        made.spent_by, made.spent_time = id_text(tx.txid), time
        if when == "never":
            return
        height = source.randint(1, 10**6)
        self.txs.append(Moved("X", made.txid, "ExportTx", height, made_at, "", [], [made], [], tx))
        raw = pack_utxo(t.PlatformUtxo(*at, output))
        row = NewOutput(input_id(*at[:2]), chain, PLATFORM_CHAIN, raw, height, made_at)
        (self.early if when == "early" else self.late).append(row)
