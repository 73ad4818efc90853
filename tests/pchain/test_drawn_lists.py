"""Lists and balances of random P-Chains under /v1/networks, against what a naive chain remembers of them.

ICEFALL_FUZZ_SEEDS chains are drawn, from ICEFALL_FUZZ_SEED on.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.pchain.drawing import ADDRESSES, P_CHAIN
from tests.pchain.drawn_network import SEED, SEEDS, DrawnNetwork, P, text
from tests.pchain.naive_history import Made, Period
from tests.store.conformance.network_operations import LISTED_TABLES

from icefall.db.engine import Transaction
from icefall.primary.listed import ListedPlatform
from icefall.wire.ids import NODE_ID_PREFIX, id_text, input_id, short_id_text
from icefall.wire.pvm.codec import unpack_tx


@pytest.fixture(scope="module", params=range(SEED, SEED + SEEDS))
def drawn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DrawnNetwork]:
    found = DrawnNetwork(tmp_path_factory.mktemp("drawn"), request.param)
    yield found
    found.close()


def shown_utxo(one: Made) -> dict[str, Any]:
    """What the list says of an output."""
    owners, asset = one.inner.owners, one.utxo.asset_id
    found: dict[str, Any] = {
        "addresses": [text(address) for address in owners.addresses],
        "utxoId": id_text(one.utxo_id),
        "txHash": id_text(one.utxo.txid),
        "outputIndex": one.utxo.output_index,
        "amount": str(one.inner.amount),
        "assetId": id_text(asset),
        "blockNumber": str(one.height),
        "blockTimestamp": one.time,
        "createdOnChainId": id_text(P_CHAIN),
        "consumedOnChainId": id_text(one.destination),
        "platformLocktime": owners.locktime,
        "threshold": owners.threshold,
        "staked": one.stake is not None,
        "utxoType": "STAKE" if one.lock else "TRANSFER",
    }
    if one.lock:
        found["stakeableLocktime"] = one.lock
    if one.was_staked is not None:
        found |= {"utxoStartTimestamp": one.was_staked.start, "utxoEndTimestamp": one.was_staked.end}
    if one.spent is not None:
        txid, time, height = one.spent
        found |= {
            "consumingTxHash": id_text(txid),
            "consumingBlockTimestamp": time,
            "consumingBlockNumber": str(height),
        }
    return found


def without_more(shown: dict[str, Any]) -> dict[str, Any]:
    """An output without its asset's name and its bytes."""
    return {name: value for name, value in shown.items() if name not in ("asset", "utxoBytes")}


def test_outputs_by_time_and_by_amount(drawn: DrawnNetwork) -> None:
    shared = staked = 0
    for address in ADDRESSES:
        every = [one for one in drawn.naive.owned(address) if one.inner.owners.threshold == 1]
        shared += sum(one.destination != P_CHAIN for one in every)
        staked += sum(one.returned is not None for one in every)
        by_amount = sorted(every, key=lambda one: one.inner.amount)
        for spent in ("false", "true"):
            target = f"{P}/utxos?addresses=P-{text(address)}&includeSpent={spent}&"
            expected = [shown_utxo(one) for one in every if spent == "true" or one.spent is None]
            assert [without_more(one) for one in drawn.walked(f"{target}sortOrder=asc&", "utxos", 7)] == expected
            newest = drawn.walked(target, "utxos", 50)
            assert [without_more(one) for one in newest] == expected[::-1]
            for order in ("asc", "desc"):
                found = drawn.walked(f"{target}sortBy=amount&sortOrder={order}&", "utxos", 9)
                amounts = [one.inner.amount for one in by_amount if spent == "true" or one.spent is None]
                assert [int(one["amount"]) for one in found] == (amounts if order == "asc" else amounts[::-1])
                assert sorted(one["utxoId"] for one in found) == sorted(one["utxoId"] for one in newest)
    assert shared
    assert staked


def category(one: Made, at: int) -> str:
    """The balance to which an output belongs at a time, from the facts about the interface."""
    locked = "Locked" if one.inner.owners.locktime > at else "Unlocked"
    if one.destination != P_CHAIN:
        return f"atomicMemory{locked}"
    stake = one.was_staked
    if stake is not None and (one.returned is None or one.returned > at):
        if stake.start > at:
            return "pendingStaked"
        return "lockedStaked" if one.lock > stake.end else "unlockedStaked"
    if one.inner.owners.locktime > at:
        return "lockedPlatform"
    return "lockedStakeable" if one.lock > at else "unlockedUnstaked"


