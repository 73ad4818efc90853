"""`icefall backup DIR` of a running instance, and `icefall restore DIR` into an empty data directory.

Every store is copied at one moment of its own: a chain with its checkpoint, its rollups and its audits. A backup is
complete or does not exist, because it gets its name last; a restored one is compared with its manifest first.

A backup may come from elsewhere, so a restore trusts nothing in it: it takes the names that a backup has, follows no
link, and sets every mode itself.
"""

import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from icefall import __version__
from icefall.access.store import store_path
from icefall.compose.stores import copy_store, store_paths
from icefall.config.values import bare
from icefall.db.engine import StoreError
from icefall.errors import StartRefused
from icefall.webhooks.outbox import SQL as OUTBOX
from icefall.webhooks.outbox import new_outbox_id
from icefall.webhooks.secrets import KEY_NAME

MANIFEST = "backup.json"
_CONFIG = "icefall.toml"
_STORES = r"(node|access)\.sqlite|chains/\w[^/]*\.sqlite"
_NAMES = re.compile(rf"{_STORES}|staking/\w[^/]*|{re.escape(KEY_NAME)}|{re.escape(_CONFIG)}")
_CHUNK = 1 << 20
_SHOWN_MAX = 200


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
            size = copy_store(path, copy) if path == store_path(data_dir) else _copy_with_outbox(path, copy)
            report(f"{path.relative_to(data_dir)}: {size / 1e6:,.1f} MB")
            copy.chmod(0o600)
        for path in (*sorted((data_dir / "staking").glob("*")), data_dir / KEY_NAME, data_dir / _CONFIG):
            name = path.relative_to(data_dir)
            if path.is_file() and _NAMES.fullmatch(str(name)):
                (partial / name).parent.mkdir(mode=0o700, exist_ok=True)
                shutil.copy2(path, partial / name)
        files = [_described(path, partial) for path in sorted(partial.rglob("*")) if path.is_file()]
        manifest = Manifest(__version__, int(time.time()), files)
        (partial / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
        partial.replace(target)
    except (OSError, StoreError) as error:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)
        raise StartRefused(f"the backup failed and nothing of it is kept: {error}") from error
    return f"{len(files)} files, {sum(file.size for file in files) / 1e6:,.1f} MB, in {target}"


def _copy_with_outbox(path: Path, copy: Path) -> int:
    """Copy a store and give the outbox of the copy an ID of its own. The access store says how far an outbox was
    delivered, by its ID. Where a copy is put back alone, its next events have numbers that were delivered already: with
    another ID it is read from its beginning, and what was sent is not sent again."""
    return copy_store(path, copy, OUTBOX.renew_outbox_id, {"value": new_outbox_id()})


def restore(source: Path, data_dir: Path) -> str:
    """The text to print. StartRefused for a damaged backup, and where the data directory holds anything already."""
    source = source.resolve()  # the operator may name it by a link; in it there is none
    manifest = _manifest(source)
    try:
        present = next(data_dir.iterdir(), None) if data_dir.exists() else None
    except OSError as error:
        raise StartRefused(f"{data_dir} cannot be used: {error.strerror}") from error
    if present is not None:
        raise StartRefused(
            f"{data_dir} holds {bare(present.name)} already: restore into a new --data-dir, or move it away"
        )
    for file in manifest.files:
        _check_name(source, file.path)
        try:
            found = _described(source / file.path, source)
        except OSError as error:
            raise StartRefused(f"the backup is incomplete: {error}") from error
        if found != file:
            raise StartRefused(f"the backup is damaged: {source / file.path} is not the file that was written")
    if len({file.path for file in manifest.files}) < len(manifest.files):
        raise StartRefused(f"{source / MANIFEST} is damaged: it names a file twice")
    created: list[Path] = []
    try:
        for file in manifest.files:
            _put(source / file.path, data_dir, file.path, created)
    except OSError as error:
        for path in reversed(created):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise StartRefused(f"{data_dir} cannot be written, and nothing is left there: {error}") from error
    taken = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(manifest.taken))
    text = f"{len(manifest.files)} files restored into {data_dir}, as they were on {taken}."
    if any(file.path == _CONFIG for file in manifest.files):
        text += f" A config file came along, {data_dir / _CONFIG}: read it before the first start."
    return text


def _check_name(source: Path, name: str) -> None:
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise StartRefused(f"{source / MANIFEST} names {bare(name, _SHOWN_MAX)}, which is outside of the backup")
    if not _NAMES.fullmatch(name) or not name.isprintable():
        raise StartRefused(f"{source / MANIFEST} names {bare(name, _SHOWN_MAX)}, which is no file of a backup")


def _put(original: Path, data_dir: Path, name: str, created: list[Path]) -> None:
    """Copy one file. What is created, folders too, is added to `created` for the case that a later file fails."""
    target = data_dir / name
    for folder in dict.fromkeys((data_dir, target.parent)):
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True)
            created.append(folder)
    new = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    created.append(target)
    with os.fdopen(new, "wb") as copy, _opened(original) as file:
        shutil.copyfileobj(file, copy, _CHUNK)
        copy.flush()
        os.fsync(copy.fileno())


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file of a backup. OSError for a link, in place of it or of the folder it is in, and for anything but a file."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(folder)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a file")
        yield file


def _manifest(source: Path) -> Manifest:
    try:
        with _opened(source / MANIFEST) as file:
            return msgspec.json.decode(file.read(), type=Manifest)
    except OSError as error:
        raise StartRefused(f"{source} is not a backup: {MANIFEST} cannot be read: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise StartRefused(f"{source / MANIFEST} is damaged: {error}") from error


def _described(path: Path, folder: Path) -> BackedUpFile:
    digest = hashlib.sha256()
    size = 0
    with _opened(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return BackedUpFile(str(path.relative_to(folder)), size, digest.hexdigest())
