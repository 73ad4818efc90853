"""The supply of AVAX on recorded networks, against a naive second reading of their containers and of C's receipts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.networks_naive import NaiveNetwork as NaiveMoves
from tests.api.networks_scene import NetworkScene, asked, network_scene, networks_app
from tests.api.staking_naive import PRIMARY, NaiveNetwork
from tests.api.test_networks import walked
from tests.evm.recordings import derived
from tests.metrics.naive import seen
from tests.metrics.scene import Scene
from tests.metrics.service import info
from tests.wire.platform_vectors import p_rows

from icefall.api.networks.network import Networks
from icefall.evm.reading.directory import EvmChain
from icefall.wire.ids import id_text

PATH = "/v1/avax/supply"
NAVAX = 10**9  # wei


@pytest.fixture(scope="module", params=["p-forks-1", "p-local-1"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkScene]:
    with network_scene(request.param, tmp_path_factory.mktemp("network")) as found:
        yield found


@pytest.fixture(scope="module")
def naive(scene: NetworkScene) -> NaiveNetwork:
    return NaiveNetwork(scene.playback)


@pytest.fixture(scope="module")
def moves(scene: NetworkScene) -> NaiveMoves:
    return NaiveMoves(scene.playback.recording)


def exact(text: str) -> int:
    """AVAX as wei."""
    whole, _, part = text.partition(".")
    assert not part.endswith("0")
    return int(whole) * 10**18 + int(part.ljust(18, "0"))


def burned(moves: NaiveMoves, chain: str) -> int:
    """What transactions consumed and did not make, in nAVAX; those of the genesis made what there was before."""
    avax, total = id_text(moves.network.genesis.avax_asset_id), 0
    for one in moves.of_chain(chain):
        if chain == "X" and one.height == 0:
            continue
        total += sum(output.amount for output in one.consumed if output.asset == avax)
        total -= sum(output.amount for output in one.made if output.asset == avax)
        sign = -1 if one.kind == "ImportTx" else 1
        total += sign * sum(amount for _, amount, asset in one.accounts if asset == avax)
    return total


def test_every_amount(scene: NetworkScene, naive: NaiveNetwork, moves: NaiveMoves) -> None:
    status, shown = scene.get(PATH)
    assert status == 200
    rewards = sum(one.amount for one in naive.paid if one.asset == naive.avax)
    staked = sum(one.weight for kind in (True, False) for one in naive.current(PRIMARY, delegators=kind))
    lost, on_x = sum_of_lost_balances(scene, naive), burned(moves, "X")
    assert on_x > 0
    assert "totalCBurned" not in shown  # no EVM chain is indexed here
    assert {name: exact(shown[name]) for name in shown if name not in ("lastUpdated", "circulatingSupply")} == {
        name: amount * NAVAX
        for name, amount in (
            ("genesisUnlock", naive.initial_supply),
            ("totalRewards", rewards),
            ("totalStaked", staked),
            ("totalLocked", exact(shown["totalLocked"]) // NAVAX),
            ("l1ValidatorFees", lost),
            ("totalPBurned", naive.burned + lost),
            ("totalXBurned", on_x),
            ("totalSupply", naive.initial_supply + rewards - naive.burned - lost - on_x),
        )
    }
    assert exact(shown["circulatingSupply"]) == exact(shown["totalSupply"]) - exact(shown["totalLocked"])
    last = p_rows(scene.playback.recording, "final")
    supply = next(
        int(row["response"]["result"]["supply"])
        for row in last
        if row["method"] == "platform.getCurrentSupply" and row["params"] == {}
    )
    assert naive.supply[PRIMARY] == supply


def sum_of_lost_balances(scene: NetworkScene, naive: NaiveNetwork) -> int:
    """What was paid into balances of L1 validators, and neither is there nor was paid back."""
    txs = walked(scene, "/blockchains/p-chain/transactions", "transactions")
    paid = sum(int(amount["amount"]) for tx in txs for amount in tx["amountL1ValidatorBalanceBurned"])
    refunds = 0
    for tx in txs:
        if tx["txType"] in ("SetL1ValidatorWeightTx", "DisableL1ValidatorTx"):
            inputs = sum(int(one["amount"]) for one in tx["consumedUtxos"])
            burnt = sum(int(one["amount"]) for one in tx["amountBurned"])
            refunds += sum(int(one["amount"]) for one in tx["emittedUtxos"]) - (inputs - burnt)
    return paid - refunds - sum(one.balance for one in naive.l1.values())


@pytest.mark.parametrize("first", [1, 2])
def test_c_where_it_is_indexed_from_its_first_block_on(
    first: int, scene: NetworkScene, moves: NaiveMoves, tmp_path: Path
) -> None:
    chain = derived("cchain-1")
    indexed = Scene(tmp_path / "c.sqlite")
    indexed.put([one.rows for one in chain if first == 1 or one.rows.block.number >= first])
    of = info("43112", blockchain_id=id_text(moves.network.genesis.c_chain_id))
    app = networks_app(Networks(scene.network), chains=[EvmChain(of, indexed.file)])
    status, shown = scene.run(asked(app, PATH))
    without: dict[str, Any] = scene.get(PATH)[1]
    indexed.close()
    assert status == 200
    if first > 1:
        assert shown == without
        return
    on_c = sum(one.fees for one in seen(chain)) + burned(moves, "C") * NAVAX
    assert exact(shown["totalCBurned"]) == on_c
    for name in ("totalSupply", "circulatingSupply"):
        assert exact(shown[name]) == exact(without[name]) - on_c


def test_what_an_older_release_listed_without_its_fees_is_not_guessed(tmp_path: Path) -> None:
    with network_scene("p-local-1", tmp_path) as scene:
        store = scene.playback.store
        scene.run(store.write(lambda tx: tx.run("update listed set burned = null")))
        status, shown = scene.get(PATH)
        assert status == 200
        assert "totalXBurned" not in shown
        assert exact(shown["totalSupply"]) == exact(shown["genesisUnlock"]) + exact(shown["totalRewards"]) - exact(
            shown["totalPBurned"]
        )
