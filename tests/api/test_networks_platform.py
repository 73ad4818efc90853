"""Every field of P transactions and outputs on recorded networks, against a second reading of the containers."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.networks_scene import NetworkScene, network_scene
from tests.api.platform_naive import PRIMARY, NaivePlatform, genesis_shown
from tests.api.test_networks import RICH, walked

from icefall.wire.ids import id_text
from icefall.wire.pvm import types as t
from icefall.wire.text import bech32

P = "/blockchains/p-chain"
HRPS = {"p-forks-1": "custom", "p-local-1": "local"}
AMOUNTS = ("value", "amountBurned", "amountStaked", "amountL1ValidatorBalanceBurned")


@pytest.fixture(scope="module", params=list(RICH))
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkScene]:
    with network_scene(request.param, tmp_path_factory.mktemp("network")) as found:
        yield found


@pytest.fixture(scope="module")
def naive(scene: NetworkScene) -> NaivePlatform:
    return NaivePlatform(scene.playback, HRPS[scene.playback.recording])


def by_asset(tx: dict[str, Any]) -> dict[str, Any]:
    """A transaction with its amounts by asset, since they have no order."""
    for key in AMOUNTS:
        assert len({one["assetId"] for one in tx[key]}) == len(tx[key])
    return tx | {key: {one["assetId"]: one for one in tx[key]} for key in AMOUNTS}


def test_every_field_of_every_transaction(scene: NetworkScene, naive: NaivePlatform) -> None:
    shown = walked(scene, f"{P}/transactions?sortOrder=asc", "transactions", 30)
    assert [one["txHash"] for one in shown] == [id_text(tx.txid) for tx, *_ in naive.txs]
    for one, row in zip(shown, naive.txs, strict=True):
        expected = naive.tx(*row)
        assert by_asset(one) == expected
        body: Any = row[0].unsigned
        if isinstance(body, t.CreateChainTx):
            expected["blockchainInfo"]["genesisData"] = genesis_shown(body.genesis)
        assert by_asset(scene.result(f"{P}/transactions/{one['txHash']}")) == expected


def test_every_field_of_every_output(scene: NetworkScene, naive: NaivePlatform) -> None:
    foreign = [one for one in naive.shared.outputs.values() if one.destination == naive.shared.p != one.source]
    owners = {address for made in naive.history.made.values() for address in made.inner.owners.addresses}
    compared = 0
    for address in sorted(owners.union(*(one.owners for one in foreign))):
        rows = [made for made in naive.history.owned(address) if made.inner.owners.threshold == 1]
        expected = [naive.utxo(made) for made in rows]
        expected += [naive.foreign(one) for one in foreign if address in one.owners and one.threshold == 1]
        text = bech32.encode(naive.hrp, address)
        shown = walked(scene, f"{P}/utxos?addresses={text}&includeSpent=true", "utxos", 40)
        for one in shown:
            assert one.pop("utxoBytes").startswith("0x")
        times = [one["blockTimestamp"] for one in shown]
        assert times == sorted(times, reverse=True)
        assert {one["utxoId"]: one for one in shown} == {one["utxoId"]: one for one in expected}
        assert len(shown) == len(expected)
        left = walked(scene, f"{P}/utxos?addresses={text}", "utxos", 40)
        assert {one["utxoId"] for one in left} == {one["utxoId"] for one in expected if "consumingTxHash" not in one}
        compared += len(expected)
    assert compared > 100
    assert PRIMARY not in {made.utxo.asset_id for made in naive.history.made.values()}


def test_the_last_activity_is_the_newest_output_made_or_consumed(scene: NetworkScene, naive: NaivePlatform) -> None:
    """A promised reward or a stake that is given back is none."""
    events: dict[bytes, list[int]] = {}
    for made in naive.history.made.values():
        for address in made.inner.owners.addresses:
            events.setdefault(address, []).append(made.time)
            if made.spent is not None:
                events[address].append(made.spent[1])
    for one in naive.shared.outputs.values():
        if one.destination == naive.shared.p != one.source and one.spent_time is not None:
            for address in one.owners:
                events.setdefault(address, []).append(one.spent_time)
    for address, times in events.items():
        text = bech32.encode(naive.hrp, address)
        shown = scene.result(f"{P}/lastActivityTimestampByAddresses?addresses={text}")
        assert shown["timestamp"] == max(times)
        tx = scene.result(f"{P}/transactions/{shown['txHash']}") if int(shown["blockNumber"]) else None
        if tx is not None:
            key = "consumedUtxos" if shown["isConsumed"] else "emittedUtxos"
            (utxo,) = [one for one in tx[key] if one["utxoId"] == shown["utxoId"]]
            assert text in utxo["addresses"]
    payees = {
        text for tx in walked(scene, f"{P}/transactions", "transactions") for text in tx.get("rewardAddresses", ())
    }
    without = payees - {bech32.encode(naive.hrp, address) for address in events}
    for text in without:
        assert scene.get(f"/v1/networks/fuji{P}/lastActivityTimestampByAddresses?addresses={text}")[0] == 404
