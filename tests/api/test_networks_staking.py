"""Validators, delegators, rewards, subnets, chains and supply of recorded networks, against a naive second reading."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.networks_scene import NOW, NetworkScene, network_scene, observed
from tests.api.staking_naive import PRIMARY, NaiveNetwork, Stake, utxo_text
from tests.api.test_networks import walked
from tests.wire.platform_vectors import p_rows

from icefall.api.networks.handlers import validators as validator_handlers
from icefall.pchain.observed import SHOWN_S, ObservedNode
from icefall.wire.ids import NODE_ID_PREFIX, id_text, node_id_from_text, short_id_text
from icefall.wire.text import bech32

HRPS = {"p-forks-1": "custom", "p-local-1": "local"}


@pytest.fixture(scope="module", params=list(HRPS))
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkScene]:
    with network_scene(request.param, tmp_path_factory.mktemp("network")) as found:
        yield found


@pytest.fixture(scope="module")
def naive(scene: NetworkScene) -> NaiveNetwork:
    return NaiveNetwork(scene.playback)


def node(raw: bytes) -> str:
    return NODE_ID_PREFIX + short_id_text(raw)


def shown_addresses(scene: NetworkScene, owner: Any) -> list[str]:
    return [bech32.encode(HRPS[scene.playback.recording], one) for one in owner.addresses]


def percent(shares: int) -> str:
    return f"{shares / 10_000:.4f}"


def naive_validator(scene: NetworkScene, naive: NaiveNetwork, one: Stake) -> dict[str, Any]:
    found: dict[str, Any] = {
        "txHash": id_text(one.tx.txid),
        "nodeId": node(one.node),
        "subnetId": id_text(one.subnet),
        "amountStaked": str(one.weight),
        "startTimestamp": one.start or one.body.validator.start,
        "endTimestamp": one.end,
        "validationStatus": one.status,
    }
    if one.owner is not None:
        found["delegationFee"] = percent(one.body.shares)
    signer = getattr(one.body, "signer", None)
    if signer is not None:
        found["blsCredentials"] = {
            "publicKey": f"0x{signer.public_key.hex()}",
            "proofOfPossession": f"0x{signer.proof_of_possession.hex()}",
        }
    addresses = {"rewardAddresses": shown_addresses(scene, one.owner)} if one.owner is not None else {}
    if one.status == "active":
        current = [d for d in one.delegations if d.status == "active"]
        everyone = [*naive.current(one.subnet, delegators=False), *naive.current(one.subnet, delegators=True)]
        total = sum(s.weight for s in everyone)
        total += sum(v.weight for v in naive.l1.values() if v.subnet == one.subnet)
        delegated = sum(d.weight for d in current)
        health = ("reachability", "benchedPChainRequests", "benchedXChainRequests", "benchedCChainRequests")
        found |= {
            "stakePercentage": 100 * one.weight / total,
            "delegatorCount": len(current),
            "amountDelegated": str(delegated),
            "uptimePerformance": 0,
            "potentialRewards": {
                "validationRewardAmount": str(one.reward),
                "delegationRewardAmount": str(one.accrued - one.at_once + sum(d.fee for d in current)),
                **addresses,
            },
            "validatorHealth": {f"{name}Percent": 0 for name in health},
            "geolocation": None,
        }
        if one.subnet == PRIMARY:
            most = min(5 * one.weight, 3_000_000 * 10**9)
            found["delegationCapacity"] = str(max(0, most - one.weight - delegated))
    elif one.status == "completed":
        found |= {
            "delegatorCount": len(one.delegations),
            "amountDelegated": str(sum(d.weight for d in one.delegations)),
            "rewards": {
                "validationRewardAmount": str(one.reward if one.was_rewarded else 0),
                "delegationRewardAmount": str(one.accrued),
                **addresses,
                **({"rewardTxHash": id_text(one.ended[0])} if one.ended else {}),
            },
        }
    elif one.status == "removed":
        assert one.ended is not None
        found |= {"removeTxHash": id_text(one.ended[0]), "removeTimestamp": one.ended[1]}
    return found


def test_every_validation_period(scene: NetworkScene, naive: NaiveNetwork) -> None:
    expected = [naive_validator(scene, naive, one) for one in naive.stakes if not one.is_delegator][::-1]
    shown = walked(scene, "/validators", "validators", 3)
    assert shown == expected
    assert walked(scene, "/validators?sortOrder=asc", "validators", 4) == expected[::-1]
    statuses = {one["validationStatus"] for one in expected}
    assert {"active", "completed"} <= statuses
    for status in ("active", "pending", "completed", "removed"):
        some = [one for one in expected if one["validationStatus"] == status]
        assert walked(scene, f"/validators?validationStatus={status}", "validators", 2) == some
    for subnet in {one["subnetId"] for one in expected}:
        some = [one for one in expected if one["subnetId"] == subnet]
        assert walked(scene, f"/validators?subnetId={subnet}", "validators", 2) == some
    for name in {one["nodeId"] for one in expected}:
        some = [one for one in expected if one["nodeId"] == name]
        assert walked(scene, f"/validators/{name}", "validators", 1) == some
        assert walked(scene, f"/validators?nodeIds={name}", "validators", 1) == some
        done = [one for one in some if one["validationStatus"] == "completed"]
        assert walked(scene, f"/validators/{name}?validationStatus=completed&sortOrder=asc", "validators") == done[::-1]


def test_validators_by_value_and_filter(
    scene: NetworkScene, naive: NaiveNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validator_handlers, "SCAN_MAX", 4)  # a page may be short then, and its token leads on
    every = walked(scene, "/validators", "validators")
    active = [one for one in every if one["validationStatus"] == "active" and one["subnetId"] == id_text(PRIMARY)]
    keys: dict[str, Any] = {
        "delegationCapacity": lambda one: int(one["delegationCapacity"]),
        "timeRemaining": lambda one: one["endTimestamp"],
        "delegationFee": lambda one: float(one["delegationFee"]),
    }
    for name, key in keys.items():
        for order in ("asc", "desc"):
            found = walked(scene, f"/validators?sortBy={name}&sortOrder={order}", "validators", 2)
            assert sorted(found, key=str) == sorted(active, key=str)
            assert [key(one) for one in found] == sorted(map(key, active), reverse=order == "desc")
    part = active[0]["nodeId"][len(NODE_ID_PREFIX) + 2 :][:4]
    assert walked(scene, f"/validators?nodeIds={part}", "validators", 3) == [
        one for one in every if part in one["nodeId"]
    ]
    fees = walked(scene, "/validators?minFeePercentage=2&maxFeePercentage=26", "validators", 3)
    assert fees == [
        one for one in every if one["subnetId"] == id_text(PRIMARY) and 2 <= float(one.get("delegationFee", 0)) <= 26
    ]
    middle = sorted(keys["delegationCapacity"](one) for one in active)[len(active) // 2]
    large = walked(scene, f"/validators?minDelegationCapacity={middle}&subnetId={id_text(PRIMARY)}", "validators", 3)
    assert large == [one for one in active if int(one["delegationCapacity"]) >= middle]
    assert walked(scene, "/validators?maxTimeRemaining=0", "validators") == [
        one for one in every if one["validationStatus"] == "active" and one["endTimestamp"] <= NOW
    ]
    assert scene.get("/v1/networks/fuji/validators?sortBy=delegationFee&validationStatus=completed")[0] == 400


def test_validators_that_pay_addresses(
    scene: NetworkScene, naive: NaiveNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = walked(scene, "/validators", "validators")
    validating = [one for one in naive.stakes if not one.is_delegator]
    payees = {
        id_text(one.tx.txid): shown_addresses(scene, one.owner) if one.owner is not None else [] for one in validating
    }
    addresses = sorted({address for found in payees.values() for address in found})
    monkeypatch.setattr(validator_handlers, "SCAN_MAX", 3)
    for address in addresses:
        base = f"/validators?rewardAddresses={address}"
        mine = [one for one in every if address in payees[one["txHash"]]]
        assert mine
        assert walked(scene, base, "validators", 2) == mine
        assert walked(scene, f"{base}&sortOrder=asc", "validators", 3) == mine[::-1]
        active = [one for one in mine if one["validationStatus"] == "active"]
        assert walked(scene, f"{base}&validationStatus=active", "validators", 2) == active
        for name in {one["nodeId"] for one in every}:
            of_node = [one for one in mine if one["nodeId"] == name]
            assert walked(scene, f"{base}&nodeIds={name}", "validators", 1) == of_node
        primary = [one for one in mine if one["subnetId"] == id_text(PRIMARY)]
        assert walked(scene, f"{base}&subnetId={id_text(PRIMARY)}", "validators", 2) == primary
        by_fee = walked(scene, f"{base}&sortBy=delegationFee", "validators", 2)
        staked = [one for one in active if one["subnetId"] == id_text(PRIMARY)]
        assert sorted(by_fee, key=str) == sorted(staked, key=str)
    both = [one for one in every if set(addresses[:2]).intersection(payees[one["txHash"]])]
    assert walked(scene, f"/validators?rewardAddresses={','.join(addresses[:2])}", "validators", 2) == both


def test_what_an_upstream_saw_of_active_validators(scene: NetworkScene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validator_handlers, "SCAN_MAX", 4)
    every = walked(scene, "/validators", "validators")
    primary = [one for one in every if one["validationStatus"] == "active" and one["subnetId"] == id_text(PRIMARY)]
    names = list(dict.fromkeys(one["nodeId"] for one in primary))
    first, second, old = map(node_id_from_text, names[:3])
    seen = [
        ObservedNode(first, NOW - SHOWN_S, 991_234, True, "avalanchego/1.14.2", "CX"),
        ObservedNode(second, NOW, 500_000, False, "", ""),
        ObservedNode(old, NOW - SHOWN_S - 1, 1_000_000, True, "avalanchego/1.14.2", "P"),
    ]
    with observed(scene, seen):
        shown = walked(scene, "/validators", "validators", 3)
        for before, now in zip(every, shown, strict=True):
            expected = dict(before)
            if before["validationStatus"] == "active" and before["nodeId"] == names[0]:
                expected |= {
                    "uptimePerformance": 99.1234 if before in primary else 0,
                    "avalancheGoVersion": "avalanchego/1.14.2",
                    "validatorHealth": {
                        "reachabilityPercent": 100,
                        "benchedPChainRequestsPercent": 0,
                        "benchedXChainRequestsPercent": 100,
                        "benchedCChainRequestsPercent": 100,
                    },
                }
            elif before in primary and before["nodeId"] == names[1]:
                expected |= {"uptimePerformance": 50}
            assert now == expected
        for name in names[:3]:
            assert walked(scene, f"/validators/{name}", "validators", 1) == [
                one for one in shown if one["nodeId"] == name
            ]
        for query, low, high in (("min", 50, 100), ("max", 0, 99.1233), ("min", 99.1234, 100), ("max", 0, 0)):
            limit = low if query == "min" else high
            assert walked(scene, f"/validators?{query}UptimePerformance={limit}", "validators", 2) == [
                one for one in shown if low <= one.get("uptimePerformance", -1) <= high
            ]
    assert walked(scene, "/validators", "validators") == every


def naive_delegator(scene: NetworkScene, one: Stake) -> dict[str, Any]:
    gross = one.reward if one.was_rewarded or one.status != "completed" else 0
    net = gross - one.fee if gross else 0
    names = (
        ("grossReward", "netReward") if one.status == "completed" else ("estimatedGrossReward", "estimatedNetReward")
    )
    assert one.validator is not None
    return {
        "txHash": id_text(one.tx.txid),
        "nodeId": node(one.node),
        "rewardAddresses": shown_addresses(scene, one.owner),
        "amountDelegated": str(one.weight),
        "delegationFee": percent(one.validator.body.shares),
        "startTimestamp": one.start,
        "endTimestamp": one.end,
        "delegationStatus": one.status,
        **dict(zip(names, (str(gross), str(net)), strict=True)),
    }


def test_every_delegation(scene: NetworkScene, naive: NaiveNetwork) -> None:
    expected = [naive_delegator(scene, one) for one in naive.stakes if one.is_delegator][::-1]
    assert expected
    assert walked(scene, "/delegators", "delegators", 2) == expected
    for name in {one["nodeId"] for one in expected}:
        some = [one for one in expected if one["nodeId"] == name]
        assert walked(scene, f"/delegators?nodeIds={name}", "delegators", 1) == some
    for address in {address for one in expected for address in one["rewardAddresses"]}:
        some = [one for one in expected if address in one["rewardAddresses"]]
        assert walked(scene, f"/delegators?rewardAddresses=P-{address}", "delegators", 1) == some
        first = some[0]["nodeId"]
        both = walked(scene, f"/delegators?rewardAddresses={address}&nodeIds={first}&sortOrder=asc", "delegators", 1)
        assert both == [one for one in some[::-1] if one["nodeId"] == first]
    for status in ("active", "pending", "completed"):
        some = [one for one in expected if one["delegationStatus"] == status]
        assert walked(scene, f"/delegators?delegationStatus={status}", "delegators", 2) == some


def amount_of(shown: dict[str, Any]) -> tuple[str, str]:
    return shown["assetId"], shown["amount"]


def test_every_reward_that_was_paid(scene: NetworkScene, naive: NaiveNetwork) -> None:
    expected: list[dict[str, Any]] = [
        {
            "addresses": shown_addresses(scene, paid.owner),
            "txHash": id_text(paid.stake.tx.txid),
            "amountStaked": str(paid.stake.weight),
            "nodeId": node(paid.stake.node),
            "startTimestamp": paid.stake.start,
            "endTimestamp": paid.stake.end,
            "rewardType": paid.kind,
            "utxoId": utxo_text(paid.stake.tx.txid, paid.index),
            "outputIndex": paid.index,
            "reward": (id_text(paid.asset), str(paid.amount)),
            "rewardTxHash": id_text(paid.reward_txid),
        }
        for paid in naive.paid
    ][::-1]
    assert {one["rewardType"] for one in expected} >= {"VALIDATOR", "DELEGATOR", "VALIDATOR_FEE"}

    def rewards(query: str, size: int) -> list[Any]:
        found = walked(scene, f"/rewards?{query}", "historicalRewards", size)
        return [one | {"reward": amount_of(one["reward"])} for one in found]

    for name in {one["nodeId"] for one in expected}:
        assert rewards(f"nodeIds={name}", 2) == [one for one in expected if one["nodeId"] == name]
    for address in {address for one in expected for address in one["addresses"]}:
        some = [one for one in expected if address in one["addresses"]]
        assert rewards(f"addresses={address}", 3) == some
        assert rewards(f"addresses={address}&sortOrder=asc&nodeIds={some[0]['nodeId']}", 1) == [
            one for one in some[::-1] if one["nodeId"] == some[0]["nodeId"]
        ]
    assert scene.get("/v1/networks/fuji/rewards")[0] == 400


def naive_pending(scene: NetworkScene, naive: NaiveNetwork) -> list[dict[str, Any]]:
    found = []
    for one in naive.stakes[::-1]:
        if one.status != "active" or one.owner is None:
            continue
        parts = [("VALIDATOR", one.owner, one.reward)]
        if one.validator is not None:
            parts = [
                ("DELEGATOR", one.owner, one.reward - one.fee),
                ("VALIDATOR_FEE", one.validator.fee_owner, one.fee),
            ]
        found += [
            {
                "addresses": shown_addresses(scene, owner),
                "txHash": id_text(one.tx.txid),
                "amountStaked": str(one.weight),
                "nodeId": node(one.node),
                "startTimestamp": one.start,
                "endTimestamp": one.end,
                "rewardType": kind,
                "progress": 100,
                "estimatedReward": (id_text(naive.asset[one.subnet]), str(amount)),
            }
            for kind, owner, amount in parts
            if amount
        ]
    return found


def test_every_reward_that_is_pending(scene: NetworkScene, naive: NaiveNetwork) -> None:
    expected = naive_pending(scene, naive)
    assert expected

    def pending(query: str, size: int) -> list[Any]:
        found = walked(scene, f"/rewards:listPending?{query}", "pendingRewards", size)
        return [one | {"estimatedReward": amount_of(one["estimatedReward"])} for one in found]

    for name in {one["nodeId"] for one in expected}:
        some = [one for one in expected if one["nodeId"] == name]
        for size in (1, 2, 50):
            assert pending(f"nodeIds={name}", size) == some
    for address in {address for one in expected for address in one["addresses"]}:
        some = [one for one in expected if address in one["addresses"]]
        for size in (1, 3):
            assert pending(f"addresses={address}", size) == some


def test_every_l1_validator(scene: NetworkScene, naive: NaiveNetwork) -> None:
    expected: list[dict[str, Any]] = [
        {
            "validationId": id_text(key),
            "validationIdHex": f"0x{key.hex()}",
            "nodeId": node(one.node),
            "subnetId": id_text(one.subnet),
            "weight": one.weight,
            "remainingBalance": one.balance,
            "creationTimestamp": one.start,
            "blsCredentials": {
                "publicKey": f"0x{one.key.hex()}",
                "proofOfPossession": f"0x{one.proof.hex()}",
            },
            "remainingBalanceOwner": {
                "addresses": shown_addresses(scene, one.remaining_owner),
                "threshold": one.remaining_owner.threshold,
            },
            "deactivationOwner": {
                "addresses": shown_addresses(scene, one.deactivation_owner),
                "threshold": one.deactivation_owner.threshold,
            },
        }
        for key, one in sorted(naive.l1.items(), key=lambda item: (item[1].start, item[0]), reverse=True)
    ]
    status = {id_text(key): one.status for key, one in naive.l1.items()}
    left = [one for one in expected if status[one["validationId"]] != "removed"]
    active = [one for one in expected if status[one["validationId"]] == "active"]
    assert len(expected) > len(left) > len(active) > 0
    assert walked(scene, "/l1Validators", "validators", 1) == active
    assert walked(scene, "/l1Validators?includeInactiveL1Validators=true", "validators", 2) == left
    for one in expected:
        page = scene.result(f"/l1Validators?l1ValidationId={one['validationId']}")
        assert page == {"validators": [one], "blockHeight": str(naive.height)}
        for query in (f"subnetId={one['subnetId']}", f"nodeId={one['nodeId']}&subnetId={one['subnetId']}"):
            same = [two for two in left if two["subnetId"] == one["subnetId"]]
            same = [two for two in same if "nodeId" not in query or two["nodeId"] == one["nodeId"]]
            target = f"/l1Validators?{query}&includeInactiveL1Validators=true"
            assert walked(scene, target, "validators", 1) == same


def naive_chain(scene: NetworkScene, one: dict[str, Any]) -> dict[str, Any]:
    body, chain_id = one["tx"].unsigned, one["tx"].txid
    network = scene.playback.network.genesis
    found = re.search(rb'"config"[^{]*{[^}]*"chainId": *([0-9]+)', body.genesis)
    return {
        "createBlockTimestamp": one["time"],
        "createBlockNumber": str(one["height"] or -1),
        "blockchainId": id_text(chain_id),
        "vmId": "avm" if chain_id == network.x_chain_id else id_text(body.vm_id),
        "subnetId": id_text(body.subnet_id),
        "blockchainName": body.chain_name,
        "evmChainId": int(found[1]) if found else 0,
    }


def test_every_subnet_and_blockchain(scene: NetworkScene, naive: NaiveNetwork) -> None:
    primary = {"createBlockTimestamp": naive.genesis_time, "subnetId": id_text(PRIMARY)}
    p_chain = primary | {"createBlockNumber": "-1", "blockchainId": id_text(PRIMARY), "vmId": "platformvm"}
    chains = [p_chain | {"blockchainName": "P-Chain", "evmChainId": 0}]
    chains += [naive_chain(scene, one) for one in naive.chains]
    assert walked(scene, "/blockchains", "blockchains", 2) == chains[::-1]
    assert walked(scene, "/blockchains?sortOrder=asc", "blockchains", 1) == chains
    for chain in chains:
        alone = scene.result(f"/blockchains/{chain['blockchainId']}")
        assert ("genesisData" in alone) == (chain["blockchainName"] != "P-Chain")
        alone.pop("genesisData", None)
        assert alone == chain
    assert scene.result("/blockchains/x-chain")["genesisData"]["encoding"] == "hex"
    no_owner = {"locktime": 0, "threshold": 0, "addresses": []}
    expected = [_subnet(chains, primary | {"createBlockIndex": "0"}, no_owner)]
    for key, one in naive.subnets.items():
        owner = one["owner"]
        shown = {"locktime": owner.locktime, "threshold": owner.threshold, "addresses": shown_addresses(scene, owner)}
        made = {"createBlockTimestamp": one["time"], "createBlockIndex": str(one["height"]), "subnetId": id_text(key)}
        subnet = _subnet(chains, made, shown)
        if "converted" in one:
            chain_id, address = one["manager"]
            manager = {"blockchainId": id_text(chain_id), "contractAddress": f"0x{address.hex()}"}
            subnet |= {"isL1": True, "l1ConversionTransactionHash": id_text(one["converted"])}
            subnet["l1ValidatorManagerDetails"] = manager
        expected.append(subnet)
    assert any(one["isL1"] for one in expected)
    assert walked(scene, "/subnets", "subnets", 1) == expected[::-1]
    assert walked(scene, "/subnets?sortOrder=asc", "subnets", 2) == expected
    for subnet in expected:
        assert scene.result(f"/subnets/{subnet['subnetId']}") == subnet
    missing = id_text(bytes(31) + b"\1")
    assert scene.get(f"/v1/networks/fuji/subnets/{missing}")[0] == 404
    assert scene.get(f"/v1/networks/fuji/blockchains/{missing}")[0] == 404
    assert scene.get("/v1/networks/fuji/blockchains/nothing")[0] == 404


def _subnet(chains: list[dict[str, Any]], made: dict[str, Any], owner: dict[str, Any]) -> dict[str, Any]:
    return made | {
        "ownerAddresses": owner["addresses"],
        "threshold": owner["threshold"],
        "locktime": owner["locktime"],
        "subnetOwnershipInfo": owner,
        "isL1": False,
        "blockchains": [one for one in chains if one["subnetId"] == made["subnetId"]],
    }


def test_validators_are_those_the_node_said(scene: NetworkScene) -> None:
    last = p_rows(scene.playback.recording, "final")
    said = next(
        row["response"]["result"]["validators"]
        for row in last
        if row["method"] == "platform.getCurrentValidators" and row["params"] == {}
    )
    target = f"/validators?validationStatus=active&subnetId={id_text(PRIMARY)}"
    shown = {one["nodeId"]: one for one in walked(scene, target, "validators")}
    assert set(shown) == {one["nodeID"] for one in said}
    for one in said:
        found = shown[one["nodeID"]]
        assert (found["txHash"], found["amountStaked"]) == (one["txID"], one["weight"])
        assert found["potentialRewards"]["validationRewardAmount"] == one["potentialReward"]
        assert found["delegatorCount"] == int(one["delegatorCount"])
        assert found["amountDelegated"] == one["delegatorWeight"]
        assert found["delegationFee"] == one["delegationFee"]


def test_sums_that_an_earlier_release_did_not_write_are_not_guessed(tmp_path: Path) -> None:
    with network_scene("p-local-1", tmp_path) as scene:
        store = scene.playback.store
        scene.run(store.write(lambda tx: tx.run("insert into meta (name, value) values ('p_sums_missing', '1')")))
        for path in ("", "/validators", "/delegators", "/rewards:listPending", "/subnets", "/blockchains"):
            status, answer = scene.get(f"/v1/networks/fuji{path}")
            assert status == 503, path
            assert "new --data-dir" in answer["message"]
        assert scene.get("/v1/avax/supply")[0] == 503
