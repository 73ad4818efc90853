"""`icefall export` into a directory that has files already: of a run before, one that was killed, or another chain."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.evm.recordings import derived
from tests.exports.exported import BY_NAME, CHAIN, ID, export, put_chain, put_messages, rows_of, spans

from icefall.compose.exported_chains import opened_tables
from icefall.compose.stores import Stores
from icefall.evm.storing.store import store_path
from icefall.exports import files, formats
from icefall.exports.evm_tables import EvmTables
from icefall.exports.files import TableExport, Target


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a chain whose logs are stored."""
    data_dir = put_chain(tmp_path_factory.mktemp("exported"))
    put_messages(data_dir)
    return data_dir


def test_a_later_run_adds_what_is_new(data_dir: Path, tmp_path: Path) -> None:
    flags = ("--table=blocks", "--partition=range:50")
    assert export(data_dir, tmp_path, *flags, "--to=120") == 0
    names = {path.name: path.stat().st_mtime_ns for path in (tmp_path / ID / "blocks").glob("*.csv")}
    assert set(names) == {f"{ID}__blocks__{span}.csv" for span in ("0_49", "50_99", "100_120")}
    assert export(data_dir, tmp_path, *flags) == 0
    later = {path.name: path.stat().st_mtime_ns for path in (tmp_path / ID / "blocks").glob("*.csv")}
    whole = {f"{ID}__blocks__{span}.csv" for span in ("0_49", "50_99")}
    assert {name: later[name] for name in whole} == {name: names[name] for name in whole}
    assert f"{ID}__blocks__100_120.csv" not in later
    assert [int(row["number"]) for row in rows_of(tmp_path, "blocks")] == [
        line.line["number"] for line in derived(CHAIN)
    ]


class Killed(Exception):
    pass


