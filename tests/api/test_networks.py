"""The primary network interface on recorded networks: against their containers, and what the recorded node said."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.networks_naive import NaiveNetwork
from tests.api.networks_scene import NOW, NetworkScene, asked, network_scene, networks_app, observed
from tests.pchain.recorded import recorded_containers
from tests.wire.platform_vectors import p_rows

from icefall.api.networks.handlers import transactions
from icefall.api.networks.network import Networks
from icefall.api.networks.params import ADDRESSES_MAX
from icefall.compose.served_network import accepted_names, public_name
from icefall.pchain.observed import SHOWN_S, ObservedNode
from icefall.wire.container.platform import block_in_container
from icefall.wire.container.proposer import unpack_container
from icefall.wire.errors import WireError
from icefall.wire.ids import PRIMARY_NETWORK, id_text, node_id_from_text
from icefall.wire.pvm import types as t
from icefall.wire.pvm.codec import unpack_block

P = "/blockchains/p-chain"
RICH = {
    "p-forks-1": "custom18jma8ppw3nhx5r4ap8clazz0dps7rv5u9xde7p",
    "p-local-1": "local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u",
}


@pytest.fixture(scope="module", params=list(RICH))
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkScene]:
    with network_scene(request.param, tmp_path_factory.mktemp("network")) as found:
        yield found


def walked(scene: NetworkScene, target: str, key: str, size: int = 100) -> list[Any]:
    """All pages of a list."""
    found: list[Any] = []
    token, sign = "", "&" if "?" in target else "?"
    while True:
        page = scene.result(f"{target}{sign}pageSize={size}{token and f'&pageToken={token}'}")
        assert len(page[key]) <= size
        found += page[key]
        token = page.get("nextPageToken", "")
        if not token:
            return found


def recorded_blocks(scene: NetworkScene) -> list[tuple[bytes, t.PlatformBlock]]:
    """Every recorded container of P with its block."""
    raws = [one.fetched.raw for one in recorded_containers(scene.playback.recording) if one.chain == "P"]
    return [(raw, unpack_block(block_in_container(raw))) for raw in raws]


def txs_in(block: t.PlatformBlock) -> list[t.PlatformTx]:
    return [*block.txs, *([block.proposal] if block.proposal is not None else [])]


def test_blocks_are_those_of_the_containers(scene: NetworkScene) -> None:
    shown = {one["blockNumber"]: one for one in walked(scene, f"{P}/blocks", "blocks", 9)}
    blocks = recorded_blocks(scene)
    assert list(shown) == [str(height) for height in range(len(blocks), -1, -1)]
    for raw, block in blocks:
        one = shown[str(block.height)]
        assert (one["blockHash"], one["parentHash"]) == (id_text(block.block_id), id_text(block.parent_id))
        assert one["transactions"] == [id_text(tx.txid) for tx in txs_in(block)]
        assert (one["txCount"], one["blockSizeBytes"]) == (len(one["transactions"]), len(block.raw))
        assert block.time in (None, one["blockTimestamp"])
        assert one["blockType"].lower() == block.block_type.name.replace("_", "").lower() + "block"
        try:
            container = unpack_container(raw)
        except WireError:
            assert "proposerDetails" not in one
        else:
            assert one["proposerDetails"]["proposerId"] == id_text(container.container_id)
            assert one["proposerDetails"].get("proposerTimestamp", 0) == container.timestamp
        for name in (one["blockNumber"], one["blockHash"]):
            assert scene.result(f"{P}/blocks/{name}") == one


def naive_burned(tx: t.PlatformTx) -> dict[str, str]:
    """What a transaction's own bytes say that it burns."""
    unsigned: Any = tx.unsigned
    left: Counter[str] = Counter()
    if not isinstance(unsigned, t.PlatformBaseTx):
        return {}
    for one in (*unsigned.inputs, *getattr(unsigned, "imported_inputs", ())):
        left[id_text(one.asset_id)] += getattr(one.input, "input", one.input).amount
    stake = getattr(unsigned, "stake", ())
    for out in (*unsigned.outputs, *getattr(unsigned, "exported_outputs", ()), *stake):
        left[id_text(out.asset_id)] -= getattr(out.output, "output", out.output).amount
    paid = sum(one.balance for one in unsigned.validators) if isinstance(unsigned, t.ConvertSubnetToL1Tx) else 0
    paid += getattr(unsigned, "balance", 0)
    if paid:
        left[id_text(unsigned.inputs[0].asset_id)] -= paid
    return {asset: str(amount) for asset, amount in left.items() if amount}


