"""Messages between chains in the Explorer: three indexed chains with messages at random, and one that is not indexed.
What the pages show is compared with a naive join of the logs."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser
from tests.awaited import result_of
from tests.explorer.browser import Tab, look_at, needs_chromium, tab
from tests.messages.test_random_histories import IDS, UNKNOWING, World
from tests.server import serving

from icefall.compose.stores import Stores
from icefall.wire.ids import id_text

pytestmark = needs_chromium

CHAIN = "7000"
NAMES = {"7000": "First chain", "7001": "Second chain", "7002": "Third chain"}
PAGE = 25  # rows


class Served(NamedTuple):
    opened: Tab
    messages: list[dict[str, Any]]  # as the lists have them, newest first


async def indexed(folder: Path) -> list[dict[str, Any]]:
    with closing(Stores(folder)) as stores:
        stores.access_writer().ensure()
        world = World(stores, 5)
        try:
            for _ in range(60):
                await world.step()
            return world.expected()
        finally:
            world.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("messages")
    (folder / "data" / "chains").mkdir(parents=True)
    config = folder / "icefall.toml"
    with config.open("w") as file:
        for blockchain, chain in IDS.items():
            known = "" if chain == UNKNOWING else f'blockchain_id = "{id_text(blockchain)}"\n'
            file.write(f'[[chain]]\nid = "{chain}"\nname = "{NAMES[chain]}"\nrpc = "http://127.0.0.1:1"\n{known}')
    messages = result_of(indexed(folder / "data"))
    with serving("data", folder, f"--config-file={config}") as server, tab(browser, server.url("data")) as opened:
        opened.open("/operations")
        yield Served(opened, messages)


@pytest.fixture
def opened(served: Served) -> Iterator[Tab]:
    served.opened.new_problems()
    served.opened.look(1440, "light")
    yield served.opened
    # What Chromium itself logs of balances, which need an upstream, is no problem of these pages.
    assert [one for one in served.opened.new_problems() if "status of 503" not in one] == []


def listed(opened: Tab) -> list[str]:
    """The IDs of the messages of the open list."""
    box = opened.page.locator(".table-box[aria-label='Messages between chains']")
    box.wait_for()
    links = box.locator("tbody td:first-child a")
    return [link.get_attribute("title") or "" for link in links.all()]


def first(served: Served, **fields: Any) -> dict[str, Any]:
    return next(one for one in served.messages if fields.items() <= one.items())


def test_a_chain_lists_its_messages(opened: Tab, served: Served) -> None:
    own = [one for one in served.messages if CHAIN in (one["sourceEvmChainId"], one["destinationEvmChainId"])]
    assert len(own) > PAGE
    opened.go(f"/chain/{CHAIN}?tab=messages")
    assert listed(opened) == [one["messageId"] for one in own[:PAGE]]
    look_at(opened, "messages")
    opened.look(1440, "light")
    opened.page.get_by_role("button", name="Show more").click()
    opened.page.locator("tbody tr").nth(PAGE).wait_for()
    assert listed(opened)[: PAGE + 1] == [one["messageId"] for one in own[: PAGE + 1]]
    opened.page.locator("tbody td:first-child a").first.click()
    opened.page.wait_for_url(f"**/message/{own[0]['messageId']}")


def test_an_address_lists_its_messages_of_all_chains(opened: Tab, served: Served) -> None:
    address = served.messages[0]["from"]
    own = [one["messageId"] for one in served.messages if address in (one["from"], one["to"])]
    opened.go(f"/chain/{CHAIN}/address/{address}?tab=messages")
    assert listed(opened) == own[:PAGE]
    assert "this address" in opened.text("#tab-panel")


def test_a_delivered_message_has_both_its_transactions(opened: Tab, served: Served) -> None:
    message = next(
        one
        for one in served.messages
        if one["status"] == "delivered" and one["rewardDetails"]["value"] != "0" and one["receipts"] and "data" in one
    )
    opened.go(f"/message/{message['messageId']}")
    opened.await_text("Message between chains")
    assert message["messageId"] in opened.text("h1")
    assert "delivered" in opened.text(".page-head")
    for title, side in (("Sent", "source"), ("Received", "destination")):
        shown = opened.text(f"section[aria-label={title}]")
        assert NAMES[message[f"{side}EvmChainId"]] in shown
        assert message[f"{side}Transaction"]["txHash"] in shown
        assert "0.000021" in shown, "what was paid for gas"
    details = opened.text("section[aria-label=Details]")
    for field in ("from", "to", "icmContractAddress"):
        assert message[field] in details
    fee = message["rewardDetails"]
    assert f"{fee['value']} of" in details
    assert fee["address"] in details
    assert ("execution failed" in opened.text(".page-head")) == (not message["messageExecuted"])
    assert message["data"] in opened.text("section[aria-label=Data]")
    assert opened.page.locator("section[aria-label^=Receipts] tbody tr").count() == len(message["receipts"])
    look_at(opened, "message")
    opened.look(1440, "light")
    opened.page.locator("section[aria-label=Sent] a", has_text=message["sourceTransaction"]["txHash"]).click()
    opened.page.wait_for_url(f"**/chain/{message['sourceEvmChainId']}/tx/*")


@pytest.mark.parametrize(
    ("status", "side", "text"),
    [
        ("pending", "Received", "has not been received on a chain that is indexed here"),
        ("delivered_source_not_indexed", "Sent", "not indexed here, or has not sent it yet"),
    ],
)
def test_a_side_that_is_missing_is_shown(status: str, side: str, text: str, opened: Tab, served: Served) -> None:
    message = first(served, status=status)
    opened.go(f"/message/{message['messageId']}")
    assert text in opened.text(f"section[aria-label={side}]")
    assert {"pending": "not delivered yet"}.get(status, "source not indexed") in opened.text(".page-head")
    look_at(opened, f"message-{status}")


def test_a_message_that_is_not_known_is_reported(opened: Tab) -> None:
    opened.go(f"/message/{'0' * 64}")
    opened.await_text("No indexed chain has a message")
    opened.problems[:] = [one for one in opened.problems if "status of 404" not in one]