def test_balances_at_any_time(drawn: DrawnNetwork) -> None:
    source = random.Random(SEED)
    times = sorted({one.time for one in drawn.naive.made.values()})
    for address in ADDRESSES:
        at = source.choice(times) + source.randint(0, 1)
        expected: dict[str, dict[str, tuple[int, int]]] = {}
        for one in drawn.naive.owned(address):
            if one.time > at or (one.spent is not None and one.spent[1] <= at):
                continue
            totals = expected.setdefault(category(one, at), {})
            key = id_text(one.utxo.asset_id)
            if one.destination != P_CHAIN:
                key += f" {id_text(one.destination)}"
            amount, count = totals.get(key, (0, 0))
            totals[key] = amount + one.inner.amount, count + 1
        shown = drawn.get(f"{P}/balances?addresses={text(address)}&blockTimestamp={at}")["balances"]
        found = {
            name: {
                " ".join(filter(None, (one["assetId"], one.get("sharedWithChainId")))): (
                    int(one["amount"]),
                    one["utxoCount"],
                )
                for one in amounts
            }
            for name, amounts in shown.items()
            if amounts
        }
        assert found == expected, at


def test_the_state_after_each_block(drawn: DrawnNetwork) -> None:
    shown = drawn.walked(f"{P}/blocks?", "blocks", 60)[::-1]
    found = [
        (int(one["currentSupply"]), one["activeL1Validators"], one["l1ValidatorsAccruedFees"]) for one in shown[1:]
    ]
    assert found == drawn.naive.after


def test_what_transactions_do_to_validators_of_l1s(drawn: DrawnNetwork) -> None:
    every = drawn.walked(f"{P}/transactions?", "transactions", 60)[::-1]
    found = [
        (
            one["txHash"],
            moved["validationId"],
            moved["weight"],
            moved["remainingBalance"],
            moved["balanceChange"],
        )
        for one in every
        for moved in sorted(one.get("l1ValidatorDetails", ()), key=lambda moved: moved["validationIdHex"])
    ]
    expected = [(id_text(txid), id_text(name), *numbers) for txid, name, *numbers in drawn.naive.moves]
    assert [one for one in found if one in expected] == expected
    assert all(one[4] == 0 for one in found if one not in expected)  # a weight that was set to what it was
    for name in {one[1] for one in expected}:
        of_l1 = drawn.walked(f"{P}/transactions?l1ValidationId={name}&", "transactions", 2)
        assert [one["txHash"] for one in of_l1] == [txid for txid, validation, *_ in found if validation == name][::-1]


def node(period: Period) -> str:
    return NODE_ID_PREFIX + short_id_text(period.staker.node)


def state_of(drawn: DrawnNetwork, period: Period) -> str:
    return period.status or ("pending" if period.staker in drawn.naive.pending() else "active")


def test_validators_and_delegators(drawn: DrawnNetwork) -> None:
    naive = drawn.naive
    stake: dict[bytes, int] = {}
    for one in naive.current():
        stake[one.subnet] = stake.get(one.subnet, 0) + one.weight
    for validator in naive.l1.values():
        stake[validator.subnet] = stake.get(validator.subnet, 0) + validator.weight
    validators, delegators = [], []
    for period in reversed(naive.periods.values()):
        staker, status = period.staker, state_of(drawn, period)
        common = {
            "txHash": id_text(staker.tx.txid),
            "nodeId": node(period),
            "startTimestamp": staker.start,
            "endTimestamp": staker.end,
        }
        current = [one for one in period.delegations if state_of(drawn, one) == "active"]
        if staker.delegates:
            host = period.host
            gross = staker.reward if status in ("active", "pending") or period.rewarded else 0
            names = ("grossReward", "netReward") if period.status else ("estimatedGrossReward", "estimatedNetReward")
            shown = common | {"amountDelegated": str(staker.weight), "delegationStatus": status, names[0]: str(gross)}
            if host is not None:
                net = gross - naive.fee(period) if gross else 0
                shown |= {names[1]: str(net), "delegationFee": f"{host.staker.body.shares / 10_000:.4f}"}
            delegators.append(shown)
            continue
        shown = common | {
            "subnetId": id_text(staker.subnet),
            "amountStaked": str(staker.weight),
            "validationStatus": status,
        }
        if status == "active":
            fees = staker.accrued + sum(naive.fee(one) for one in current)
            shown |= {
                "delegatorCount": len(current),
                "amountDelegated": str(sum(one.staker.weight for one in current)),
                "stakePercentage": 100 * staker.weight / stake[staker.subnet],
                "rewards": (str(staker.reward), str(fees)),
            }
        elif status == "completed":
            shown |= {
                "delegatorCount": len(period.delegations),
                "amountDelegated": str(sum(one.staker.weight for one in period.delegations)),
                "rewards": (str(staker.reward if period.rewarded else 0), str(staker.accrued + period.at_once)),
            }
        elif status == "removed" and period.ended is not None:
            shown |= {"removeTxHash": id_text(period.ended[0]), "removeTimestamp": period.ended[1]}
        validators.append(shown)
    network = "/v1/networks/custom"
    for path, key, expected in (("validators", "validators", validators), ("delegators", "delegators", delegators)):
        found = drawn.walked(f"{network}/{path}?", key, 7)
        for one in found:
            sums = one.get("rewards") or one.get("potentialRewards")
            if sums is not None:
                one["rewards"] = sums["validationRewardAmount"], sums["delegationRewardAmount"]
        picked = [{name: one.get(name) for name in wanted} for one, wanted in zip(found, expected, strict=True)]
        assert picked == expected


