"""Webhooks of the primary network as callers ask for them: what is read, shown again, and refused."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.pchain.recorded import Playback
from tests.webhooks.primary_scene import PrimaryScene

from icefall.api.data.handlers.primary_webhooks import primary_metadata, read_request
from icefall.api.data.render.webhook_body import sample_body
from icefall.api.data.schema.webhooks import CreateWebhook
from icefall.compose.webhooks import primary_names
from icefall.errors import BadRequest
from icefall.webhooks.model import ACTIVE, Webhook
from icefall.webhooks.primary_matching import encode_filter
from icefall.webhooks.primary_names import WebhookNetworks

P_ADDRESS = "P-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"
NODE, SUBNET = "NodeID-7Xhw2mDxuDS44j42TCB6U5579esbSt3Lg", "29uVeLPJB1eQJkzRemU8g8wZDw5uJRqpab5U2mX9euieVwiEbL"
URL = "https://example.com/hook"
OF_ADDRESSES: dict[str, Any] = {
    "eventType": "primary_network_address_activity", "url": URL, "network": "fuji", "chainId": "p-chain",
    "metadata": {
        "keyType": "addresses", "keys": [P_ADDRESS],
        "subEvents": {"addressActivitySubEvents": ["balance_change", "reward_distribution", "balance_threshold"]},
        "balanceThresholdFilter": {"balanceType": "unlockedStaked", "balanceThreshold": "2000000000"},
    },
}  # fmt: skip
OF_VALIDATORS: dict[str, Any] = {
    "eventType": "validator_activity", "url": URL, "network": "fuji",
    "metadata": {
        "keyType": "nodeId", "keys": [NODE], "subnetIds": [SUBNET],
        "subEvents": {"validatorActivitySubEvents": ["validator_stake", "l1_validator_balance_threshold"]},
        "l1ValidatorFeeBalanceThreshold": "100000000",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> WebhookNetworks:
    scene = PrimaryScene(tmp_path_factory.mktemp("network"), "p-local-1")
    Playback(scene.folder, "p-local-1").store.close()
    scene.close()
    return WebhookNetworks(primary_names(scene.network()))


def read(networks: WebhookNetworks, body: dict[str, Any]) -> Any:
    return read_request(msgspec.convert(body, CreateWebhook), networks)


def changed(body: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    merged = {name: value for name, value in {**body["metadata"], **metadata}.items() if value is not None}
    return {**body, "metadata": merged}


@pytest.mark.parametrize("body", [OF_ADDRESSES, OF_VALIDATORS])
def test_a_webhook_is_shown_as_it_was_asked_for(networks: WebhookNetworks, body: dict[str, Any]) -> None:
    wanted = read(networks, body)
    stored = Webhook(
        "id", "", body["eventType"], wanted.chain_id, URL, "", "", ACTIVE, "", 0, 0, "[]", 0, 0, None, 1,
        encode_filter(wanted.filter).decode(),
    )  # fmt: skip
    shown = msgspec.to_builtins(primary_metadata(stored, wanted.keys, networks))
    asked = body["metadata"]
    assert {**shown, "keys": None} == {**asked, "keys": None}
    assert [one.removeprefix("P-") for one in asked["keys"]] == shown["keys"]
    test = msgspec.json.decode(sample_body(stored, "message", 5))
    assert test["test"] is True
    assert test["event"]["chainId"] == wanted.chain_id


SUB = "subEvents"
REFUSED = [
    {**OF_ADDRESSES, "network": "mainnet"},
    {key: value for key, value in OF_ADDRESSES.items() if key != "network"},
    {key: value for key, value in OF_ADDRESSES.items() if key != "chainId"},
    {**OF_ADDRESSES, "chainId": "43114"},
    {**OF_ADDRESSES, "chainId": "X"},
    {**OF_ADDRESSES, "chainId": "C"},
    changed(OF_ADDRESSES, keyType="nodeId"),
    changed(OF_ADDRESSES, keys=None),
    changed(OF_ADDRESSES, keys=["P-avax1xxx"]),
    changed(OF_ADDRESSES, subEvents={"addressActivitySubEvents": []}),
    changed(OF_ADDRESSES, subEvents={"validatorActivitySubEvents": ["validator_stake"]}),
    changed(OF_ADDRESSES, balanceThresholdFilter=None),
    changed(OF_ADDRESSES, balanceThresholdFilter={"balanceType": "atomicMemoryLocked", "balanceThreshold": "1"}),
    changed(OF_ADDRESSES, eventSignatures=["0x" + "ab" * 32]),
    changed(OF_VALIDATORS, keyType="addresses"),
    changed(OF_VALIDATORS, keys=[NODE, NODE]),
    changed(OF_VALIDATORS, keys=[SUBNET]),
    changed(OF_VALIDATORS, keyType="subnetId"),
    changed(OF_VALIDATORS, nodeIds=["NodeID-x"]),
    changed(OF_VALIDATORS, l1ValidatorFeeBalanceThreshold=None),
    {**OF_VALIDATORS, "chainId": "x-chain"},
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_cannot_be_meant_is_refused(networks: WebhookNetworks, number: int) -> None:
    with pytest.raises(BadRequest):
        read(networks, REFUSED[number])


def test_a_program_without_a_network_refuses(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="neither runs nor follows"):
        read(WebhookNetworks(None), OF_ADDRESSES)
