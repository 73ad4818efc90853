"""When an index may be switched on and off, and that a refusal changes nothing. tests/node/test_admission.py has every
transition of the node's table."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.e2e.program import outcome
from tests.server import serving

ON, OFF, ALLOW = "--index-enabled=true", "--index-enabled=false", "--index-allow-incomplete"
RUNS, REFUSED = True, False

# starts on one data directory, in order: settings, and whether the program runs
STARTS = [
    ([ON], RUNS),
    ([OFF], REFUSED),
    ([], REFUSED),  # off is the default
    ([OFF, ALLOW], RUNS),
    ([ON], REFUSED),
    ([ON, ALLOW], RUNS),
]


def test_the_index_is_switched_off_and_on(tmp_path: Path) -> None:
    for settings, runs in STARTS:
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
