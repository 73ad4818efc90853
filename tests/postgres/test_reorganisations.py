"""Reorganisations, failures of upstreams and restarts on PostgreSQL: the tests of SQLite, with every store on the
server."""

from pathlib import Path

import pytest
from tests.evm.test_follow_chain import (  # noqa: F401
    clean,
    test_a_recorded_reorganisation_ends_in_the_recorded_chain,
    test_an_index_goes_on_where_it_stopped,
)
from tests.evm.test_reorgs import (  # noqa: F401
    test_a_development_chain_follows_a_lower_head_at_once,
    test_a_head_that_stays_lower_is_reported_and_erases_nothing,
    test_a_new_genesis_of_a_development_chain_begins_anew,
    test_starting_anew_leaves_only_what_is_not_from_blocks,
    test_what_is_not_rolled_back_by_itself_is_accepted_by_command,
)
from tests.store import opened


@pytest.fixture(autouse=True)
def on_the_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(opened, "EVERYWHERE", True)
