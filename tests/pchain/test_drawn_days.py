"""Series by day of random P-Chains, with days of a few seconds, against a naive chain that is walked second by second.

ICEFALL_FUZZ_SEEDS chains are drawn, from ICEFALL_FUZZ_SEED on.
"""

from collections.abc import Iterator

import pytest
from tests.pchain.drawn_network import SEED, SEEDS, DrawnNetwork
from tests.pchain.naive_days import ALL, NaiveDays

from icefall.api.networks.handlers import metrics as handlers
from icefall.api.networks.schema.metrics import NODE_FEES, STAKE_SERIES, SUBNET_FEES, TOTAL_FEES, VALIDATION_FEES
from icefall.pchain import day_sums, l1_fees, state
from icefall.wire.ids import NODE_ID_PREFIX, id_text, short_id_text

DAYS = (60, 5, 9, 1000)
MOST = 2160  # days of an answer


class DayNetwork(DrawnNetwork):
    """A drawn network whose naive chain counts by days."""

    naive: NaiveDays

    def series(self, target: str) -> list[tuple[int, int]]:
        return [(one["timestamp"], one["value"]) for one in self.get(target)["results"]]


@pytest.fixture(scope="module", params=range(SEED, SEED + SEEDS))
def drawn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DayNetwork]:
    day_s = DAYS[request.param % len(DAYS)]
    with pytest.MonkeyPatch.context() as patch:
        for module in (day_sums, l1_fees, state, handlers):
            patch.setattr(module, "DAY_S", day_s)
        patch.setattr(NaiveDays, "day_s", day_s)
        found = DayNetwork(tmp_path_factory.mktemp("drawn"), request.param, NaiveDays)
        yield found
        found.close()


def test_what_is_staked_at_the_end_of_each_day(drawn: DayNetwork) -> None:
    subnets = {subnet for subnet, _ in drawn.naive.stakes_of}
    for subnet in subnets:
        query = f"&subnetId={id_text(subnet)}" if subnet != ALL else ""
        for field, metric in enumerate(("validatorCount", "validatorWeight", "delegatorCount", "delegatorWeight")):
            assert metric in STAKE_SERIES
            shown = drawn.series(f"/v2/networks/custom/metrics/{metric}?pageSize={MOST}{query}")
            expected = drawn.naive.stake_series(subnet, field)[:MOST]
            assert shown[: len(expected)] == expected, (metric, subnet)
            assert not any(value for _, value in shown[len(expected) :])  # one began and ended within a block


def test_what_l1_validators_pay(drawn: DayNetwork) -> None:
    naive = drawn.naive
    scopes: list[tuple[str, dict[str, str], set[bytes]]] = [("/v2/validators", TOTAL_FEES, set(naive.validations))]
    scopes += [(f"/v2/validation/{id_text(key)}", VALIDATION_FEES, {key}) for key in naive.validations]
    for subnet in {subnet for subnet, _ in naive.validations.values()}:
        some = {key for key, one in naive.validations.items() if one[0] == subnet}
        scopes.append((f"/v2/subnet/{id_text(subnet)}", SUBNET_FEES, some))
    for node in {node for _, node in naive.validations.values()}:
        some = {key for key, one in naive.validations.items() if one[1] == node}
        scopes.append((f"/v2/validator/{NODE_ID_PREFIX}{short_id_text(node)}", NODE_FEES, some))
    for path, metrics, some in scopes:
        for metric, kind in metrics.items():
            shown = drawn.series(f"{path}/metrics/{metric}")
            assert shown == naive.fee_series(some, kind)[:MOST], (path, metric)
