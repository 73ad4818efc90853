"""Pictures of NFTs and logos: from this installation alone, with a key where one is needed, replaced if they fail."""

import pytest
from playwright.sync_api import Route
from tests.demo.prepared import C_BUSY, COIN
from tests.explorer.browser import Tab, needs_chromium
from tests.server import Server

pytestmark = needs_chromium

ART = "0xD5E52a49DB2c00e390aDb09d90ffBB61fe9FF0dB"
C_CHAIN, L1 = "/chain/43112", "/chain/3210042"
TOLL = "0x414846896BAF0Ef95f4BBD4A0416D3FbCa329f6d"
NFT = f"{C_CHAIN}/nft/{ART}/9"
SIDE = "one => one.decode().then(() => one.naturalWidth)"


def test_nfts_of_the_demo_have_pictures_without_a_network(shared: Tab) -> None:
    """On the page of one, of its collection and of an owner; no other host is asked, which `shared` checks."""
    for where in (NFT, f"{C_CHAIN}/nft/{ART}", f"{C_CHAIN}/address/{C_BUSY}?tab=nfts"):
        for width, theme in ((1440, "light"), (375, "dark")):
            shared.look(width, theme)
            shared.go(where)
            image = shared.page.locator(".picture img[alt='Art 9']").first
            image.scroll_into_view_if_needed()
            assert image.evaluate(SIDE) == 192
            assert shared.overflow() <= 0


def test_what_is_served_is_a_picture_and_nothing_else(demo: Server) -> None:
    reply = demo.ask("GET", f"/v1/chains/43112/nfts/collections/{ART}/tokens/9/picture", listener="data")
    assert (reply.status, reply.header("content-type"), reply.body[:4]) == (200, "image/png", b"\x89PNG")
    assert reply.header("content-security-policy") == "default-src 'none'; sandbox"
    assert reply.header("x-content-type-options") == "nosniff"
    assert reply.header("cross-origin-resource-policy") == "same-origin"
    for missing in ("4", "77777"):  # one without a picture, and none
        target = f"/v1/chains/43112/nfts/collections/{ART}/tokens/{missing}/picture"
        assert demo.ask("GET", target, listener="data").status == 404
    named = f"/v1/chains/43112/nfts/collections/{ART}/tokens/9/picture?url=http://127.0.0.1/"
    assert demo.ask("GET", named, listener="data").body == reply.body, "an address in the query is of no meaning"


def test_a_logo_on_another_host_is_shown_from_here(shared: Tab) -> None:
    shared.go(f"{L1}/token/{TOLL}")
    logo = shared.page.locator("h1 img.logo")
    assert (logo.get_attribute("src") or "").endswith(f"/v1/chains/3210042/tokens/{TOLL}/logo")
    assert logo.evaluate(SIDE) == 192
    shared.go(f"{L1}/token/{COIN}")
    assert (shared.page.locator("h1 img.logo").get_attribute("src") or "").startswith("data:image/svg+xml")


@pytest.mark.parametrize("status", [404, 502])
def test_one_that_cannot_be_had_is_replaced(status: int, explorer: Tab) -> None:
    for path in ("**/picture", "**/logo"):
        explorer.page.route(path, lambda route: route.fulfill(status=status, json={"message": "none"}))
    explorer.open(NFT)
    explorer.await_text("The picture cannot be shown")
    explorer.go(f"{L1}/token/{TOLL}")
    explorer.page.locator("h1 .identicon").wait_for()
    assert explorer.page.locator("h1 img.logo").count() == 0
    explorer.problems[:] = [one for one in explorer.problems if f"status of {status}" not in one]


def test_a_key_is_sent_where_one_is_given(explorer: Tab) -> None:
    """An image sends no headers, so it is fetched and put into the page."""
    explorer.open(NFT)
    explorer.page.evaluate("sessionStorage.setItem('icefall-key', 'a-key')")
    keys = []

    def note(route: Route) -> None:
        keys.append(route.request.headers.get("x-service-api-key"))
        headers = {key: value for key, value in route.request.headers.items() if key != "x-service-api-key"}
        route.continue_(headers=headers)

    explorer.page.route("**/v1/**", note)
    explorer.open(NFT)
    image = explorer.page.locator(".picture img")
    explorer.page.wait_for_selector(".picture img[src^='data:image/png;base64,']")
    assert image.evaluate(SIDE) == 192
    assert set(keys) == {"a-key"}