def test_rewards(drawn: DrawnNetwork) -> None:
    naive = drawn.naive
    for address in ADDRESSES:
        expected = [
            (id_text(stake), id_text(by), utxo.output_index, str(getattr(utxo.output, "amount", 0)))
            for stake, by, utxo in naive.paid
            if address in getattr(utxo.output, "owners").addresses  # noqa: B009
        ][::-1]
        target = f"/v1/networks/custom/rewards?addresses={text(address)}&"
        shown = drawn.walked(target, "historicalRewards", 5)
        found = [(one["txHash"], one["rewardTxHash"], one["outputIndex"], one["reward"]["amount"]) for one in shown]
        assert found == expected
        pending = []
        for period in naive.periods.values():
            staker = period.staker
            if state_of(drawn, period) != "active":
                continue
            body = staker.body
            owner = getattr(body, "validation_rewards_owner", None) or getattr(body, "rewards_owner", None)
            fee = naive.fee(period) if period.host is not None else 0
            if owner is not None and address in owner.addresses and staker.reward - fee:
                kind = "DELEGATOR" if staker.delegates else "VALIDATOR"
                pending.append((id_text(staker.tx.txid), kind, str(staker.reward - fee)))
            if period.host is not None and fee:
                of_host = period.host.staker.body
                to = getattr(of_host, "delegation_rewards_owner", None) or of_host.rewards_owner
                if address in to.addresses:
                    pending.append((id_text(staker.tx.txid), "VALIDATOR_FEE", str(fee)))
        target = f"/v1/networks/custom/rewards:listPending?addresses={text(address)}&sortOrder=asc&"
        shown = drawn.walked(target, "pendingRewards", 5)
        assert [(one["txHash"], one["rewardType"], one["estimatedReward"]["amount"]) for one in shown] == pending


def listed_rows(drawn: DrawnNetwork) -> dict[str, list[Any]]:
    tables = (*LISTED_TABLES, "p_address_tx")
    return {table: sorted(drawn.store.read(f"select * from {table}"), key=repr) for table in tables}


def list_again(drawn: DrawnNetwork, change: Callable[[Transaction], object]) -> None:
    async def run() -> None:
        await drawn.store.write(change)
        lists = ListedPlatform(drawn.store)
        while await lists.step():
            pass

    drawn.run(run())


@pytest.mark.parametrize("together", [1, 3, 256])
def test_stored_blocks_are_listed_later_as_with_the_block(
    drawn: DrawnNetwork, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget(tx: Transaction) -> None:
        for table in LISTED_TABLES:
            tx.run(f"delete from {table}")

    monkeypatch.setattr("icefall.primary.listed._BATCH", together)
    expected = listed_rows(drawn)
    list_again(drawn, forget)
    assert listed_rows(drawn) == expected


def test_what_proposals_moved_is_listed_in_stores_of_older_releases(drawn: DrawnNetwork) -> None:
    expected, moving = listed_rows(drawn), 0

    def lose(tx: Transaction) -> None:
        nonlocal moving
        rows = tx.rows(
            "select t.bytes from p_tx t join p_block b on b.height = t.height"
            " where b.block_type = 29 and t.type in (17, 18)"
        )
        moving = len(rows)
        for one in [unpack_tx(bytes(raw)) for (raw,) in rows]:
            tx.run("delete from early_spent where txid = :txid", {"txid": one.txid})
            unsigned: Any = one.unsigned
            for index in range(len(getattr(unsigned, "exported_outputs", ()))):
                key = {"utxo_id": input_id(one.txid, len(unsigned.outputs) + index)}
                tx.run("delete from chain_output where utxo_id = :utxo_id", key)
                tx.run("delete from chain_output_owner where utxo_id = :utxo_id", key)
        tx.run("delete from meta where name = 'p_moves_in_proposals'")

    drawn.run(drawn.store.write(lose))
    assert (listed_rows(drawn) != expected) == (moving > 0)
    list_again(drawn, lambda _: None)
    assert listed_rows(drawn) == expected
