"""Reorganisations, failures of upstreams and restarts on PostgreSQL: the tests of SQLite, with every store on the
server."""

from pathlib import Path

import pytest
from tests.evm.test_follow_chain import (  # noqa: F401
    clean,
    test_a_head_that_stays_lower_is_a_rollback,
    test_a_recorded_reorganisation_ends_in_the_recorded_chain,
    test_an_index_goes_on_where_it_stopped,
)
from tests.store import opened


@pytest.fixture(autouse=True)
def on_the_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(opened, "EVERYWHERE", True)