def test_a_run_that_was_killed_is_continued(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ("--table=blocks", "--partition=range:50")
    written: list[Path] = []

    class DyingWriter(formats.CsvWriter):
        def __init__(self, path: Path, columns: Any) -> None:
            written.append(path)
            if len(written) == 3:
                path.write_text("half a line")
                raise Killed
            super().__init__(path, columns)

    monkeypatch.setitem(formats.FORMATS, "csv", DyingWriter)
    with pytest.raises(Killed):
        export(data_dir, tmp_path, *flags)
    assert list((tmp_path / ID / "blocks").glob("*.tmp"))
    assert export(data_dir, tmp_path, *flags) == 0
    assert len(written) == len(set(written)) + 1  # the third alone was begun twice
    assert not list((tmp_path / ID / "blocks").glob("*.tmp"))
    assert len(rows_of(tmp_path, "blocks")) == len(derived(CHAIN))


def test_the_manifest_lists_nothing_else_than_what_is_there_wherever_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while a file is replaced by one of the same name, as those of tables that are written anew are."""
    put_chain(tmp_path)
    flags = ("--table=tokens",)
    assert export(tmp_path / "data", tmp_path, *flags) == 0
    count = len(rows_of(tmp_path, "tokens"))
    with sqlite3.connect(store_path(tmp_path / "data", ID)) as writer:
        writer.execute("update token set name = 'another and longer name'")
    writer.close()
    real, left = files._replace, 0

    def dying(path: Path, content: bytes) -> None:
        nonlocal left
        if not left:
            raise Killed
        left -= 1
        real(path, content)

    for steps in (0, 1):
        left = steps
        monkeypatch.setattr(files, "_replace", dying)
        with pytest.raises(Killed):
            export(tmp_path / "data", tmp_path, *flags)
        assert len(rows_of(tmp_path, "tokens")) in (0, count)  # compares digests
    monkeypatch.setattr(files, "_replace", real)
    assert export(tmp_path / "data", tmp_path, *flags) == 0
    assert {row["name"] for row in rows_of(tmp_path, "tokens")} == {"another and longer name"}


class Interrupting:
    """A reader that calls a function after its first piece of rows, as a rollback may happen then."""

    def __init__(self, reader: Any, statement: str, happen: Callable[[], None]) -> None:
        self._reader = reader
        self._statement = statement
        self._happen: Iterator[Callable[[], None]] = iter([happen])

    def read(self, statement: str, params: Any = ()) -> list[Any]:
        rows: list[Any] = self._reader.read(statement, params)
        if statement == self._statement:
            next(self._happen, lambda: None)()
        return rows


def test_a_file_is_of_one_history(tmp_path: Path) -> None:
    put_chain(tmp_path)
    path = store_path(tmp_path / "data", ID)

    def roll_back() -> None:
        with sqlite3.connect(path) as writer:
            writer.execute("insert or replace into meta values ('rollbacks', '7')")
            writer.execute("update block set hash = x'aa' where number = 20")
        writer.close()

    reader = Stores(tmp_path / "data").chain_blocking_reader(ID)
    assert reader is not None
    table = BY_NAME["blocks"]
    target = Target(tmp_path, "csv", "range:50", formats.CsvWriter)
    interrupted: Any = Interrupting(reader, table.statement, roll_back)
    ((file, was_there),) = TableExport(EvmTables(interrupted, ID), table, target).run([(0, 49)])
    reader.close()
    assert (file.rows, was_there) == (50, False)
    assert rows_of(tmp_path, "blocks")[20]["hash"] == "0xaa"


def test_a_file_whose_last_block_was_replaced_is_written_again(tmp_path: Path) -> None:
    put_chain(tmp_path)
    flags = ("--table=blocks", "--partition=range:50", "--to=99")
    assert export(tmp_path / "data", tmp_path, *flags) == 0
    with sqlite3.connect(store_path(tmp_path / "data", ID)) as writer:
        writer.execute("update block set hash = x'bb' where number = 99")
    writer.close()
    assert export(tmp_path / "data", tmp_path, *flags) == 0
    assert rows_of(tmp_path, "blocks")[99]["hash"] == "0xbb"


def test_two_exports_of_a_table_do_not_write_at_once(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second one would remove or cut what the first one is writing."""
    with opened_tables(Stores(data_dir), ID) as chain:
        target = Target(tmp_path, "csv", "range:50", formats.CsvWriter)
        first = TableExport(chain, BY_NAME["blocks"], target).run([(0, 49), (50, 99)])
        next(first)
        flags = ("--table=blocks", "--partition=range:50")
        assert export(data_dir, tmp_path, *flags) == 1
        assert "another icefall export writes to" in capsys.readouterr().err
        assert export(data_dir, tmp_path, "--table=transactions") == 0
        assert [was_there for _, was_there in first] == [False]
    assert export(data_dir, tmp_path, *flags) == 0
    assert spans(tmp_path)[:2] == [(0, 49), (50, 99)]


@pytest.mark.parametrize("asked", [(), ("--to=40",)])
def test_files_of_blocks_that_were_rolled_back_are_gone(asked: tuple[str, ...], tmp_path: Path) -> None:
    """Also where the chain has fewer blocks now, or fewer are asked for: their rows are of no chain."""
    put_chain(tmp_path)
    flags = ("--table=blocks", "--partition=range:50")
    assert export(tmp_path / "data", tmp_path, *flags, "--to=120") == 0
    assert spans(tmp_path) == [(0, 49), (50, 99), (100, 120)]
    with sqlite3.connect(store_path(tmp_path / "data", ID)) as writer:
        writer.execute("delete from block where number > 60")
    writer.close()
    assert export(tmp_path / "data", tmp_path, *flags, *asked) == 0
    assert spans(tmp_path) == ([(0, 49)] if asked else [(0, 49), (50, 60)])
    assert len(rows_of(tmp_path, "blocks")) == (50 if asked else 61)


def test_fewer_blocks_asked_for_take_nothing_away(data_dir: Path, tmp_path: Path) -> None:
    """A file that holds more than is asked for stays; one that overlaps is written with all blocks of both."""
    flags = ("--table=blocks", "--partition=range:50")
    assert export(data_dir, tmp_path, *flags, "--to=120") == 0
    assert export(data_dir, tmp_path, *flags, "--from=10", "--to=70") == 0
    assert spans(tmp_path) == [(0, 49), (50, 99), (100, 120)]
    assert export(data_dir, tmp_path, *flags, "--from=110", "--to=130") == 0
    assert spans(tmp_path) == [(0, 49), (50, 99), (100, 130)]
    assert [int(row["number"]) for row in rows_of(tmp_path, "blocks")] == list(range(131))
    whole = ("--table=token_balance_changes",)
    assert export(data_dir, tmp_path, *whole) == 0
    assert export(data_dir, tmp_path, *whole, "--to=120") == 0
    assert spans(tmp_path, "token_balance_changes") == [(0, 120)]
