"""The formats of exported files. A writer takes rows as tuples in the order of the columns."""

import csv
import datetime
import re
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import msgspec

from icefall.errors import StartRefused
from icefall.exports.tables import ExportColumn

# With the full-width forms of the signs, which spreadsheets of some languages read as those. Where semicolons separate
# cells, as in many languages, a cell begins behind each one, quoted or not.
_FORMULA_START = re.compile("(?:^|(?<=;))(?=[=+@\uff1d\uff0b\uff0d\uff20\t\r\n-])")
_ROW_GROUP = 50_000
_PARQUET_NEEDS = "Parquet files need pyarrow: install icefall[parquet], or use --format=csv or jsonl"


class RowWriter(Protocol):
    """An open file that rows are appended to."""

    def write(self, rows: Sequence[tuple[Any, ...]]) -> None: ...

    def close(self) -> None: ...


def _time(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def guarded(text: str) -> str:
    """Put an apostrophe before what a spreadsheet would run as a formula: anyone can name a token."""
    return _FORMULA_START.sub("'", text)


def _truth(value: Any) -> str:
    return "true" if value else "false"


def _shown(
    columns: Iterable[ExportColumn], shown: dict[str, Callable[[Any], Any]]
) -> list[tuple[int, Callable[[Any], Any]]]:
    return [(index, shown[column.type]) for index, column in enumerate(columns) if column.type in shown]


def _rewritten(row: tuple[Any, ...], shown: list[tuple[int, Callable[[Any], Any]]]) -> list[Any]:
    values = list(row)
    for index, show in shown:
        if values[index] is not None:
            values[index] = show(values[index])
    return values


class CsvWriter:
    """Comma-separated values as RFC 4180 has them, but with one line feed; what is not known is empty."""

    def __init__(self, path: Path, columns: Sequence[ExportColumn]) -> None:
        self._file = path.open("w", encoding="utf-8", newline="")
        self._csv = csv.writer(self._file, lineterminator="\n")
        self._csv.writerow([column.name for column in columns])
        self._shown = _shown(columns, {"time": _time, "text": guarded, "bool": _truth})

    def write(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._csv.writerows(_rewritten(row, self._shown) for row in rows)

    def close(self) -> None:
        self._file.close()


class JsonLinesWriter:
    """A JSON object on each line."""

    def __init__(self, path: Path, columns: Sequence[ExportColumn]) -> None:
        self._file = path.open("wb")
        self._names = [column.name for column in columns]
        self._shown = _shown(columns, {"time": _time})
        self._encode = msgspec.json.Encoder().encode_lines

    def write(self, rows: Sequence[tuple[Any, ...]]) -> None:
        names, shown = self._names, self._shown
        self._file.write(self._encode([dict(zip(names, _rewritten(row, shown), strict=True)) for row in rows]))

    def close(self) -> None:
        self._file.close()


class ParquetWriter:
    """Parquet with Zstandard compression. Rows are collected until they fill a row group."""

    def __init__(self, path: Path, columns: Sequence[ExportColumn]) -> None:
        import pyarrow  # noqa: PLC0415 - an extra, which other formats do not need
        import pyarrow.parquet  # noqa: PLC0415

        types = {
            "uint32": pyarrow.uint32(),
            "uint64": pyarrow.uint64(),
            "time": pyarrow.timestamp("s"),  # of UTC; with a zone, DuckDB would divide days by the reader's clock
            "bool": pyarrow.bool_(),
        }
        self._schema = pyarrow.schema([(one.name, types.get(one.type, pyarrow.string())) for one in columns])
        self._columns = columns
        self._table = pyarrow.table
        self._array = pyarrow.array
        self._file = pyarrow.parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[tuple[Any, ...]] = []

    def write(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._rows += rows
        while len(self._rows) >= _ROW_GROUP:
            self._write_group(self._rows[:_ROW_GROUP])
            del self._rows[:_ROW_GROUP]

    def _write_group(self, rows: Sequence[tuple[Any, ...]]) -> None:
        by_column = zip(*rows, strict=True)
        arrays = [self._array(values, field.type) for values, field in zip(by_column, self._schema, strict=True)]
        self._file.write_table(self._table(arrays, schema=self._schema))

    def close(self) -> None:
        if self._rows:
            self._write_group(self._rows)
        self._file.close()


FORMATS: dict[str, Callable[[Path, Sequence[ExportColumn]], RowWriter]] = {
    "csv": CsvWriter,
    "jsonl": JsonLinesWriter,
    "parquet": ParquetWriter,
}


def writer_of(name: str) -> Callable[[Path, Sequence[ExportColumn]], RowWriter]:
    """Find the writer of a format. StartRefused where its library is not installed."""
    if name == "parquet" and find_spec("pyarrow") is None:
        raise StartRefused(_PARQUET_NEEDS)
    return FORMATS[name]
