"""Pictures of NFTs on a hostile host, from there through the guarded fetcher to a reader's browser: nothing of them
runs, harms, loads from elsewhere, or reaches an address that is not public. And names that turn a line around."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser
from tests.api import made_chain
from tests.api.data_naive import address_text
from tests.explorer.browser import WIDTHS, Tab, needs_chromium, tab
from tests.explorer.hostile_host import ENDLESS, SCRIPT, HostileHost, hosting
from tests.metrics.synthetic import address
from tests.server import Server, serving

from icefall.evm.enriching.pictures import TOTAL_S
from icefall.evm.model import Erc721TransferRow, NftOwner

pytestmark = needs_chromium

RUN = "window.attacked = true"
TURNED = "\u202eRUOY ot EVIG\u2066\u202d <b>x</b>"
ART, COIN = address(77), made_chain.TOKEN
HOME = f"/chain/{made_chain.ID}"
# What the metadata names, and whether a picture is shown. `{host}`: the hostile host, which may be fetched from.
PICTURES: dict[str, tuple[str, bool]] = {
    "an SVG with a script": ("{host}/script.svg", False),
    "an SVG that says it is a PNG": ("{host}/script.png", False),
    "a page with a script": ("{host}/page.png", False),
    "a small file of a huge picture": ("{host}/huge.png", False),
    "a picture that says it is a page": ("{host}/good-as-page", True),
    "a redirect to a private address": ("{host}/private", False),
    "a private address": ("{elsewhere}/secret.png", False),
    "a redirect to a file": ("{host}/file", False),
    "a redirect to itself": ("{host}/loop", False),
    "a file without end": ("{host}/endless.png", False),
    "a file that comes byte by byte": ("{host}/slow.png", False),
    "an embedded page": (f"data:text/html,<script>{RUN}</script>", False),
    "an embedded SVG with a script": (f"data:image/svg+xml,{SCRIPT.replace('#', '%23')}", True),
    "a script": (f"javascript:{RUN}", False),
    "a file of the server": ("file:///etc/passwd", False),
}


class Scene(NamedTuple):
    tab: Tab
    server: Server
    host: HostileHost
    elsewhere: HostileHost


def put(folder: Path, host: str, elsewhere: str) -> None:
    moved = [Erc721TransferRow(0, at, ART, made_chain.ZERO_ADDRESS, made_chain.BEN, at) for at in range(len(PICTURES))]
    owners = [NftOwner(ART, at, made_chain.BEN, made_chain.ZERO_ADDRESS) for at in range(len(PICTURES))]
    made_chain.put(
        folder,
        [made_chain.block(0), made_chain.erc20(1, made_chain.ANN, made_chain.BEN, 5)],
        [replace(made_chain.block(2), erc721_transfers=tuple(moved), nft_owners=tuple(owners))],
    )
    with closing(sqlite3.connect(made_chain.store_at(folder))) as store, store:
        store.execute("update token set name = ?, symbol = ?, decimals = 0, read_at = 1", (TURNED, TURNED))
        for at, (uri, _) in enumerate(PICTURES.values()):
            picture = uri.replace("{host}", host).replace("{elsewhere}", elsewhere)
            metadata = json.dumps({"name": TURNED, "description": TURNED, "imageUri": picture, "attributes": "[]"})
            found = store.execute(
                "update nft set token_uri = ?, status = 'INDEXED', read_at = 1, retry_at = null, metadata = ?"
                " where token_id in (select token_id from nft order by token_id limit 1 offset ?)",
                (picture, metadata, at),
            )
            assert found.rowcount == 1


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Scene]:
    folder: Path = tmp_path_factory.mktemp("hostile-pictures")
    with hosting("127.0.0.3") as elsewhere, hosting("127.0.0.2", elsewhere.url) as host:
        put(folder, host.url, elsewhere.url)
        config = folder / "icefall.toml"
        config.write_text(f'[[chain]]\nid = "{made_chain.ID}"\nrpc = ["http://127.0.0.1:9"]\nname = "Hostile"\n')
        settings = (f"--config-file={config}", "--nft-metadata-networks=127.0.0.2/32")
        with serving("data", folder, *settings) as server, tab(browser, server.url("data")) as opened:
            yield Scene(opened, server, host, elsewhere)


def checked(opened: Tab) -> None:
    """Nothing has run, and no host but this installation was asked."""
    assert opened.page.evaluate("window.attacked") is None
    assert opened.page.locator("main script, main iframe, main object, main embed").count() == 0
    problems = [one for one in opened.new_problems() if "status of 404" not in one and "status of 503" not in one]
    assert problems == []


@pytest.mark.parametrize("kind", PICTURES)
def test_a_hostile_picture_does_nothing(kind: str, scene: Scene) -> None:
    opened, number = scene.tab, list(PICTURES).index(kind)
    opened.new_problems()
    opened.go(f"{HOME}/nft/{address_text(ART)}/{number}")
    place = opened.page.locator(".picture").first
    if PICTURES[kind][1]:
        image = place.locator("img")
        assert image.evaluate("one => one.decode().then(() => one.naturalWidth)") == 9
    else:
        place.filter(has_text="No picture").or_(place.filter(has_text="The picture cannot be shown")).wait_for()
        assert place.locator("img").count() == 0
    for width in WIDTHS:
        opened.look(width, "light")
        assert opened.overflow() <= 0
    checked(opened)
    assert not scene.elsewhere.asked, "a private address is never asked"


def test_what_is_served_of_them(scene: Scene) -> None:
    """Asked for without the Explorer: refused in time and at a bounded size, and what is a picture is nothing else."""
    base = f"/v1/chains/{made_chain.ID}/nfts/collections/{address_text(ART)}/tokens"
    for number, (kind, (uri, is_shown)) in enumerate(PICTURES.items()):
        began = time.monotonic()
        reply = scene.server.ask("GET", f"{base}/{number}/picture", listener="data")
        assert time.monotonic() - began < TOTAL_S + 5, kind
        is_remote = uri.startswith("{host}")
        assert reply.status == (200 if is_shown and is_remote else 404), kind
        if reply.status == 200:
            assert reply.header("content-type") == "image/png"
            assert reply.header("x-content-type-options") == "nosniff"
            assert reply.header("content-security-policy") == "default-src 'none'; sandbox"
    assert scene.host.asked["/loop"] < 10
    assert not scene.elsewhere.asked
    kept = sum(path.stat().st_size for path in (scene.server.data_dir / "pictures").rglob("*") if path.is_file())
    assert kept < 10_000 < ENDLESS, "only the good one is kept"


def test_a_list_of_them_does_nothing(scene: Scene) -> None:
    opened = scene.tab
    for where in (f"{HOME}/nft/{address_text(ART)}", f"{HOME}/address/{address_text(made_chain.BEN)}?tab=nfts"):
        opened.go(where)
        assert opened.overflow() <= 0
        checked(opened)


@pytest.mark.parametrize(
    "where",
    [
        f"{HOME}/tokens", f"{HOME}/token/{address_text(COIN)}", f"{HOME}/nft/{address_text(ART)}/0",
        f"{HOME}/address/{address_text(made_chain.BEN)}?tab=erc20", f"/search/{TURNED}",
    ],
)  # fmt: skip
def test_a_name_turns_nothing_around(where: str, scene: Scene) -> None:
    """Marks of direction in a name are not in the page, nor in what is read aloud, nor in its title."""
    opened = scene.tab
    opened.go(where)
    assert "RUOY ot EVIG" in opened.text()
    assert "\ufffd" in opened.text()
    turning = """() => [document.title, ...[...document.querySelectorAll('*')].flatMap((one) => [
            ...[...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data),
            one.title, one.ariaLabel, one.alt, one.placeholder])]
        .filter((text) => /[\\u202a-\\u202e\\u2066-\\u2069]/.test(text || ''))"""
    assert opened.page.evaluate(turning) == []
    isolated = (
        "() => [...document.querySelectorAll('main a')].every((one) => getComputedStyle(one).unicodeBidi === 'isolate')"
    )
    assert opened.page.evaluate(isolated)
    checked(opened)
