"""Every field of every transaction and output of random P-Chains, against the naive reading that recordings have.

ICEFALL_FUZZ_SEEDS chains are drawn, from ICEFALL_FUZZ_SEED on.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.networks_naive import Made as Exported
from tests.api.platform_naive import NaivePlatform, PlatformHistory
from tests.api.test_networks_platform import by_asset
from tests.pchain.drawn_foreign import NEVER_SEEN
from tests.pchain.drawn_network import SEED, SEEDS, DrawnNetwork, P, text

from icefall.wire.ids import id_from_text, id_text, input_id
from icefall.wire.pvm.types import PlatformImportTx


class DrawnPlatform(NaivePlatform):
    """The same reading of a drawn chain, whose assets have no names but AVAX."""

    def __init__(self, drawn: DrawnNetwork) -> None:
        assert isinstance(drawn.naive, PlatformHistory)
        self.hrp, self.history, self.txs = "custom", drawn.naive, drawn.txs
        self.avax = drawn.naive.rules.avax_asset_id
        self.shared: Any = drawn.foreign
        self.names = defaultdict(lambda: ("", "", 0), {id_text(self.avax): ("Avalanche", "AVAX", 9)})
        self.kinds = self._reward_types()

    def foreign(self, made: Exported) -> dict[str, Any]:
        """An output whose export was not seen has no owners, because its signatures are of no keys."""
        if made.time != NEVER_SEEN:
            return super().foreign(made)
        return {
            "addresses": [],
            "utxoId": id_text(input_id(id_from_text(made.txid), made.index)),
            "txHash": made.txid,
            "outputIndex": made.index,
            "amount": str(made.amount),
            "assetId": made.asset,
            "asset": self.asset(made.asset, made.amount),
            "blockNumber": "0",
            "blockTimestamp": 0,
            "createdOnChainId": made.source,
            "consumedOnChainId": made.destination,
            "staked": False,
            "utxoType": "TRANSFER",
            **self._spent_elsewhere(made),
        }


@pytest.fixture(scope="module", params=range(SEED, SEED + SEEDS))
def drawn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DrawnNetwork]:
    network = DrawnNetwork(tmp_path_factory.mktemp("drawn"), request.param, PlatformHistory, shared=True)
    yield network
    network.close()


@pytest.fixture(scope="module")
def naive(drawn: DrawnNetwork) -> DrawnPlatform:
    return DrawnPlatform(drawn)


def test_every_field_of_every_transaction(drawn: DrawnNetwork, naive: DrawnPlatform) -> None:
    shown = drawn.walked(f"{P}/transactions?sortOrder=asc&", "transactions", 70)
    last = {
        tx.txid: row for row in naive.txs for tx in row[:1]
    }  # an advance of time that is proposed again counts once
    expected = [row for row in naive.txs if last[row[0].txid] is row]
    found = [one for one in shown if int(one["blockNumber"])]
    assert [one["txHash"] for one in found] == [id_text(tx.txid) for tx, *_ in expected]
    for one, row in zip(found, expected, strict=True):
        assert by_asset(one) == naive.tx(*row)
    imports = [tx.unsigned for tx, *_ in naive.txs if isinstance(tx.unsigned, PlatformImportTx)]
    assert imports


def test_outputs_that_chains_share(drawn: DrawnNetwork, naive: DrawnPlatform) -> None:
    """Outputs of an address are those of P and what others have exported to it, imported or not."""
    shared = [one for one in drawn.foreign.outputs.values() if one.destination == naive.shared.p]
    seen = [one for one in shared if one.time != NEVER_SEEN]
    for address in sorted({address for one in seen for address in one.owners}):
        expected = [naive.foreign(one) for one in seen if address in one.owners]
        shown = drawn.walked(f"{P}/utxos?addresses={text(address)}&includeSpent=true&", "utxos", 60)
        found = {one["utxoId"]: one for one in shown if one["createdOnChainId"] != naive.shared.p}
        for one in found.values():
            assert one.pop("utxoBytes").startswith("0x")
        assert found == {one["utxoId"]: one for one in expected}
        txs = drawn.walked(f"{P}/transactions?addresses={text(address)}&txTypes=ImportTx&", "transactions", 60)
        imported = {one.spent_by for one in seen if address in one.owners}
        assert imported <= {one["txHash"] for one in txs}
