"""The Explorer before a recorded primary network: its pages read the answers of the real interface on that network."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Route
from tests.api.networks_scene import NetworkScene
from tests.explorer.browser import Tab, tab
from tests.server import serving

RECORDING = "p-local-1"
NODE_URL = "http://node.example"  # no such host is asked: the tab answers for it
METRICS_URL = "http://metrics.example"
X_ID = "2eNy1mUFdmaxXNj1eQHUe7Np4gju9sJsEtWQ4MX3ToiNKuADed"
C_ID = "2owdGqyG6FFzTHy5qhenDXQcEghvr571KZE3gSfRJERSJinuwC"


class RecordedNetwork(NamedTuple):
    """`result` is what the interface answers, for tests to compare with."""

    opened: Tab
    result: Callable[[str], Any]


@contextmanager
def recorded_network(browser: Browser, folder: Path) -> Iterator[RecordedNetwork]:
    """A tab whose calls for the network are answered from the recording. The browser's thread has a loop of its own, so
    the interface is asked in another one."""
    with (
        ThreadPoolExecutor(1) as thread,
        serving("data", folder / "served", f"--node-url={NODE_URL}", f"--metrics-url={METRICS_URL}") as server,
    ):
        scene = thread.submit(NetworkScene, RECORDING, folder).result()

        def asked(target: str) -> tuple[int, Any]:
            return thread.submit(scene.get, target).result()

        def answer(route: Route) -> None:
            url = urlsplit(route.request.url)
            status, body = asked(f"{url.path}?{url.query}")
            route.fulfill(status=status, json=body, headers={"access-control-allow-origin": "*"})

        try:
            with tab(browser, server.url("data"), NODE_URL, METRICS_URL) as opened:
                for pattern in ("**/v1/networks/**", "**/v1/avax/supply*", f"{METRICS_URL}/**"):
                    opened.page.route(pattern, answer)
                opened.page.route(f"{NODE_URL}/**", _node(asked))
                yield RecordedNetwork(opened, lambda target: asked(f"/v1/networks/fuji{target}")[1])
        finally:
            thread.submit(scene.close).result()


def _node(asked: Callable[[str], tuple[int, Any]]) -> Callable[[Route], None]:
    """A node that says which network this is, and what of P has an ID; any other call finds nothing."""
    chains = {"X": X_ID, "C": C_ID}

    def network(target: str) -> Any:
        status, body = asked(f"/v1/networks/fuji{target}")
        return body if status == 200 else None

    def l1_validator(validation_id: str) -> Any:
        found = network(f"/l1Validators?includeInactiveL1Validators=true&l1ValidationId={validation_id}")
        return {"nodeID": found["validators"][0]["nodeId"]} if found["validators"] else None

    def validated_by(chain_id: str) -> Any:
        found = network(f"/blockchains/{chain_id}")
        return found and {"subnetID": found["subnetId"]}

    results: dict[str, Callable[[Any], Any]] = {
        "platform.getFeeState": lambda _: {"capacity": 994821, "excess": 5179, "price": 1},
        "platform.getValidatorFeeState": lambda _: {"excess": 0, "price": 7},
        "info.getNetworkName": lambda _: {"networkName": "fuji"},
        "info.getBlockchainID": lambda params: {"blockchainID": chains[params["alias"]]},
        "platform.getTx": lambda params: network(f"/blockchains/p-chain/transactions/{params['txID']}"),
        "platform.getSubnet": lambda params: network(f"/subnets/{params['subnetID']}"),
        "platform.validatedBy": lambda params: validated_by(params["blockchainID"]),
        "platform.getL1Validator": lambda params: l1_validator(params["validationID"]),
    }

    def answer(route: Route) -> None:
        call = json.loads(route.request.post_data or "{}")
        found = results.get(call.get("method", ""))
        result = found(call["params"]) if found else None
        body = {"error": {"code": -32000, "message": "not found"}} if result is None else {"result": result}
        headers = {"access-control-allow-origin": "*"}
        route.fulfill(headers=headers, json={"jsonrpc": "2.0", "id": 1, **body})

    return answer
