"""Labels: names of addresses from the operator's file, in the Explorer and refused where the file is invalid."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.api import made_chain
from tests.api.data_naive import address_text
from tests.explorer.browser import needs_chromium, tab
from tests.server import serving

from icefall.compose.labels import labels_of
from icefall.errors import StartRefused

ANN, BEN = address_text(made_chain.ANN), address_text(made_chain.BEN)
HOSTILE = '<img src=x onerror="window.attacked = true">'


@needs_chromium
def test_labels_are_shown_in_lists_and_as_titles(tmp_path: Path, browser: Browser) -> None:
    made_chain.put(tmp_path, [made_chain.block(0), made_chain.block(1)])
    labels = tmp_path / "labels.json"
    labels.write_text(json.dumps({made_chain.ID: {ANN: "Treasury"}, "*": {BEN.lower(): HOSTILE}}))
    (tmp_path / "icefall.toml").write_text(f'[[chain]]\nid = "{made_chain.ID}"\nrpc = ["http://127.0.0.1:9"]\n')
    settings = (f"--config-file={tmp_path / 'icefall.toml'}", f"--labels={labels}")
    with (
        serving("data", tmp_path, *settings) as server,
        tab(browser, server.url("data")) as opened,
    ):
        opened.open(f"/chain/{made_chain.ID}?tab=transactions")
        row = opened.page.locator("#tab-panel tbody tr").first
        assert "Treasury" in row.inner_text()
        assert ANN[-4:] in row.inner_text()
        assert HOSTILE[:20] in row.inner_text()
        for page in ("address", "contract"):
            opened.go(f"/chain/{made_chain.ID}/{page}/{ANN}")
            assert opened.text("h1").strip() == "Treasury"
            assert ANN in opened.text(".page-head")
        assert opened.page.evaluate("window.attacked") is None
        expected = ("status of 503", "status of 404")  # without an upstream, and of what is no contract
        assert [one for one in opened.problems if not any(text in one for text in expected)] == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "is not a file of labels"),
        ('{"mainnet": {}}', "neither a chain ID nor"),
        ('{"1": {"0x12": "short"}}', "not an address"),
        (json.dumps({"1": {ANN: "x" * 65}}), "1 to 64 characters"),
        (json.dumps({"1": {ANN: 5}}), "is not a file of labels"),
    ],
)
def test_an_invalid_file_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text(text)
    with pytest.raises(StartRefused, match=reason):
        labels_of(str(path))
    with pytest.raises(StartRefused, match="cannot read"):
        labels_of(str(tmp_path / "none.json"))
