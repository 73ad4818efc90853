"""Names, symbols, metadata, URIs and SVG that try to run something in the reader's browser. Nothing may come of it."""

import json
import sqlite3
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser
from tests.api import made_chain
from tests.api.data_naive import address_text
from tests.explorer.browser import Tab, needs_chromium, tab
from tests.metrics.synthetic import address
from tests.server import serving

from icefall.evm.model import Erc721TransferRow, NftOwner

pytestmark = needs_chromium

RUN = "window.attacked = true"
MARKUP = f'<img src=x onerror="{RUN}"><script>{RUN}</script>'
LONG = "A" * 5000
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="{RUN}"><script>{RUN}</script></svg>'
LINK = f"javascript:{RUN}"
PICTURES = [
    f"data:image/svg+xml;base64,{b64encode(SVG.encode()).decode()}",
    f"data:text/html,<script>{RUN}</script>",
    LINK,
    "https://tracker.example/seen.png",
    'x" onerror="' + RUN,
]
COIN, ART = made_chain.TOKEN, address(77)
HOME = f"/chain/{made_chain.ID}"


def metadata(picture: str) -> str:
    return json.dumps({
        "name": MARKUP, "description": MARKUP + LONG, "imageUri": picture, "animationUri": LINK, "externalUrl": LINK,
        "attributes": json.dumps([{"trait_type": MARKUP, "value": {"x": MARKUP}}, None, "text", {"value": LINK}]),
    })  # fmt: skip


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Tab]:
    """A chain whose contracts return all this, served by `icefall data` alone."""
    folder: Path = tmp_path_factory.mktemp("hostile")
    holder = made_chain.BEN
    moved = tuple(Erc721TransferRow(0, at, ART, made_chain.ZERO_ADDRESS, holder, at) for at in range(len(PICTURES)))
    owners = tuple(NftOwner(ART, at, holder, made_chain.ZERO_ADDRESS) for at in range(len(PICTURES)))
    made_chain.put(
        folder,
        [made_chain.block(0), made_chain.erc20(1, made_chain.ANN, holder, 5)],
        [replace(made_chain.block(2), erc721_transfers=moved, nft_owners=owners)],
    )
    with closing(sqlite3.connect(made_chain.store_at(folder))) as store, store:
        store.execute("update token set name = ?, symbol = ?, decimals = 0, read_at = 1", (MARKUP, f"{MARKUP}{LONG}"))
        for at, picture in enumerate(PICTURES):
            found = store.execute(
                "update nft set token_uri = ?, status = 'INDEXED', read_at = 1, retry_at = null, metadata = ?"
                " where token_id in (select token_id from nft order by token_id limit 1 offset ?)",
                (LINK, metadata(picture), at),
            )
            assert found.rowcount == 1
    (folder / "icefall.toml").write_text(
        f'[[chain]]\nid = "{made_chain.ID}"\nrpc = ["http://127.0.0.1:9"]\nname = {json.dumps(MARKUP)}\n'
        f'description = {json.dumps(MARKUP)}\ntoken = {{ name = {json.dumps(MARKUP)}, symbol = "<b>N" }}\n'
    )
    with (
        serving("data", folder, f"--config-file={folder / 'icefall.toml'}") as server,
        tab(browser, server.url("data")) as opened,
    ):
        yield opened


PAGES = {
    "home": ("/", MARKUP),
    "chain": (HOME, MARKUP),
    "tokens": (f"{HOME}/tokens", MARKUP[:20]),
    "block": (f"{HOME}/block/1", MARKUP),
    "address": (f"{HOME}/address/{address_text(made_chain.BEN)}?tab=erc20", MARKUP[:10]),
    "nfts": (f"{HOME}/address/{address_text(made_chain.BEN)}?tab=nfts", MARKUP[:20]),
    "token": (f"{HOME}/token/{address_text(COIN)}", MARKUP),
    "collection": (f"{HOME}/nft/{address_text(ART)}", MARKUP),
    **{f"nft-{at}": (f"{HOME}/nft/{address_text(ART)}/{at}", MARKUP) for at in range(len(PICTURES))},
    "search": (f"/search/{MARKUP.replace('/', '%2F')[:60]}", MARKUP[:20]),
    "search-script": (f"/search/{LINK}", LINK),
    "path": (f"/chain/{MARKUP.replace('/', '%2F')}", "Not found"),
}


@pytest.mark.parametrize("name", PAGES)
def test_nothing_runs_and_nothing_is_fetched(name: str, explorer: Tab) -> None:
    where, text = PAGES[name]
    explorer.problems.clear()
    explorer.go(where)
    assert text in explorer.text(), "shown as text"
    assert explorer.page.evaluate("window.attacked") is None
    assert explorer.page.locator("main script, main iframe, main object, main embed").count() == 0
    assert explorer.page.locator("main [onerror], main [onload]").count() == 0
    assert explorer.page.locator("a[href^='javascript:'], a[href^='data:']").count() == 0
    assert explorer.overflow() <= 0
    # The chain has no upstream, and so no native balances; and one of the paths names no chain.
    # And the picture of one NFT is on a host that has no address: this installation has looked for it. That may be
    # known only while the next page is shown.
    expected = ("status of 503", "/tokens/3/picture", *(["status of 404"] if name == "path" else []))
    assert [one for one in explorer.problems if not any(text in one for text in expected)] == []


def test_pictures_are_images_and_those_of_other_hosts_come_from_here(explorer: Tab) -> None:
    explorer.problems.clear()
    explorer.open(f"{HOME}/nft/{address_text(ART)}/0")
    image = explorer.page.locator(".picture img")
    assert (image.get_attribute("src") or "").startswith("data:image/svg+xml;base64,")
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 9
    for at in (1, 2, 4):
        explorer.go(f"{HOME}/nft/{address_text(ART)}/{at}")
        assert "No picture" in explorer.text(".picture")
        assert explorer.page.locator(".picture img").count() == 0
    explorer.go(f"{HOME}/nft/{address_text(ART)}/3")
    explorer.await_text("The picture cannot be shown")  # this installation looks for it, and its host has no address
    assert not any("tracker.example" in one for one in explorer.requests)
    explorer.problems[:] = [one for one in explorer.problems if "status of 404" not in one]
    assert explorer.problems == []
    assert explorer.page.evaluate("window.attacked") is None


def test_pages_of_interfaces_that_are_not_known_are_hidden(explorer: Tab) -> None:
    """`icefall data` alone knows neither the node nor the metrics."""
    explorer.problems.clear()
    explorer.open("/")
    shown = explorer.text("#nav")
    assert [name for name in ("Metrics", "Network", "Asset chain", "Containers") if name in shown] == []
    assert "Operations" in shown
    explorer.open("/x")
    assert "There is no such page" in explorer.text()
    assert explorer.problems == []
