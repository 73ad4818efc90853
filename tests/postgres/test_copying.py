"""`icefall copy`: from files to a server and back, resumed after an interruption, compared at the end."""

import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from tests.evm.digest import digests
from tests.evm.reading_scene import indexed
from tests.postgres.server import new_prefix, server_url

from icefall.cli import main
from icefall.compose.stores import StoreName, Stores
from icefall.db import copying
from icefall.db.copying import tables_on_server
from icefall.db.engine import Transaction
from icefall.evm.storing.store import PACKAGE, store_path
from icefall.node.store import SQL as NODE_SQL


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A data directory with all kinds of stores."""
    data_dir = tmp_path / "source"
    path = store_path(data_dir, "7")
    path.parent.mkdir(parents=True)
    shutil.copy(indexed("berlin-1").path, path)
    stores = Stores(data_dir)
    stores.access_writer().add_key("alice", "pro", 5)
    with closing(stores.node_store()) as node:
        node.write_here(lambda tx: tx.run(NODE_SQL.put_meta, {"name": "network", "value": "ü"}))
    return data_dir


def copy(*arguments: str) -> int:
    return main(["copy", *arguments])


def test_to_a_server_and_back(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prefix = f"--store-prefix={new_prefix()}"
    assert copy(str(source), server_url(), prefix) == 0
    shown = capsys.readouterr().out
    assert re.search(r"access: \d+ rows, the same in both\n", shown)
    assert re.search(r"chain 7: \d{4,} rows, the same in both\n", shown)
    assert copy(server_url(), str(tmp_path / "back"), prefix) == 0
    assert digests(store_path(tmp_path / "back", "7")) == digests(store_path(source, "7"))
    assert Stores(tmp_path / "back").access_writer().all_keys() == [("alice", "pro", 5, None, 0)]
    with closing(Stores(tmp_path / "back").node_reader()) as node:
        assert node.read(NODE_SQL.meta, {"name": "network"}) == [("ü",)]
    assert copy(str(source), server_url(), prefix) == 0  # what is there already is compared
    assert "the same in both already" in capsys.readouterr().out


def test_an_interrupted_copy_goes_on_where_it_ended(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix, url = new_prefix(), server_url()
    monkeypatch.setattr(copying, "PAGE_ROWS", 50)
    pages = iter(range(30))
    put = copying.copy_table

    def interrupted(original, target, table, progress) -> None:  # type: ignore[no-untyped-def]
        def counting(name: str, rows: int) -> None:
            if next(pages, None) is None:
                raise KeyboardInterrupt
            progress(name, rows)

        put(original, target, table, counting)

    monkeypatch.setattr("icefall.commands.copy.copy_table", interrupted)
    assert copy(str(source), url, f"--store-prefix={prefix}") == 130
    stores = Stores(source, url, prefix)
    assert StoreName("chain", "7") not in stores.names(), "half a copy has no name"
    with closing(stores.open_unfinished(StoreName("chain", "7"))) as half:
        counts = [half.read(f"select count(*) from {table.name}")[0][0] for table in tables_on_server(PACKAGE)]
        assert 0 < sum(counts) < 1_600
    monkeypatch.setattr("icefall.commands.copy.copy_table", put)
    assert copy(str(source), url, f"--store-prefix={prefix}") == 0
    assert StoreName("chain", "7") in stores.names()
    stores.close()


def test_a_copy_that_differs_is_refused(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prefix, url = new_prefix(), server_url()
    assert copy(str(source), url, f"--store-prefix={prefix}") == 0
    stores = Stores(source, url, prefix)

    def change(tx: Transaction) -> None:
        tx.run("update block set time = time + 1 where number = 3")

    with closing(stores.chain_store("7")) as store:
        store.write_here(change)
    stores.close()
    assert copy(str(source), url, f"--store-prefix={prefix}") == 1
    assert re.search(r"block: \d+ rows with digest \w{16}, and in the copy \d+ with", capsys.readouterr().err)


def test_nothing_to_copy_and_wrong_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert copy(str(tmp_path / "none"), str(tmp_path / "other")) == 1
    assert copy(str(tmp_path)) == 1
    shown = capsys.readouterr().err
    assert "nothing to copy" in shown
    assert "icefall copy SOURCE TARGET" in shown


def test_migrate_creates_every_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "icefall.toml"
    config.write_text('[[chain]]\nid = "9"\nrpc = "http://127.0.0.1:1"\n')
    prefix = new_prefix()
    settings = [f"--config-file={config}", f"--store={server_url()}", f"--store-prefix={prefix}"]
    assert main(["migrate", *settings, f"--data-dir={tmp_path / 'none'}"]) == 0
    assert capsys.readouterr().out == "chain 9: migrated\nnode: migrated\n"
    with closing(Stores(tmp_path, server_url(), prefix)) as stores:
        assert [name.schema for name in stores.names()] == ["access", "node", "chain_9"]
    assert not (tmp_path / "none").exists()