def test_imported_outputs_have_the_block_that_exported_them(scene: NetworkScene) -> None:
    naive = NaiveNetwork(scene.playback.recording)
    exported = {
        (one.txid, one.index): (str(tx.height), tx.time, scene.network.addresses(one.owners))
        for tx in naive.txs
        for one in tx.made
        if one.destination == naive.p != one.source
    }
    assert exported
    seen = 0
    for tx in walked(scene, f"{P}/transactions?txTypes=ImportTx", "transactions", 5):
        for one in tx["consumedUtxos"]:
            if one["createdOnChainId"] != naive.p:
                shown = one["blockNumber"], one["blockTimestamp"], one["addresses"]
                assert shown == exported[one["txHash"], one["outputIndex"]]
                seen += 1
    assert seen


def by_asset(amounts: list[Any]) -> dict[str, str]:
    return {one["assetId"]: one["amount"] for one in amounts}


def test_transactions_are_those_of_the_blocks(scene: NetworkScene) -> None:
    shown = {one["txHash"]: one for one in walked(scene, f"{P}/transactions", "transactions", 13)}
    recorded = [(block, tx) for _, block in recorded_blocks(scene) for tx in txs_in(block)]
    assert {id_text(tx.txid) for _, tx in recorded} == {key for key, one in shown.items() if one["blockNumber"] != "0"}
    for block, tx in recorded:
        one, unsigned = shown[id_text(tx.txid)], tx.unsigned
        assert (one["blockNumber"], one["blockHash"]) == (str(block.height), id_text(block.block_id))
        assert one["txType"] == type(unsigned).__name__.replace("Platform", "")
        assert by_asset(one["amountBurned"]) == naive_burned(tx)
        if not isinstance(unsigned, t.PlatformBaseTx):
            continue
        inputs = (*unsigned.inputs, *getattr(unsigned, "imported_inputs", ()))
        assert [(utxo["txHash"], utxo["outputIndex"]) for utxo in one["consumedUtxos"]] == [
            (id_text(given.txid), given.output_index) for given in inputs
        ]
        assert all(utxo["consumingTxHash"] == one["txHash"] and utxo["addresses"] for utxo in one["consumedUtxos"])
        outputs = (*unsigned.outputs, *getattr(unsigned, "exported_outputs", ()), *getattr(unsigned, "stake", ()))
        amounts = [str(getattr(out.output, "output", out.output).amount) for out in outputs]
        assert [utxo["amount"] for utxo in one["emittedUtxos"]][: len(amounts)] == amounts
        refund = one["txType"] in ("SetL1ValidatorWeightTx", "DisableL1ValidatorTx")
        assert len(one["emittedUtxos"]) <= len(amounts) + refund
        assert {utxo["outputIndex"] for utxo in one["emittedUtxos"]} == set(range(len(one["emittedUtxos"])))
        assert scene.result(f"{P}/transactions/{one['txHash']}")["value"] == one["value"]
    rewarded = {one["stakingTxHash"]: key for key, one in shown.items() if "stakingTxHash" in one}
    assert rewarded == {key: one["rewardTxHash"] for key, one in shown.items() if "rewardTxHash" in one}
    assert rewarded


