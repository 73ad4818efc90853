"""Where both dialects differ from the published interface: every row of that list in docs/deviations.md, observed."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.api.inputs import RICH
from tests.demo.prepared import L1, demo_serving
from tests.server import Server
from tests.tidy.source import ROOT

from icefall.api.dialect import DIALECTS
from icefall.config.load import load

ADDRESS = "0x5d038640E1a2085e1e4fB53dAaca6807f892b00C"
PAGE = (ROOT / "docs" / "deviations.md").read_text()
SECTION = PAGE.partition("## From the published interface")[2]


@pytest.fixture(scope="module", params=sorted(DIALECTS))
def up(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with demo_serving(tmp_path_factory.mktemp(request.param), f"--dialect={request.param}") as server:
        yield server


def reputation_is_null(server: Server) -> None:
    reply = server.ask("GET", f"{L1}/addresses/{ADDRESS}/balances:listErc20", listener="data")
    assert None in [token["tokenReputation"] for token in reply.json()["erc20TokenBalances"]]


def other_names_of_hex(server: Server) -> None:
    calls = [server.call("/ext/index/X/block", "index.getLastAccepted", {"encoding": name}) for name in ENCODINGS]
    checked, same, unchecked = (call["result"]["bytes"] for call in calls)
    assert checked == same == unchecked + checked[-8:]


def no_limit(server: Server) -> None:
    limited, unlimited = (
        int(server.call("/ext/bc/X", "avm.getUTXOs", {"addresses": [RICH], "limit": limit})["result"]["numFetched"])
        for limit in (1, 0)
    )
    assert limited == 1 < unlimited


def index_is_on(server: Server) -> None:
    assert "result" in server.call("/ext/index/P/block", "index.getLastAccepted", {})
    assert [load(verb, [], {"HOME": "/"}, Path("/")).config.index_enabled for verb in ("up", "node")] == [True, False]


ENCODINGS = ("hex", "hexc", "hexnc")
OBSERVED: dict[str, Callable[[Server], None]] = {
    "`tokenReputation` may be null": reputation_is_null,
    "`encoding` may be `hexc` or `hexnc`": other_names_of_hex,
    "`limit` 0 of avm.getUTXOs means 1024": no_limit,
    "`icefall up` has the container index on": index_is_on,
}


def test_every_row_of_the_page_is_observed() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", SECTION, re.MULTILINE)
    assert rows == ["deviation", *OBSERVED]


@pytest.mark.parametrize("row", OBSERVED)
def test_both_dialects_deviate_as_the_page_says(row: str, up: Server) -> None:
    OBSERVED[row](up)
