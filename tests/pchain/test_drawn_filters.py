"""Filters, orders and pages of the staking lists of random P-Chains: each page is what the whole list says.

ICEFALL_FUZZ_SEEDS chains are drawn, from ICEFALL_FUZZ_SEED on; so are the questions.
"""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api import networks_scene
from tests.pchain.drawing import ADDRESSES
from tests.pchain.drawn_network import SEED, SEEDS, DrawnNetwork, P, text
from tests.pchain.naive_history import Period

from icefall.wire.ids import NODE_ID_PREFIX, id_text

N = "/v1/networks/custom"
PRIMARY = id_text(bytes(32))
TRIES = 40
SORTS = ("delegationCapacity", "timeRemaining", "delegationFee")  # of active validators of one subnet


@pytest.fixture(scope="module", params=range(SEED, SEED + SEEDS))
def drawn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DrawnNetwork]:
    network = DrawnNetwork(tmp_path_factory.mktemp("drawn"), request.param, shared=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(networks_scene, "NOW", network.naive.time + 3)
        yield network
    network.close()


def owners_of(period: Period) -> set[str]:
    body = period.staker.body
    owner = getattr(body, "validation_rewards_owner", None) or getattr(body, "rewards_owner", None)
    return set() if owner is None else {text(one) for one in owner.addresses}


def by_txid(drawn: DrawnNetwork) -> dict[str, Period]:
    return {id_text(txid): period for txid, period in drawn.naive.periods.items()}


def some(source: random.Random, names: list[str], most: int = 3) -> list[str]:
    return source.sample(names, min(len(names), source.randint(1, most)))


def query(given: dict[str, Any]) -> str:
    return "".join(f"{name}={value}&" for name, value in given.items())


class ValidatorQuestion:
    """A drawn query of validators, and what it must leave of the whole list."""

    def __init__(self, source: random.Random, every: list[Any], periods: dict[str, Period], now: int) -> None:
        self.given: dict[str, Any] = {}
        self._tests: list[Any] = []
        self._periods, self._now = periods, now
        sort = source.choice(("", "", "blockIndex", *SORTS))
        if sort:
            self.given["sortBy"] = sort
        self.sort = sort if sort in SORTS else ""
        self.upwards = source.random() < 0.5
        self.given["sortOrder"] = "asc" if self.upwards else "desc"
        nodes = sorted({one["nodeId"] for one in every})
        subnets = sorted({one["subnetId"] for one in every})
        if source.random() < 0.4:
            self._nodes(source, some(source, nodes))
        if source.random() < 0.3:
            wanted = set(some(source, [text(one) for one in ADDRESSES]))
            self.given["rewardAddresses"] = ",".join(sorted(wanted))
            self._tests.append(lambda one: bool(owners_of(periods[one["txHash"]]) & wanted))
        if source.random() < 0.4 or self.sort:
            subnet = source.choice(subnets) if not self.sort or source.random() < 0.3 else PRIMARY
            self.given |= {"subnetId": subnet} if subnet != PRIMARY or source.random() < 0.5 or not self.sort else {}
            self._tests.append(lambda one: one["subnetId"] == subnet)
        status = "active" if self.sort else source.choice(("", "", "active", "pending", "completed", "removed"))
        if status:
            self.given |= {} if self.sort and source.random() < 0.5 else {"validationStatus": status}
            self._tests.append(lambda one: one["validationStatus"] == status)
        for name, low, high in (
            ("TimeRemaining", 0, 500),
            ("DelegationCapacity", 0, 10**16),
            ("FeePercentage", 2, 100),
            ("UptimePerformance", 0, 100),
        ):
            if source.random() < 0.15:
                least, most = sorted((source.randint(low, high), source.randint(low, high)))
                self._between(name, least, most, source.random())

    def _nodes(self, source: random.Random, nodes: list[str]) -> None:
        bare = [one.removeprefix(NODE_ID_PREFIX) for one in nodes]
        parts = [one if source.random() < 0.6 else one[(at := source.randint(0, 20)) : at + 2] for one in bare]
        self.given["nodeIds"] = ",".join(f"{NODE_ID_PREFIX}{one}" if source.random() < 0.5 else one for one in parts)
        self._tests.append(lambda one: any(part in one["nodeId"][len(NODE_ID_PREFIX) :] for part in parts))

    def _between(self, name: str, low: int, high: int, which: float) -> None:
        bounds = {"min": low} if which < 0.4 else {"max": high} if which < 0.8 else {"min": low, "max": high}
        self.given |= {f"{end}{name}": value for end, value in bounds.items()}
        least, most = bounds.get("min", -1), bounds.get("max", 10**30)
        self._tests.append(lambda one: (value := self._value(name, one)) is not None and least <= value <= most)

    def _value(self, name: str, one: Any) -> float | None:
        if name == "FeePercentage":
            return float(one["delegationFee"]) if one["subnetId"] == PRIMARY else None
        if one["validationStatus"] != "active":
            return None
        if name == "TimeRemaining":
            return max(0, int(one["endTimestamp"]) - self._now)
        if name == "DelegationCapacity":
            return int(one.get("delegationCapacity", 0))
        return float(one["uptimePerformance"])

    def answer(self, every: list[Any]) -> list[Any]:
        """What is left, of the whole list newest first."""
        found = [one for one in every if all(test(one) for test in self._tests)]
        if self.sort:
            found.sort(key=self._place, reverse=True)
        return found[::-1] if self.upwards else found

    def _place(self, one: Any) -> tuple[int, int]:
        body = self._periods[one["txHash"]].staker.body
        value = {
            "delegationCapacity": int(one.get("delegationCapacity", 0)),
            "timeRemaining": one["endTimestamp"],
            "delegationFee": getattr(body, "shares", 0),
        }[self.sort]
        return int(value), list(self._periods).index(one["txHash"])


def test_validators(drawn: DrawnNetwork) -> None:
    source, now = random.Random(SEED), drawn.naive.time + 3
    every = drawn.walked(f"{N}/validators?", "validators", 100)
    periods = by_txid(drawn)
    answered = 0
    for _ in range(TRIES):
        one = ValidatorQuestion(source, every, periods, now)
        target = f"{N}/validators?{query(one.given)}"
        expected = one.answer(every)
        assert drawn.walked(target, "validators", source.randint(1, 12)) == expected, target
        answered += len(expected)
    assert answered
    for node in sorted({one["nodeId"] for one in every}):
        status = source.choice(("active", "pending", "completed", "removed"))
        for given, wanted in (("", None), (f"validationStatus={status}&", status)):
            expected = [one for one in every if one["nodeId"] == node and wanted in (None, one["validationStatus"])]
            assert drawn.walked(f"{N}/validators/{node}?{given}", "validators", 2) == expected


def test_delegators(drawn: DrawnNetwork) -> None:
    source, periods = random.Random(SEED), by_txid(drawn)
    every = drawn.walked(f"{N}/delegators?", "delegators", 100)
    nodes = sorted({one["nodeId"] for one in every})
    for _ in range(TRIES):
        given: dict[str, Any] = {"sortOrder": source.choice(("asc", "desc"))}
        wanted, asked = (
            set(some(source, [text(one) for one in ADDRESSES])),
            set(some(source, nodes)) if nodes else set(),
        )
        status = source.choice(("active", "pending", "completed"))
        found = every
        if source.random() < 0.5:
            given["rewardAddresses"] = ",".join(f"P-{one}" for one in wanted)
            found = [one for one in found if owners_of(periods[one["txHash"]]) & wanted]
        if source.random() < 0.5 and asked:
            given["nodeIds"] = ",".join(asked)
            found = [one for one in found if one["nodeId"] in asked]
        if source.random() < 0.5:
            given["delegationStatus"] = status
            found = [one for one in found if one["delegationStatus"] == status]
        shown = drawn.walked(f"{N}/delegators?{query(given)}", "delegators", source.randint(1, 9))
        assert shown == (found if given["sortOrder"] == "desc" else found[::-1]), given


def test_rewards(drawn: DrawnNetwork) -> None:
    source = random.Random(SEED)
    nodes = sorted({one["nodeId"] for one in drawn.walked(f"{N}/validators?", "validators", 100)})
    for path, key in (("rewards", "historicalRewards"), ("rewards:listPending", "pendingRewards")):
        every = drawn.walked(f"{N}/{path}?nodeIds={','.join(nodes)}&", key, 100)
        for _ in range(TRIES):
            wanted, asked = set(some(source, [text(one) for one in ADDRESSES])), set(some(source, nodes))
            given: dict[str, Any] = {"addresses": ",".join(wanted), "nodeIds": ",".join(asked)}
            given.pop(source.choice(("addresses", "nodeIds", "neither")), None)
            upwards = source.random() < 0.5
            found = [
                one
                for one in every
                if ("addresses" not in given or wanted & set(one["addresses"]))
                and ("nodeIds" not in given or one["nodeId"] in asked)
            ]
            order = "asc" if upwards else "desc"
            shown = drawn.walked(f"{N}/{path}?{query(given)}sortOrder={order}&", key, source.randint(1, 9))
            assert sorted(shown, key=repr) == sorted(found, key=repr), given
            hashes = [one["txHash"] for one in found]
            assert [one["txHash"] for one in shown] == (hashes[::-1] if upwards else hashes)


def test_validators_of_l1s(drawn: DrawnNetwork) -> None:
    source, naive = random.Random(SEED), drawn.naive
    every = drawn.walked(f"{N}/l1Validators?includeInactiveL1Validators=true&", "validators", 100)
    assert {one["validationId"] for one in every} == {id_text(name) for name in naive.l1}
    places = [(one["creationTimestamp"], one["validationIdHex"]) for one in every]
    assert places == sorted(places, reverse=True)
    left = {id_text(name): one.until - naive.accrued if one.until else 0 for name, one in naive.l1.items()}
    assert {one["validationId"]: one["remainingBalance"] for one in every} == left
    for _ in range(TRIES if every else 0):
        given: dict[str, Any] = {}
        like, found = source.choice(every), every
        for name in ("nodeId", "subnetId"):
            if source.random() < 0.5:
                given[name] = like[name]
                found = [one for one in found if one[name] == given[name]]
        if source.random() < 0.5:
            given["includeInactiveL1Validators"] = "true"
        else:
            found = [one for one in found if one["remainingBalance"]]
        assert drawn.walked(f"{N}/l1Validators?{query(given)}", "validators", source.randint(1, 5)) == found


def test_balances_of_several_addresses(drawn: DrawnNetwork) -> None:
    """Outputs that several of the addresses own count once, now and at any time."""
    source, naive = random.Random(SEED), drawn.naive
    times = sorted({one.time for one in naive.made.values()})
    for _ in range(TRIES):
        wanted = source.sample(ADDRESSES, source.randint(2, 5))
        is_now = source.random() < 0.3
        at = naive.time + 3 if is_now else source.choice(times) + source.randint(0, 1)
        rows = {one.utxo_id: one for address in wanted for one in naive.owned(address)}
        total = count = 0
        for one in rows.values():
            if one.time <= at and (one.spent is None or one.spent[1] > at):
                total, count = total + one.inner.amount, count + 1
        for (txid, _), made in drawn.foreign.outputs.items():
            is_incoming = made.destination == drawn.foreign.p and made.time >= 0 and set(made.owners) & set(wanted)
            assert made.spent_time is not None or not is_incoming, txid
            if is_incoming and made.time <= at < (made.spent_time or 0):
                total, count = total + made.amount, count + 1
        asked = f"{P}/balances?addresses={','.join(map(text, wanted))}"
        shown = drawn.get(asked if is_now else f"{asked}&blockTimestamp={at}")["balances"]
        amounts = [one for rows in shown.values() for one in rows]
        assert (sum(int(one["amount"]) for one in amounts), sum(one["utxoCount"] for one in amounts)) == (total, count)
