"""The files of one exported table and their manifest.

Every file holds the rows of a range of blocks. It is written beside its place and renamed when it is whole; then the
manifest, which lists it with its digest, is replaced in the same way. So a run that was killed is continued by the next
one: files that the manifest lists are kept as long as the chain still has their last block, also those of blocks that
the next run does not ask for.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from icefall.errors import StartRefused
from icefall.exports.formats import RowWriter
from icefall.exports.tables import ExportedChain, Kept, Table

MANIFEST, LOCK = "manifest.json", ".lock"
_VERSION = 2  # of the schema: it grows when the columns of a table change
_TRIES = 5  # to write a file while blocks are rolled back
_CHUNK = 1 << 20


class ExportedFile(msgspec.Struct, rename="camel", frozen=True):
    """A file of the export, as the manifest lists it."""

    name: str
    first_block: int
    last_block: int
    last_block_hash: str
    rows: int
    bytes: int
    sha256: str


class ExportManifest(msgspec.Struct, rename="camel"):
    """All that a reader of the files needs to know."""

    version: int
    chain_id: str
    table: str
    format: str
    partition: str
    columns: list[dict[str, str]]
    files: list[ExportedFile]


class Target(NamedTuple):
    """The folder an export is written to, and its form."""

    folder: Path
    format: str
    partition: str
    open_file: Callable[[Path, Sequence[Any]], RowWriter]


class TableExport:
    """The export of one table of a chain. `run` writes the files that are missing or of another history."""

    def __init__(self, chain: ExportedChain, table: Table, target: Target) -> None:
        self._chain = chain
        self._table = table
        self._target = target
        self._folder = target.folder / chain.name / table.name
        self._manifest = self._read_manifest()

    def run(self, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[ExportedFile, bool]]:
        """Write a file for each range of blocks; yield each, and whether it was there already. StartRefused while
        another process writes here."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with _locked(self._folder):
            self._manifest = self._read_manifest()
            yield from self._run(ranges)

    def _run(self, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[ExportedFile, bool]]:
        self._unlist_replaced()
        self._remove_unlisted()
        for first, last in map(self._widened, ranges):
            same = (one for one in self._manifest.files if (one.first_block, one.last_block) == (first, last))
            known = next(same, None)
            if known is not None and self._is_current(known):
                yield known, True
                continue
            written = self._write(first, last)
            apart = [one for one in self._manifest.files if one.last_block < first or one.first_block > last]
            self._put_files(sorted([*apart, written], key=lambda one: one.first_block))
            self._remove_unlisted()
            yield written, False

    def _widened(self, blocks: tuple[int, int]) -> tuple[int, int]:
        """The blocks of a file with those of listed files that overlap it, so that no row that was exported is lost
        when fewer blocks are asked for. A table that is not in the order of the chain is as it was after the last
        block that is asked for."""
        first, last = blocks
        for one in self._manifest.files if self._table.kept is Kept.BY_BLOCK else ():
            if one.first_block <= last and one.last_block >= first and self._is_current(one):
                first, last = min(first, one.first_block), max(last, one.last_block)
        return first, last

    # -- the manifest ------------------------------------------------------------------------------------------

    def _read_manifest(self) -> ExportManifest:
        columns = [{"name": column.name, "type": column.type} for column in self._table.columns]
        target = self._target
        new = ExportManifest(_VERSION, self._chain.name, self._table.name, target.format, target.partition, columns, [])
        try:
            found = msgspec.json.decode((self._folder / MANIFEST).read_bytes(), type=ExportManifest)
        except FileNotFoundError:
            return new
        except msgspec.MsgspecError as error:
            raise StartRefused(f"{self._folder / MANIFEST} is not the manifest of an export: {error}") from error
        if msgspec.structs.replace(found, files=[]) != new:
            raise StartRefused(
                f"{self._folder} holds an export with another format, partition or columns"
                f"{'' if found.version == _VERSION else ', made by another release'}: choose another --out"
            )
        return found

    def _put_files(self, listed: list[ExportedFile]) -> None:
        self._manifest.files = listed
        _replace(self._folder / MANIFEST, msgspec.json.format(msgspec.json.encode(self._manifest)) + b"\n")

    def _unlist_replaced(self) -> None:
        """Take files out of the manifest whose last block was replaced or rolled back, also those that this run does
        not write. Blocks below those that are stored are not known to have changed."""
        span = self._chain.span()
        lowest = 0 if span is None else span[0]
        kept = [
            one
            for one in self._manifest.files
            if one.last_block < lowest or self._chain.block_hash(one.last_block) == one.last_block_hash
        ]
        if len(kept) < len(self._manifest.files):
            self._put_files(kept)

    def _is_current(self, file: ExportedFile) -> bool:
        """Whether the file is there as it was written, and the chain still has its last block. A table that is not in
        the order of the chain is written anew: what is known of a token changes without a block."""
        path = self._folder / file.name
        if self._table.kept is not Kept.BY_BLOCK or not path.exists() or path.stat().st_size != file.bytes:
            return False
        return self._chain.block_hash(file.last_block) == file.last_block_hash

    def _remove_unlisted(self) -> None:
        """Remove files that an earlier run began or replaced; only such as this program names."""
        listed = {file.name for file in self._manifest.files}
        ours = re.compile(rf"{self._chain.name}__{self._table.name}__\d+_\d+\.\w+(\.tmp)?|{MANIFEST}\.tmp")
        for path in self._folder.iterdir():
            if ours.fullmatch(path.name) and path.name not in listed:
                path.unlink()

    # -- one file ----------------------------------------------------------------------------------------------

    def _write(self, first: int, last: int) -> ExportedFile:
        """Write the rows of a range of blocks. Where blocks were rolled back meanwhile, the file is begun again: its
        rows would be of two histories."""
        name = f"{self._chain.name}__{self._table.name}__{first}_{last}.{self._target.format}"
        path, beside = self._folder / name, self._folder / f"{name}.tmp"
        for _ in range(_TRIES):
            history, last_hash = self._chain.history(), self._chain.block_hash(last)
            rows = self._write_rows(beside, first, last)
            if self._chain.history() == history and last_hash:
                break
        else:
            raise StartRefused(f"the blocks up to {last} are being replaced: export up to an older block with --to")
        size, digest = _flushed(beside)
        if any(one.name == name for one in self._manifest.files):  # what is listed is always what is there
            self._put_files([one for one in self._manifest.files if one.name != name])
        beside.replace(path)
        return ExportedFile(name, first, last, last_hash, rows, size, digest)

    def _write_rows(self, path: Path, first: int, last: int) -> int:
        writer = self._target.open_file(path, self._table.columns)
        count = 0
        try:
            for piece in self._chain.pieces(self._table, first, last):
                writer.write([self._table.values(row) for row in piece])
                count += len(piece)
        finally:
            writer.close()
        return count


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder: two processes would write the same file beside its place."""
    with (folder / LOCK).open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartRefused(f"another icefall export writes to {folder}: wait for it") from None
        yield


def _flushed(path: Path) -> tuple[int, str]:
    """Flush a file to the disk; return its size and digest."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
        os.fsync(file.fileno())
    return size, digest.hexdigest()


def _replace(path: Path, content: bytes) -> None:
    beside = path.with_name(f"{path.name}.tmp")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