def test_pages_filters_and_orders_agree(scene: NetworkScene) -> None:
    whole = walked(scene, f"{P}/transactions", "transactions")
    assert walked(scene, f"{P}/transactions?sortOrder=asc", "transactions", 7) == whole[::-1]
    times = sorted({one["blockTimestamp"] for one in whole})
    start, end = times[len(times) // 4], times[len(times) // 2]
    framed = [one for one in whole if start <= one["blockTimestamp"] <= end]
    frame = f"startTimestamp={start}&endTimestamp={end}"
    for order, expected in (("desc", framed), ("asc", framed[::-1])):
        target = f"{P}/transactions?{frame}&sortOrder={order}"
        assert walked(scene, target, "transactions", 5) == expected
    blocks = walked(scene, f"{P}/blocks", "blocks")
    inside = [one for one in blocks if start <= one["blockTimestamp"] <= end]
    assert walked(scene, f"{P}/blocks?{frame}", "blocks", 4) == inside


def shown_addresses(tx: dict[str, Any]) -> set[str]:
    """The addresses for which a transaction is listed: owners of what it consumed and made, and who gets the reward."""
    utxos = (*tx["consumedUtxos"], *tx["emittedUtxos"])
    return {*(one for utxo in utxos for one in utxo["addresses"]), *tx.get("rewardAddresses", ())}


def stakeholders(tx: dict[str, Any]) -> set[str]:
    """Who owns the stake of a transaction, or gets its reward."""
    staked = [utxo for utxo in tx["emittedUtxos"] if utxo["staked"]]
    return {*(one for utxo in staked for one in utxo["addresses"]), *tx.get("rewardAddresses", ())}


def test_transactions_of_an_address_are_those_that_show_it(scene: NetworkScene) -> None:
    whole = walked(scene, f"{P}/transactions", "transactions")
    times = sorted({one["blockTimestamp"] for one in whole})
    start, end = times[len(times) // 3], times[-len(times) // 3]
    everyone = sorted({address for one in whole for address in shown_addresses(one)})
    assert len(everyone) > 3
    for address in everyone:
        mine = [one for one in whole if address in shown_addresses(one)]
        base = f"{P}/transactions?addresses=P-{address}"
        assert walked(scene, base, "transactions", 7) == mine
        assert walked(scene, f"{base}&sortOrder=asc", "transactions", 50) == mine[::-1]
        framed = [one for one in mine if start <= one["blockTimestamp"] <= end]
        assert walked(scene, f"{base}&startTimestamp={start}&endTimestamp={end}", "transactions", 3) == framed
    pair = everyone[:2]
    both = [one for one in whole if shown_addresses(one).intersection(pair)]
    assert walked(scene, f"{P}/transactions?addresses={','.join(pair)}", "transactions", 4) == both
    active = walked(scene, f"{P}/transactions:listStaking", "transactions", 100)
    for address in everyone:
        mine = [one for one in active if address in stakeholders(one)]
        assert walked(scene, f"{P}/transactions:listStaking?addresses={address}", "transactions", 2) == mine


def test_a_rare_type_is_found_page_by_page(scene: NetworkScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request reads a bounded number of rows; the token leads on even from an empty page."""
    whole = walked(scene, f"{P}/transactions", "transactions")
    monkeypatch.setattr(transactions, "SCAN_MAX", 5)
    for kinds in ("ImportTx,ExportTx", "CreateSubnetTx", "CreateAssetTx"):
        expected = [one for one in whole if one["txType"] in kinds.split(",")]
        assert walked(scene, f"{P}/transactions?txTypes={kinds}", "transactions", 3) == expected
    active = walked(scene, f"{P}/transactions:listStaking", "transactions", 3)
    current = {id_text(one.txid) for one in scene.playback.platform.ledger.state.current}
    assert {one["txHash"] for one in active} == current


def test_balances_are_those_the_node_said(scene: NetworkScene) -> None:
    """Balances are compared at the tip, and at the time of every block that was the last of its second."""
    blocks = walked(scene, f"{P}/blocks", "blocks")
    last = {one["blockTimestamp"]: one for one in reversed(blocks)}
    heights = {int(one["blockNumber"]): at for at, one in last.items() if "Proposal" not in one["blockType"]}
    compared = Counter[str]()
    for row in (*p_rows(scene.playback.recording, "calls"), *p_rows(scene.playback.recording, "final")):
        height, method = row["height"], row["method"]
        if method not in ("platform.getBalance", "platform.getStake") or height not in heights:
            continue
        said, params = row["response"].get("result"), row["params"] if isinstance(row["params"], dict) else {}
        asked_for = params.get("addresses") or []
        if said is None or not 1 <= len(asked_for) <= ADDRESSES_MAX or params.get("validatorsOnly"):
            continue
        at = "" if height == int(blocks[0]["blockNumber"]) else f"&blockTimestamp={heights[height]}"
        shown = scene.result(f"{P}/balances?addresses={','.join(asked_for)}{at}")["balances"]
        if method == "platform.getBalance":
            for category, key in (("unlockedUnstaked", "unlockeds"), ("lockedStakeable", "lockedStakeables")):
                assert by_asset(shown[category]) == said[key], (height, category)
            assert by_asset(shown["lockedPlatform"]) == said["lockedNotStakeables"]
        else:
            staked: Counter[str] = Counter()
            for category in ("unlockedStaked", "lockedStaked", "pendingStaked"):
                staked.update({asset: int(amount) for asset, amount in by_asset(shown[category]).items()})
            assert {asset: str(amount) for asset, amount in staked.items()} == said["stakeds"], height
        compared[method] += 1
    assert min(compared["platform.getBalance"], compared["platform.getStake"]) > 20


def test_outputs_of_an_address(scene: NetworkScene) -> None:
    address = RICH[scene.playback.recording]
    every = walked(scene, f"{P}/utxos?addresses={address}&includeSpent=true", "utxos", 8)
    assert walked(scene, f"{P}/utxos?addresses={address}&includeSpent=true&sortOrder=asc", "utxos") == every[::-1]
    assert len({one["utxoId"] for one in every}) == len(every)
    left = walked(scene, f"{P}/utxos?addresses=X-{address}", "utxos", 3)
    assert left == [one for one in every if "consumingTxHash" not in one]
    balances = scene.result(f"{P}/balances?addresses={address}")["balances"]
    sums: Counter[str] = Counter()
    for one in left:
        sums[one["assetId"]] += int(one["amount"])
    for category in ("unlockedUnstaked", "unlockedStaked", "lockedPlatform", "lockedStakeable", "lockedStaked"):
        for amount in balances[category]:
            sums[amount["assetId"]] -= int(amount["amount"])
    assert not any(sums.values())
    made = {one["txHash"]: one for one in walked(scene, f"{P}/transactions", "transactions")}
    for one in every:
        if one["txHash"] in made and one["blockNumber"] == made[one["txHash"]]["blockNumber"]:
            assert one["utxoId"] in [utxo["utxoId"] for utxo in made[one["txHash"]]["emittedUtxos"]]


def test_network_details(scene: NetworkScene) -> None:
    """Sums agree with what the recorded node said last."""
    details, last = scene.result(""), p_rows(scene.playback.recording, "final")
    validators = next(
        row["response"]["result"]["validators"]
        for row in last
        if row["method"] == "platform.getCurrentValidators" and row["params"] == {}
    )
    own = details["validatorDetails"]
    assert own["validatorCount"] == len(validators)
    assert own["totalAmountStaked"] == str(sum(int(one["weight"]) for one in validators))
    delegated = sum(int(one.get("delegatorWeight", 0)) for one in validators)
    assert details["delegatorDetails"]["totalAmountStaked"] == str(delegated)
    supply = next(
        int(row["response"]["result"]["supply"])
        for row in last
        if row["method"] == "platform.getCurrentSupply" and row["params"] == {}
    )
    staked = int(own["totalAmountStaked"]) + delegated
    assert own["stakingRatio"].startswith(f"{staked / supply:.6f}"[:-1])
    assert len(own["stakingRatio"].partition(".")[2]) == 20
    assert [one["amountStaked"] for one in own["stakingDistributionByVersion"]] == [str(staked)]


def test_stake_by_version(scene: NetworkScene) -> None:
    """The versions that an upstream reported, and the rest as offline: together all that is staked."""
    total = scene.result("")["validatorDetails"]["stakingDistributionByVersion"]
    assert [one["version"] for one in total] == ["offline"]
    active = [
        one
        for one in walked(scene, "/validators?validationStatus=active", "validators")
        if one["subnetId"] == id_text(PRIMARY_NETWORK)
    ]
    stakes = [int(one["amountStaked"]) + int(one["amountDelegated"]) for one in active]
    ids = [node_id_from_text(one["nodeId"]) for one in active]
    with observed(scene, [ObservedNode(ids[0], NOW, 1, True, "v1", ""), ObservedNode(ids[1], NOW, 1, True, "", "")]):
        rows = scene.result("")["validatorDetails"]["stakingDistributionByVersion"]
        assert rows == [
            {"version": "v1", "amountStaked": str(stakes[0]), "validatorCount": 1},
            {"version": "offline", "amountStaked": str(sum(stakes[1:])), "validatorCount": len(stakes) - 1},
        ]
    with observed(scene, [ObservedNode(one, NOW, 1, True, f"v{at % 2}", "") for at, one in enumerate(ids)]):
        rows = scene.result("")["validatorDetails"]["stakingDistributionByVersion"]
        assert {one["version"]: int(one["amountStaked"]) for one in rows} == {
            "v0": sum(stakes[::2]),
            "v1": sum(stakes[1::2]),
        }
        assert sum(one["validatorCount"] for one in rows) == len(active)
    with observed(scene, [ObservedNode(ids[0], NOW - SHOWN_S - 1, 1, True, "v1", "")]):
        assert scene.result("")["validatorDetails"]["stakingDistributionByVersion"] == total


def test_names_of_the_network(scene: NetworkScene) -> None:
    own, number = {"p-forks-1": ("network-424242", "424242"), "p-local-1": ("local", "12345")}[scene.playback.recording]
    for name in ("mainnet", "nowhere", "1", "12346"):
        assert scene.get(f"/v1/networks/{name}")[0] == 404
    for name in ("fuji", "testnet", own, number):
        assert scene.get(f"/v1/networks/{name}")[0] == 200
        for chain in ("p-chain", "x-chain", "c-chain"):
            shown = scene.get(f"/v1/networks/{name}/blockchains/{chain}/transactions")[1]
            assert shown["chainInfo"] == {"chainName": chain, "network": name}
        activity = f"/v1/networks/{name}/blockchains/p-chain/lastActivityTimestampByAddresses"
        asked = f"{activity}?addresses={RICH[scene.playback.recording]}"
        assert scene.get(asked)[1]["network"] == ("fuji" if name == "testnet" else name)
    for chain, status in (
        ("11111111111111111111111111111111LpoYY", 200),
        ("P", 200),
        ("x-chain", 200),
        ("X", 200),
        ("c-chain", 200),
        ("Y", 404),
    ):
        assert scene.get(f"/v1/networks/fuji/blockchains/{chain}/blocks")[0] == status
    assert (public_name(1, ""), public_name(5, ""), public_name(12345, "")) == ("mainnet", "fuji", "fuji")
    assert accepted_names(12345, "mainnet") == {"mainnet", "local", "12345"}


def test_wrong_values_are_refused(scene: NetworkScene) -> None:
    other = "avax18jma8ppw3nhx5r4ap8clazz0dps7rv5ukulre5"
    for target, said in (
        (f"{P}/utxos?addresses={other}", "addresses must begin with"),
        (f"{P}/utxos?addresses=0x00", "addresses must be 1 to 64 bech32 addresses"),
        (f"{P}/utxos", "addresses is missing"),
        (f"{P}/blocks/0x12", "blockId must be the height of a block, or its ID"),
        (f"{P}/transactions?txTypes=AddTx", "txTypes must be types of transactions"),
        (f"{P}/transactions?startTimestamp=2&endTimestamp=1", "startTimestamp must not be after endTimestamp"),
        (f"{P}/balances?addresses={RICH[scene.playback.recording]}&blockTimestamp=4000000000", "in the future"),
    ):
        status, answer = scene.get(f"/v1/networks/fuji{target}")
        assert status == 400
        assert said in answer["message"]
    for target in (f"{P}/blocks/99999", f"{P}/transactions/11111111111111111111111111111111LpoYY"):
        assert scene.get(f"/v1/networks/fuji{target}")[0] == 404


def test_without_a_network_there_is_none(scene: NetworkScene) -> None:
    status, answer = scene.run(asked(networks_app(Networks(None)), "/v1/networks/fuji"))
    assert status == 404
    assert "neither runs nor follows" in answer["message"]


def test_types_have_commas_or_are_repeated(scene: NetworkScene) -> None:
    for base in (f"{P}/transactions", f"{P}/transactions:listStaking", "/blockchains/x-chain/transactions"):
        kinds = ["CreateSubnetTx", "ExportTx", "AddPermissionlessValidatorTx", "CreateAssetTx", "AddValidatorTx"]
        with_commas = walked(scene, f"{base}?txTypes={','.join(kinds)}", "transactions", 100)
        assert len({one["txType"] for one in with_commas}) > 1 or base.endswith("listStaking")
        repeated = "&".join(f"txTypes={one}" for one in kinds)
        assert walked(scene, f"{base}?{repeated}", "transactions", 100) == with_commas
        page = scene.result(f"{base}?txTypes={kinds[0]}&txTypes={kinds[2]},{kinds[4]}&pageSize=1")
        if token := page.get("nextPageToken"):  # a token holds in whichever form the list is written
            scene.result(f"{base}?txTypes={kinds[4]},{kinds[0]},{kinds[2]}&pageSize=1&pageToken={token}")
