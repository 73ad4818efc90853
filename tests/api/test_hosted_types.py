"""Every answer about the primary network has the types of the hosted service's clients: no field more, none less, and
each with the kind and the values that they know. In both dialects, on both recordings."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from tests.api.hosted_types import fields_of, hosted_types, strict
from tests.api.networks_scene import NetworkScene, asked, networks_app
from tests.api.test_networks import RICH

from icefall.api.describing.openapi import document
from icefall.api.dialect import INTERFACE, LIVE
from icefall.api.networks.endpoints import NETWORKS_ENDPOINTS
from icefall.api.networks.metrics_endpoints import NETWORK_METRICS_ENDPOINTS
from icefall.api.networks.network import Networks

P, X, C = (f"/v1/networks/fuji/blockchains/{one}-chain" for one in "pxc")
N = "/v1/networks/fuji"
B = "/v1/networks/{network}/blockchains/{blockchainId}"
IDS = f"GET {N.replace('fuji', '{network}')}/addresses:listChainIds"


@pytest.fixture(scope="module", params=list(RICH))
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkScene]:
    opened = NetworkScene(request.param, tmp_path_factory.mktemp("types"))
    yield opened
    opened.close()


@cache
def validator_of(operation: str) -> jsonschema.Draft202012Validator:
    schema = strict(hosted_types()[operation])
    if operation == IDS:  # a closed list of the public networks' IDs, of which no other network has one
        schema["properties"]["addresses"]["items"]["properties"]["blockchainIds"]["items"] = {"type": "string"}
    if operation == "GET /v1/avax/supply":  # known only where C is indexed from its first block on
        schema["required"] = [name for name in schema["required"] if name != "totalCBurned"]
    return jsonschema.Draft202012Validator(schema)


class Asker:
    """Asks the interface and checks each answer against the types of its operation."""

    def __init__(self, scene: NetworkScene, dialect: Any) -> None:
        self._scene = scene
        self._app = networks_app(Networks(scene.network), dialect)
        self.checked: dict[str, int] = {}

    def get(self, operation: str, target: str) -> Any:
        status, answer = self._scene.run(asked(self._app, target))
        assert status == 200, (target, status, answer)
        return self._check(f"GET {operation}", target, answer)

    def post(self, operation: str, target: str, addresses: str) -> Any:
        body = b'{"addresses":"%s"}' % addresses.encode()
        status, answer = self._scene.run(asked(self._app, target, body))
        assert status == 200, (target, status, answer)
        return self._check(f"POST {operation}", target, answer)

    def _check(self, operation: str, target: str, answer: Any) -> Any:
        errors = sorted(validator_of(operation).iter_errors(answer), key=lambda one: len(one.path))
        best = [jsonschema.exceptions.best_match([one]) for one in errors[:3]]
        assert not errors, (target, [(list(one.absolute_path), one.message[:300]) for one in best])
        self.checked[operation] = self.checked.get(operation, 0) + 1
        return answer

    def answers(self, target: str) -> bool:
        """Whether there is anything; else the answer is a 404."""
        status = self._scene.run(asked(self._app, target))[0]
        assert status in (200, 404), (target, status)
        return status == 200

    def pages(self, operation: str, target: str, key: str) -> list[Any]:
        found: list[Any] = []
        token = ""
        while True:
            sign = "&" if "?" in target else "?"
            page = self.get(operation, f"{target}{sign}pageSize=100" + (f"&pageToken={token}" if token else ""))
            found += page[key]
            token = page.get("nextPageToken", "")
            if not token:
                return found


def ask_chains(asker: Asker) -> set[str]:
    """Blocks, transactions and outputs of every chain; returns the addresses that were seen."""
    addresses: set[str] = set()
    for chain in (P, X, C):
        blocks = asker.pages(f"{B}/blocks", f"{chain}/blocks", "blocks")
        for one in blocks[:: max(1, len(blocks) // 30)]:
            asker.get(f"{B}/blocks/{{blockId}}", f"{chain}/blocks/{one['blockHash']}")
        proposers = {one["proposerDetails"].get("proposerNodeId") for one in blocks if "proposerDetails" in one}
        for node in proposers - {None}:
            asker.pages(f"{B}/nodes/{{nodeId}}/blocks", f"{chain}/nodes/{node}/blocks", "blocks")
        for tx in asker.pages(f"{B}/transactions", f"{chain}/transactions", "transactions"):
            asker.get(f"{B}/transactions/{{txHash}}", f"{chain}/transactions/{tx['txHash']}")
            for utxo in (*tx.get("consumedUtxos", ()), *tx.get("emittedUtxos", ())):
                addresses.update(utxo["addresses"])
    asker.pages(f"{B}/transactions:listStaking", f"{P}/transactions:listStaking", "transactions")
    for kind in ("vertices", "vertices:listByHeight?vertexHeight=0"):
        asker.pages(f"{B}/{kind.partition('?')[0]}", f"{X}/{kind}", "vertices")
    return addresses


def ask_addresses(asker: Asker, addresses: set[str]) -> None:
    for address in sorted(addresses):
        asker.get(IDS.removeprefix("GET "), f"{N}/addresses:listChainIds?addresses={address}")
        for kind in ("rewards", "rewards:listPending"):
            key = "historicalRewards" if kind == "rewards" else "pendingRewards"
            asker.pages(f"/v1/networks/{{network}}/{kind}", f"{N}/{kind}?addresses={address}", key)
        for chain in (P, X, C):
            utxos = asker.pages(f"{B}/utxos", f"{chain}/utxos?addresses={address}&includeSpent=true", "utxos")
            asker.post(f"{B}/utxos", f"{chain}/utxos?includeSpent=true&sortBy=amount", address)
            asker.get(f"{B}/balances", f"{chain}/balances?addresses={address}")
            for time in {one.get("blockTimestamp", one.get("timestamp")) for one in utxos[:8]}:
                asker.get(f"{B}/balances", f"{chain}/balances?addresses={address}&blockTimestamp={time}")
            if utxos:
                where = f"{chain}/lastActivityTimestampByAddresses"
                operation = f"{B}/lastActivityTimestampByAddresses"
                if asker.answers(f"{where}?addresses={address}"):  # outputs that it only exported are listed too
                    asker.get(operation, f"{where}?addresses={address}")
                    asker.post(operation, where, address)
            for utxo in utxos if chain == X else ():
                asset = utxo["asset"]["assetId"]
                asker.get(f"{B}/assets/{{assetId}}", f"{X}/assets/{asset}")
                asker.get(f"{B}/assets/{{assetId}}/transactions", f"{X}/assets/{asset}/transactions")


def ask_staking(asker: Asker) -> None:
    of = "/v1/networks/{network}"
    asker.get(of, N)
    for status in ("active", "pending", "completed", "removed"):
        for one in asker.pages(f"{of}/validators", f"{N}/validators?validationStatus={status}", "validators"):
            asker.pages(f"{of}/validators/{{nodeId}}", f"{N}/validators/{one['nodeId']}", "validators")
            for kind, key in (("rewards", "historicalRewards"), ("rewards:listPending", "pendingRewards")):
                asker.pages(f"{of}/{kind}", f"{N}/{kind}?nodeIds={one['nodeId']}", key)
        if status != "removed":
            asker.pages(f"{of}/delegators", f"{N}/delegators?delegationStatus={status}", "delegators")
    for one in asker.pages(f"{of}/l1Validators", f"{N}/l1Validators?includeInactiveL1Validators=true", "validators"):
        target = f"/v2/validation/{one['validationId']}/metrics/validationFeesDaily"
        asker.get("/v2/validation/{l1ValidationId}/metrics/{metric}", target)
        asker.get(
            "/v2/validator/{nodeId}/metrics/{metric}", f"/v2/validator/{one['nodeId']}/metrics/perNodeDailyFeesPaid"
        )
    for one in asker.pages(f"{of}/subnets", f"{N}/subnets", "subnets"):
        subnet = one["subnetId"]
        asker.get(f"{of}/subnets/{{subnetId}}", f"{N}/subnets/{subnet}")
        asker.get("/v2/subnet/{subnetId}/metrics/{metric}", f"/v2/subnet/{subnet}/metrics/perSubnetDailyFeesPaid")
        asker.get("/v2/subnets/{subnetId}/validators:getAddresses", f"/v2/subnets/{subnet}/validators:getAddresses")
    for one in asker.pages(f"{of}/blockchains", f"{N}/blockchains", "blockchains"):
        asker.get(f"{of}/blockchains/{{blockchainId}}", f"{N}/blockchains/{one['blockchainId']}")
    asker.get("/v1/avax/supply", "/v1/avax/supply")
    asker.get("/v2/validators/metrics/{metric}", "/v2/validators/metrics/totalValidatorFeesDaily")
    for metric in ("validatorCount", "validatorWeight", "delegatorCount", "delegatorWeight"):
        asker.get("/v2/networks/{network}/metrics/{metric}", f"/v2/networks/fuji/metrics/{metric}")


# Operations without an answer: neither network has vertices, and no node signed the blocks of the first one.
NONE_THERE = {
    "p-local-1": {f"GET {B}/vertices/{{vertexHash}}", f"GET {B}/nodes/{{nodeId}}/blocks"},
    "p-forks-1": {f"GET {B}/vertices/{{vertexHash}}"},
}


@pytest.mark.parametrize("dialect", [INTERFACE, LIVE], ids=["interface", "live"])
def test_every_answer_fits_the_types_of_clients(scene: NetworkScene, dialect: Any) -> None:
    asker = Asker(scene, dialect)
    addresses = ask_chains(asker)
    assert len(addresses) > 3
    ask_addresses(asker, addresses)
    ask_staking(asker)
    missing = hosted_types().keys() - asker.checked.keys()
    assert missing == NONE_THERE[scene.playback.recording]


# -- our document, field by field --------------------------------------------------------------------------------------

# Where our document says another thing than theirs, by the name of the field, and why. No answer of the recorded
# networks has another type than theirs for these: the test above reads them all.
DIFFERENT = {
    "blockchainIds": "theirs is a closed list of the public networks' IDs, and other networks have other IDs",
    "city": "there is no geolocation",
    "country": "there is no geolocation",
    "countryCode": "there is no geolocation",
    "latitude": "there is no geolocation",
    "longitude": "there is no geolocation",
    "geolocation": "always null",
    "historicalPrice": "rewards have no prices",
    "currencyCode": "rewards have no prices",
    "value": "rewards have no prices",
    "totalCBurned": "only where the C-Chain is indexed from its first block on",
    "totalXBurned": "not where an older release has listed the X-Chain",
    "txType": "no transaction is UNKNOWN",
    "network": "the newest operations know no testnet",
    "proofOfPossession": "theirs of L1 validators are any object; not of validators that an older release stored",
    "publicKey": "theirs of L1 validators, and of newer credentials, are any object",
    "signature": "theirs, of newer credentials, are any object; ours always has one",
    "credentials": "theirs, of newer outputs, are any object",
    "proposerId": "ours always has one",
    "proposerParentId": "ours always has one",
    "type": "the newer outputs do not say which types of assets there are",
    "utxoBytes": "absent from outputs in transactions; both have one shape here",
}


def test_the_document_names_the_same_fields() -> None:
    rows = [*NETWORKS_ENDPOINTS, *NETWORK_METRICS_ENDPOINTS]
    shown = document("data", [*rows], "1")
    found: dict[str, list[str]] = {}
    compared = 0
    for row in rows:
        theirs = hosted_types().get(f"{row.verb} {row.path}")
        if theirs is None:
            continue
        answer = shown["paths"][row.path][row.verb.lower()]["responses"]["200"]["content"]["application/json"]
        ours, known = fields_of(answer["schema"], shown), fields_of(theirs)
        compared += len(known)
        for field in sorted({*ours, *known}):
            if ours.get(field) != known.get(field):
                name = field.rpartition(".")[2].removesuffix("[]")
                found.setdefault(name, []).append(f"{row.path}: {field}: {ours.get(field)}, not {known.get(field)}")
    assert compared > 1000
    assert found.keys() == DIFFERENT.keys(), {name: found[name] for name in found.keys() - DIFFERENT.keys()}
