"""`icefall backup DIR` of a running instance, and `icefall restore DIR` into an empty data directory.

Every store is copied at one moment of its own: a chain with its checkpoint, its rollups and its audits. A backup is
complete or does not exist, because it gets its name last; a restored one is compared with its manifest first.
"""

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from icefall import __version__
from icefall.compose.stores import copy_store, store_paths
from icefall.db.engine import StoreError
from icefall.errors import StartRefused

MANIFEST = "backup.json"
_CHUNK = 1 << 20


class BackedUpFile(msgspec.Struct, frozen=True):
    """`path` is relative to the data directory."""

    path: str
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """`version`: of the program that made the backup. `taken`: Unix time."""

    version: str
    taken: int
    files: list[BackedUpFile]


def back_up(data_dir: Path, target: Path, report: Callable[[str], object]) -> str:
    """The text to print at the end; `report` gets a line per store."""
    stores = store_paths(data_dir)
    if not stores:
        raise StartRefused(f"nothing is stored in {data_dir}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StartRefused(f"{target} exists and is not an empty directory: name a new one for each backup")
    partial = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))  # only its owner can read it
        for path in stores:
            copy = partial / path.relative_to(data_dir)
            copy.parent.mkdir(mode=0o700, exist_ok=True)
            report(f"{path.relative_to(data_dir)}: {copy_store(path, copy) / 1e6:,.1f} MB")
            copy.chmod(0o600)
        if (data_dir / "staking").is_dir():
            shutil.copytree(data_dir / "staking", partial / "staking")
        if (data_dir / "icefall.toml").is_file():
            shutil.copy2(data_dir / "icefall.toml", partial)
        files = [_described(path, partial) for path in sorted(partial.rglob("*")) if path.is_file()]
        manifest = Manifest(__version__, int(time.time()), files)
        (partial / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
        partial.replace(target)
    except (OSError, StoreError) as error:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)
        raise StartRefused(f"the backup failed and nothing of it is kept: {error}") from error
    return f"{len(files)} files, {sum(file.size for file in files) / 1e6:,.1f} MB, in {target}"


def restore(source: Path, data_dir: Path) -> str:
    """The text to print. StartRefused for a damaged backup, and where the data directory holds stores already."""
    manifest = _manifest(source)
    present = store_paths(data_dir)
    if present:
        raise StartRefused(
            f"{data_dir} holds {present[0].name} already: restore into a new --data-dir, or move it away"
        )
    for file in manifest.files:
        if Path(file.path).is_absolute() or ".." in Path(file.path).parts:
            raise StartRefused(f"{source / MANIFEST} names {file.path}, which is outside of the backup")
        try:
            found = _described(source / file.path, source)
        except OSError as error:
            raise StartRefused(f"the backup is incomplete: {error}") from error
        if found != file:
            raise StartRefused(f"the backup is damaged: {source / file.path} is not the file that was written")
    try:
        for file in manifest.files:
            target = data_dir / file.path
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            beside = target.with_name(f"{target.name}.restoring")
            shutil.copy2(source / file.path, beside)
            beside.replace(target)
    except OSError as error:
        raise StartRefused(f"{data_dir} cannot be written: {error}") from error
    taken = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(manifest.taken))
    return f"{len(manifest.files)} files restored into {data_dir}, as they were on {taken}."


def _manifest(source: Path) -> Manifest:
    try:
        return msgspec.json.decode((source / MANIFEST).read_bytes(), type=Manifest)
    except OSError as error:
        raise StartRefused(f"{source} is not a backup: {MANIFEST} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise StartRefused(f"{source / MANIFEST} is damaged: {error}") from error


def _described(path: Path, folder: Path) -> BackedUpFile:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return BackedUpFile(str(path.relative_to(folder)), path.stat().st_size, digest.hexdigest())
