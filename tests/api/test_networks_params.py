"""The parameters of every operation of the primary network, as the clients know them: names, limits, defaults, words.

Each row of the table is one operation. A value at a limit is taken, one beyond it is refused by the parameter's name.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.networks_scene import NetworkScene, network_scene
from tests.api.test_networks import RICH

from icefall.api.describing.openapi import document
from icefall.api.http.row import DATA, METRICS
from icefall.api.networks.endpoints import NETWORKS_ENDPOINTS
from icefall.api.networks.metrics_endpoints import NETWORK_METRICS_ENDPOINTS
from icefall.evm.enriching.reader import CURRENCIES

RECORDING = "p-local-1"
PRIMARY = "11111111111111111111111111111111LpoYY"
NODE = "NodeID-7Xhw2mDxuDS44j42TCB6U5579esbSt3Lg"
RICH_ADDRESS = RICH[RECORDING]
N, B = "/v1/networks/fuji", "/v1/networks/fuji/blockchains/{chain}"
TIMES = {"startTimestamp": (0, 2**32 - 1), "endTimestamp": (0, 2**32 - 1)}
PAGES: dict[str, Any] = {"pageSize": (1, 100, 10), "pageToken": ""}
MANY: dict[str, Any] = PAGES | {"pageSize": (1, 10_000, 100)}
ORDER = {"sortOrder": ("asc", "desc")}
TX_TYPES = {"txTypes": ["ImportTx", "CreateAssetTx", "UNKNOWN"]}
UTXOS: dict[str, Any] = {
    **PAGES, **ORDER, "assetId": PRIMARY, "includeSpent": True, "minUtxoAmount": (0, 2**64 - 1, 0),
    "sortBy": ("timestamp", "amount"),
}  # fmt: skip
VALIDATORS: dict[str, Any] = {
    **PAGES,
    **ORDER,
    "nodeIds": "7Xhw",
    "rewardAddresses": RICH_ADDRESS,
    "subnetId": PRIMARY,
    "validationStatus": ("active", "pending", "completed", "removed"),
    "sortBy": ("blockIndex", "delegationCapacity", "timeRemaining", "delegationFee", "uptimePerformance"),
    "minTimeRemaining": (0, 2**31 - 1),
    "maxTimeRemaining": (0, 2**31 - 1),
    "minDelegationCapacity": (0, 720_000_000_000_000_000),
    "maxDelegationCapacity": (0, 720_000_000_000_000_000),
    "minFeePercentage": (2, 100),
    "maxFeePercentage": (2, 100),
    "minUptimePerformance": (0, 100),
    "maxUptimePerformance": (0, 100),
}
ACTIVE_ONLY = ("delegationCapacity", "timeRemaining", "delegationFee")
REWARDS: dict[str, Any] = {**PAGES, **ORDER, "addresses": RICH_ADDRESS, "nodeIds": NODE}
ADDRESSES = {"addresses": RICH_ADDRESS}
# Path, chains, parameters (least, most and default; words; a switch; an example), and what must be given.
TABLE: list[tuple[str, str, dict[str, Any], str]] = [
    (N, "-", {}, ""),
    (f"{B}/blocks", "pxc", {**PAGES, **TIMES}, ""),
    (f"{B}/nodes/{NODE}/blocks", "pxc", {**PAGES, **TIMES}, ""),
    (f"{B}/transactions", "p", {**PAGES, **TIMES, **ORDER, **TX_TYPES, **ADDRESSES, "l1ValidationId": PRIMARY}, ""),
    (f"{B}/transactions", "xc", {**PAGES, **TIMES, **ORDER, **TX_TYPES, **ADDRESSES}, ""),
    (f"{B}/transactions:listStaking", "p", {**PAGES, **TIMES, **ORDER, **TX_TYPES, **ADDRESSES}, ""),
    (f"{B}/utxos", "pxc", {**UTXOS, **ADDRESSES}, "addresses"),
    (f"{B}/balances", "pxc", {**ADDRESSES, "blockTimestamp": (0, 1_900_000_000)}, "addresses"),
    (f"{B}/lastActivityTimestampByAddresses", "px", ADDRESSES, "addresses"),
    (f"{B}/vertices", "x", PAGES, ""),
    (f"{B}/vertices:listByHeight", "x", {**PAGES, **ORDER, "vertexHeight": (0, 2**63 - 1)}, "vertexHeight"),
    (f"{N}/addresses:listChainIds", "-", ADDRESSES, "addresses"),
    (f"{N}/validators", "-", VALIDATORS, ""),
    (f"{N}/validators/{NODE}", "-", {**PAGES, **ORDER, "validationStatus": VALIDATORS["validationStatus"]}, ""),
    (f"{N}/delegators", "-", {**PAGES, **ORDER, "rewardAddresses": RICH_ADDRESS, "nodeIds": NODE,
                              "delegationStatus": ("active", "pending", "completed")}, ""),
    (f"{N}/l1Validators", "-", {**PAGES, "l1ValidationId": PRIMARY, "nodeId": NODE, "subnetId": PRIMARY,
                                "includeInactiveL1Validators": True}, ""),
    (f"{N}/subnets", "-", {**MANY, **ORDER}, ""),
    (f"{N}/blockchains", "-", {**MANY, **ORDER}, ""),
    (f"{N}/rewards", "-", {**REWARDS, "currency": CURRENCIES}, "addresses"),
    (f"{N}/rewards:listPending", "-", REWARDS, "addresses"),
    ("/v1/avax/supply", "-", {}, ""),
    ("/v2/networks/fuji/metrics/validatorCount", "-",
     {**TIMES, "subnetId": PRIMARY, "pageSize": (1, 2160, 100), "pageToken": ""}, ""),
    (f"/v2/subnets/{PRIMARY}/validators:getAddresses", "-",
     {**TIMES, "network": ("mainnet", "fuji", "testnet"), "pageSize": (1, 5000, 1000), "pageToken": ""}, ""),
    ("/v2/validators/metrics/totalCumulativeFeesDaily", "-", TIMES, ""),
    (f"/v2/subnet/{PRIMARY}/metrics/perSubnetDailyFeesPaid", "-", TIMES, ""),
    (f"/v2/validator/{NODE}/metrics/perNodeCumulativeFeesPaid", "-", TIMES, ""),
    (f"/v2/validation/{PRIMARY}/metrics/validationFeesDaily", "-", TIMES, ""),
]  # fmt: skip
CASES = [
    pytest.param(path.replace("{chain}", f"{chain}-chain"), params, needed, id=f"{path} {chain}")
    for path, chains, params, needed in TABLE
    for chain in chains
]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkScene]:
    with network_scene(RECORDING, tmp_path_factory.mktemp("network")) as found:
        yield found


def taken(value: Any) -> list[str]:
    """Values that a parameter takes: the limits, each word, both ways of a switch, the example."""
    if isinstance(value, bool):
        return ["true", "false"]
    if isinstance(value, tuple) and isinstance(value[0], int):
        return [str(value[0]), str(value[1])]
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)] if value else []


def refused(value: Any) -> list[str]:
    """Values that it does not take."""
    if isinstance(value, bool):
        return ["1", "TRUE", ""]
    if isinstance(value, tuple) and isinstance(value[0], int):
        return [str(value[0] - 1), str(value[1] + 1), "", "x"]
    return ["no-such-word!", ""]


def refusal(path: str, name: str, values: dict[str, str]) -> bool:
    """Whether a value that is fine by itself does not fit the operation here."""
    if name == "sortBy" and values[name] in ACTIVE_ONLY:
        return values.get("validationStatus", "active") != "active"
    return name == "network" and values[name] == "mainnet"  # another is served


@pytest.mark.parametrize(("path", "params", "needed"), CASES)
def test_values_at_the_limits_are_taken_and_others_refused(
    path: str, params: dict[str, Any], needed: str, scene: NetworkScene
) -> None:
    base = {needed: taken(params[needed])[0]} if needed else {}

    def ask(**values: str) -> tuple[int, Any]:
        query = "&".join(f"{name}={text}" for name, text in (base | values).items())
        return scene.get(f"{path}?{query}")

    assert ask()[0] == 200
    assert ask(includeInactive="x", filterSpamTokens="")[0] == 200  # unknown names are ignored
    for name, value in params.items():
        for text in taken(value):
            status, answer = ask(**{name: text})
            if not refusal(path, name, {name: text}):
                assert status == 200, (name, text, answer)
        for text in refused(value):
            status, answer = ask(**{name: text})
            assert (status, answer["message"].startswith(name)) == (400, True), (name, text, answer)
    if needed:
        status, answer = scene.get(path)
        assert (status, needed in answer["message"]) == (400, True)


def test_defaults_are_as_documented() -> None:
    documents = [document(DATA, [*NETWORKS_ENDPOINTS], "0"), document(METRICS, [*NETWORK_METRICS_ENDPOINTS], "0")]
    found = {path: row["get"] for one in documents for path, row in one["paths"].items() if "get" in row}
    seen = set()
    for path, chains, params, _ in TABLE:
        pattern = path.replace("fuji", "{network}").replace("{chain}", "{blockchainId}").replace(NODE, "{nodeId}")
        if "/metrics/" in path:
            pattern = pattern.rpartition("/")[0] + "/{metric}"
        for where in ("subnet", "subnets"):
            pattern = pattern.replace(f"/{where}/{PRIMARY}", f"/{where}/{{subnetId}}")
        pattern = pattern.replace(PRIMARY, "{l1ValidationId}")
        shown = {one["name"]: one for one in found[pattern]["parameters"] if one["in"] == "query"}
        seen.add(pattern)
        missing = set(shown) - set(params)
        assert missing <= ({"l1ValidationId"} if chains == "xc" else set())
        assert set(params) <= set(shown)
        for name, value in params.items():
            schema = shown[name]["schema"]
            if isinstance(value, tuple) and isinstance(value[0], int):
                at_most = value[1] if name != "blockTimestamp" else 2**32 - 1
                assert (schema["minimum"], schema["maximum"]) == (value[0], at_most)
                assert schema.get("default") == (value[2] if len(value) == 3 else None)
            elif isinstance(value, tuple):
                assert sorted(schema["enum"]) == sorted(value)
    assert set(found) - seen == {
        "/v1/networks/{network}/blockchains/{blockchainId}",
        "/v1/networks/{network}/blockchains/{blockchainId}/assets/{assetId}",
        "/v1/networks/{network}/blockchains/{blockchainId}/assets/{assetId}/transactions",
        "/v1/networks/{network}/blockchains/{blockchainId}/blocks/{blockId}",
        "/v1/networks/{network}/blockchains/{blockchainId}/transactions/{txHash}",
        "/v1/networks/{network}/blockchains/{blockchainId}/vertices/{vertexHash}",
        "/v1/networks/{network}/subnets/{subnetId}",
    }
