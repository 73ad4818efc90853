"""How many statements each endpoint and each method takes, on every engine: none may grow unnoticed.

A request is the example of its row, on the demo. Where a handler needs fewer than before, lower its number in
`statement_table.py`.
"""

from collections.abc import Iterator

import pytest
from tests.demo.prepared import demo_serving
from tests.postgres.citus import citus_nodes
from tests.postgres.server import new_prefix, server_url
from tests.server import Server
from tests.store.counted_statements import CountedApps, counted_apps
from tests.store.statement_table import ENGINES, FAILS, STATEMENTS
from tests.waiting import until

from icefall.api.http.row import LISTENERS, Rest, Rpc
from icefall.api.table import rows_of
from icefall.cli import main
from icefall.compose.stores import Stores, copy_store, store_paths

ROWS = [(listener, row) for listener in LISTENERS for row in rows_of(listener)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with demo_serving(tmp_path_factory.mktemp("counted"), "--api-admin-enabled=true") as server:
        until(lambda: server.ask("GET", "/ext/health").status == 200, "a healthy program, whose answers are copied")
        yield server


@pytest.fixture(scope="module", params=ENGINES)
def counted(
    request: pytest.FixtureRequest, demo: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, CountedApps]]:
    engine: str = request.param
    url = "" if engine == "sqlite" else server_url() if engine == "postgres" else citus_nodes()[0]
    copy, prefix = tmp_path_factory.mktemp("copy"), new_prefix()
    for path in store_paths(demo.data_dir):
        beside = copy / path.relative_to(demo.data_dir)
        beside.parent.mkdir(exist_ok=True)
        copy_store(path, beside)
    if url:
        assert main(["copy", str(copy), url, f"--store-prefix={prefix}"]) == 0
    with counted_apps(demo.data_dir, Stores(copy, url, prefix)) as apps:
        yield engine, apps


@pytest.mark.parametrize(("listener", "row"), ROWS, ids=lambda one: one if isinstance(one, str) else one.label)
def test_it_takes_as_many_statements_as_the_table_says(
    listener: str, row: Rest | Rpc, counted: tuple[str, CountedApps]
) -> None:
    engine, apps = counted
    statements, status, answer = apps.statements(listener, row)
    if row.label not in FAILS:
        assert status == (row.success if isinstance(row, Rest) else 200), answer
        assert isinstance(row, Rest) or b'"result"' in answer, answer
    assert statements == STATEMENTS[listener][row.label][ENGINES.index(engine)]


def test_the_table_has_every_row_and_no_other() -> None:
    assert {(listener, label) for listener, counts in STATEMENTS.items() for label in counts} == {
        (listener, row.label) for listener, row in ROWS
    }
