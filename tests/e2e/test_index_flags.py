"""When an index may be switched on and off: every transition of the node's table. A refusal changes nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.program import outcome
from tests.server import serving

ON, OFF, ALLOW = "--index-enabled=true", "--index-enabled=false", "--index-allow-incomplete"
RUNS, REFUSED = True, False

# starts on one data directory, in order: settings, and whether the program runs
TRANSITIONS = {
    "on, off": [([ON], RUNS), ([OFF], REFUSED), ([], REFUSED), ([ON], RUNS)],
    "on, off allowed, on": [([ON], RUNS), ([OFF, ALLOW], RUNS), ([ON], REFUSED), ([ON, ALLOW], RUNS), ([ON], REFUSED)],
    "fresh off, on": [([OFF], RUNS), ([ON], REFUSED), ([OFF], RUNS), ([ON, ALLOW], RUNS)],
    "fresh on allowed, on": [([ON, ALLOW], RUNS), ([ON], RUNS)],
}


@pytest.mark.parametrize("name", TRANSITIONS)
def test_transition(name: str, tmp_path: Path) -> None:
    for settings, runs in TRANSITIONS[name]:
        if runs:
            with serving("node", tmp_path, *settings) as server:
                answer = server.ask(
                    "POST", "/ext/index/X/block", b'{"jsonrpc":"2.0","id":1,"method":"index.getLastAccepted"}'
                )
                assert answer.status == (200 if ON in settings else 404)
        else:
            before = _stored(tmp_path / "data")
            ended = outcome("node", tmp_path / "data", *settings)
            assert ended.code == 1
            assert "--index-allow-incomplete" in ended.said
            assert _stored(tmp_path / "data") == before


def _stored(data_dir: Path) -> dict[str, bytes | list[str]]:
    """The rows of the store and the node's identity. SQLite counts how often a file was opened for writing, too."""
    kept: dict[str, bytes | list[str]] = {path.name: path.read_bytes() for path in (data_dir / "staking").iterdir()}
    with closing(sqlite3.connect(f"file:{data_dir / 'node.sqlite'}?mode=ro", uri=True)) as store:
        kept["rows"] = list(store.iterdump())
    return kept
