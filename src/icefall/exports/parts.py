"""The files of one job in its folder: a CSV file for each kind of row, which grow while it runs, and the archive that
is made of them in the end.
"""

import os
import shutil
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from icefall.exports.rows import encoded

_COPIED = 1 << 20


class PartsLost(Exception):
    """The files are shorter than they were, or gone: the job begins anew."""


class ExportParts:
    """The open files. `columns`: of each file. `sizes`: how long they were when the job was stored last; what has been
    written since is cut off."""

    def __init__(self, folder: Path, columns: Mapping[str, Sequence[str]], sizes: Mapping[str, int]) -> None:
        self._columns = columns
        self._opened = ExitStack()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._files: dict[str, BinaryIO] = {}
        for kind in columns:
            path = folder / f"{kind}.csv"
            size = sizes.get(kind, 0)
            if size and (not path.exists() or path.stat().st_size < size):
                self.close()
                raise PartsLost(path.name)
            self._files[kind] = self._opened.enter_context(_opened(path))
        self.cut(sizes)

    def cut(self, sizes: Mapping[str, int]) -> None:
        """Go back to these lengths. An empty file gets its header."""
        for kind, file in self._files.items():
            file.truncate(sizes.get(kind, 0))
            file.seek(0, os.SEEK_END)
            if not file.tell():
                file.write(encoded([self._columns[kind]]))

    def write(self, kind: str, rows: Iterable[Sequence[object]]) -> None:
        self._files[kind].write(encoded(rows))

    def flushed(self) -> dict[str, int]:
        """Flush all files to the disk; return their lengths."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        return {kind: file.tell() for kind, file in self._files.items()}

    def close(self) -> None:
        self._opened.close()


def _opened(path: Path) -> BinaryIO:
    """Open a file that only we can read, as it is; a new one is empty."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")


def pack_archive(folder: Path, name: str, kinds: Sequence[str], manifest: bytes) -> int:
    """Make one ZIP archive of the files, with a manifest, and remove them; return its size. It has its name only when
    it is whole, so doing it again after a crash does no harm."""
    whole, beside = folder / name, folder / f"{name}.tmp"
    if not whole.exists():
        beside.unlink(missing_ok=True)
        with _opened(beside) as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
                archive.writestr("manifest.json", manifest)
                for kind in kinds:
                    with (folder / f"{kind}.csv").open("rb") as part, archive.open(f"{kind}.csv", "w") as packed:
                        shutil.copyfileobj(part, packed, _COPIED)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(whole)
    for kind in kinds:
        (folder / f"{kind}.csv").unlink(missing_ok=True)
    return whole.stat().st_size
