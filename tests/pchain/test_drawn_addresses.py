"""Transactions and outputs of random P-Chains by address and time: each list is exactly what the rows themselves show.

ICEFALL_FUZZ_SEEDS chains are drawn, from ICEFALL_FUZZ_SEED on; so are the addresses and the times.
"""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.pchain.drawing import ADDRESSES
from tests.pchain.drawn_network import SEED, SEEDS, DrawnNetwork, P, text

from icefall.primary.exported import SQL as EXPORTED
from icefall.wire.ids import id_text

TRIES = 12
OF_TX_ONLY = {"rewardType", "staked"}  # in a transaction a stake is one for ever


@pytest.fixture(scope="module", params=range(SEED, SEED + SEEDS))
def drawn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DrawnNetwork]:
    network = DrawnNetwork(tmp_path_factory.mktemp("drawn"), request.param)
    yield network
    network.close()


@pytest.fixture(scope="module")
def whole(drawn: DrawnNetwork) -> list[Any]:
    """Every transaction, newest first."""
    return drawn.walked(f"{P}/transactions?", "transactions", 100)


def addresses_of(tx: dict[str, Any]) -> set[str]:
    utxos = (*tx["consumedUtxos"], *tx["emittedUtxos"])
    return {*(one for utxo in utxos for one in utxo["addresses"]), *tx.get("rewardAddresses", ())}


def some(source: random.Random) -> set[str]:
    return {text(one) for one in source.sample(sorted(ADDRESSES), source.randint(1, 3))}


def test_transactions_by_address_type_and_time(drawn: DrawnNetwork, whole: list[Any]) -> None:
    source = random.Random(SEED)
    times = sorted({one["blockTimestamp"] for one in whole})
    kinds = sorted({one["txType"] for one in whole})
    found = 0
    for _ in range(TRIES):
        wanted = some(source)
        start, end = sorted(source.choice(times) + source.randint(-1, 1) for _ in range(2))
        types = source.sample(kinds, source.randint(1, len(kinds)))
        expected = [
            one
            for one in whole
            if addresses_of(one) & wanted and start <= one["blockTimestamp"] <= end and one["txType"] in types
        ]
        target = f"{P}/transactions?addresses={','.join(sorted(wanted))}&startTimestamp={start}&endTimestamp={end}&"
        target += "".join(f"txTypes={one}&" for one in types)
        assert drawn.walked(target, "transactions", source.randint(1, 20)) == expected
        assert drawn.walked(f"{target}sortOrder=asc&", "transactions", 100) == expected[::-1]
        found += len(expected)
    assert found > TRIES


def test_numbers_of_transactions_rise_with_their_blocks(drawn: DrawnNetwork) -> None:
    """An advance of time that is proposed again leaves a number without a transaction."""
    rows = drawn.store.read("select seq, height from p_tx order by seq")
    heights = [height for _, height in rows]
    assert heights == sorted(heights)
    for seq in range(rows[-1][0] + 1):
        ((found,),) = drawn.store.read(EXPORTED.p_tx_height, {"seq": seq})
        assert found == next(height for at, height in rows if at >= seq)


def test_stakes_of_addresses(drawn: DrawnNetwork) -> None:
    active = drawn.walked(f"{P}/transactions:listStaking?", "transactions", 100)
    for address in map(text, ADDRESSES):
        mine = [
            one
            for one in active
            if address in one.get("rewardAddresses", ())
            or any(utxo["staked"] and address in utxo["addresses"] for utxo in one["emittedUtxos"])
        ]
        target = f"{P}/transactions:listStaking?addresses=P-{address}&"
        assert drawn.walked(target, "transactions", 3) == mine
    assert active


def test_outputs_of_several_addresses(drawn: DrawnNetwork, whole: list[Any]) -> None:
    """An output is listed for addresses that together can spend it, and as the transactions show it."""
    source = random.Random(SEED)
    in_txs = {utxo["utxoId"]: utxo for tx in whole for utxo in tx["emittedUtxos"]}
    every = {id_text(one.utxo_id): one for one in drawn.naive.made.values()}
    for _ in range(TRIES):
        wanted = some(source)
        can_spend = {
            name
            for name, one in every.items()
            if len(wanted.intersection(map(text, one.inner.owners.addresses))) >= one.inner.owners.threshold
        }
        for spent in ("true", "false"):
            base = f"{P}/utxos?addresses={','.join(sorted(wanted))}&includeSpent={spent}&"
            shown = drawn.walked(base, "utxos", source.randint(1, 30))
            names = [one["utxoId"] for one in shown]
            assert len(names) == len(set(names))
            assert set(names) == {name for name in can_spend if spent == "true" or every[name].spent is None}
            assert drawn.walked(f"{base}sortOrder=asc&", "utxos", 50) == shown[::-1]
            for one in shown:
                of_tx = in_txs.get(one["utxoId"])
                if of_tx is not None:
                    plain = {key: value for key, value in one.items() if key not in OF_TX_ONLY | {"utxoBytes"}}
                    assert plain == {key: value for key, value in of_tx.items() if key not in OF_TX_ONLY}
    assert in_txs.keys() <= every.keys()
