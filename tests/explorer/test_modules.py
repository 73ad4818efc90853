"""What the Explorer computes itself, compared with the package's own code: identifiers, headers, amounts."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.explorer.browser import Tab, needs_chromium, tab
from tests.server import serving

from icefall.demo.history import recorded_runs
from icefall.wire.container.platform import block_in_container
from icefall.wire.container.proposer import unpack_container
from icefall.wire.ids import id_text
from icefall.wire.pvm.codec import unpack_block
from icefall.wire.pvm.types import PlatformBlock
from icefall.wire.text.bech32 import encode as bech32_text

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Tab]:
    folder: Path = tmp_path_factory.mktemp("modules")
    with serving("data", folder) as server, tab(browser, server.url("data")) as opened:
        opened.open("/operations")
        yield opened
        assert opened.problems == []


def run(explorer: Tab, module: str, call: str, *values: Any) -> Any:
    script = f"async (values) => {{ const m = await import('./explorer/{module}.js'); return m.{call}(...values) }}"
    return explorer.page.evaluate(script, list(values))


def test_hashes_and_identifiers(explorer: Tab) -> None:
    for size in (0, 1, 55, 56, 63, 64, 65, 1000):
        raw = bytes(range(256)) * 4
        given = list(raw[:size])
        script = "async (bytes) => { const m = await import('./explorer/sha256.js'); return [...m.sha256(bytes)] }"
        assert bytes(explorer.page.evaluate(script, given)) == hashlib.sha256(raw[:size]).digest()
    for raw in (bytes(32), bytes(31) + b"\1", hashlib.sha256(b"a").digest()):
        assert run(explorer, "wire", "cb58", list(raw)) == id_text(raw)
    for raw in (bytes(20), bytes(range(20))):
        assert run(explorer, "wire", "bech32", "local", list(raw)) == bech32_text("local", raw)


def test_headers_of_all_recorded_containers(explorer: Tab) -> None:
    """Every container of the demo: the wrapping, and the height of the block in it."""
    script = """async ([hex, chain]) => {
        const m = await import('./explorer/wire.js');
        const { outer, inner } = m.decodeContainer(m.fromHex(hex), chain);
        return [outer?.parent ?? '', outer?.time ?? 0, String(inner?.height ?? '')];
    }"""
    seen = {"X": 0, "P": 0, "C": 0}
    for run_of in recorded_runs():
        for fetched in run_of.containers:
            seen[run_of.chain] += 1
            container = unpack_container(fetched.raw)
            is_hidden = run_of.chain == "P" and bool(_block_of(fetched.raw).proposal and _block_of(fetched.raw).txs)
            height = "" if is_hidden else str(seen[run_of.chain])  # it is behind the transactions of a proposal
            expected = [id_text(container.parent_id), container.timestamp, height]
            assert explorer.page.evaluate(script, [fetched.raw.hex(), run_of.chain]) == expected
    assert seen == {"X": 156, "P": 62, "C": 12}


def _block_of(raw: bytes) -> PlatformBlock:
    return unpack_block(block_in_container(raw))


AMOUNTS = [
    ("0", 18, "0"),
    ("1", 18, "<0.000001"),
    ("1500000000000000000", 18, "1.5"),
    ("123456789123456789", 9, "123,456,789.1234"),
    ("1234", 0, "1,234"),
    ("299983935343674361", 9, "299,983,935.3436"),
    ("not a number", 2, "not a number"),
]


@pytest.mark.parametrize(("integer", "decimals", "expected"), AMOUNTS)
def test_amounts(integer: str, decimals: int, expected: str, explorer: Tab) -> None:
    assert run(explorer, "format", "amount", integer, decimals) == expected


def test_times_and_prices_of_gas(explorer: Tab) -> None:
    now = 1_700_000_000
    assert [run(explorer, "format", "when", now - age, now) for age in (90, 7200, 29 * 86400)] == [
        "1m ago",
        "2h ago",
        "29d ago",
    ]
    assert run(explorer, "format", "when", now - 31 * 86400, now) == "2023-10-14 22:13"
    assert [run(explorer, "format", "gasPrice", wei) for wei in ("7", "999", "25000000001")] == [
        "7 wei",
        "999 wei",
        "25.000000001 gwei",
    ]


def test_exact_amounts_lose_nothing(explorer: Tab) -> None:
    assert run(explorer, "format", "exact", str(2**256 - 1), 18).replace(",", "") == (
        "115792089237316195423570985008687907853269984665640564039457.584007913129639935"
    )


LINKS = [
    ("#/x", "#/x"),
    ("https://example.com/a", "https://example.com/a"),
    ("javascript:alert(1)", "#/"),
    (" JavaScript:alert(1)", "#/"),
    ("data:text/html,<script>alert(1)</script>", "#/"),
    ("vbscript:x", "#/"),
    ("http://[", "#/"),
]


@pytest.mark.parametrize(("given", "expected"), LINKS)
def test_a_link_leads_to_pages_only(given: str, expected: str, explorer: Tab) -> None:
    """The policy of the page forbids scripts in links too; this is the first of two guards."""
    script = """async (given) => {
        const m = await import('./explorer/dom.js');
        return m.h('a', { href: given }).getAttribute('href');
    }"""
    assert explorer.page.evaluate(script, given) == expected
