"""Files and folders that are expensive to make: the first test process of a run makes one, and all others use it."""

import atexit
import fcntl
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

_folder: list[Path] = []


def use_folder_of(factory: pytest.TempPathFactory) -> None:
    """The temporary folder of the whole run. xdist gives each of its processes one inside."""
    base = factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / "made-once"
    folder.mkdir(exist_ok=True)
    _folder[:] = [folder]


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The file or folder `name`, which `make` has put at the path it was given. No test may change it."""
    if not _folder:  # outside of pytest, as in bench/: for this process alone
        _folder.append(Path(tempfile.mkdtemp(prefix="icefall-made-once-")))
        atexit.register(shutil.rmtree, _folder[0], ignore_errors=True)
    path = _folder[0] / name
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            unready = Path(tempfile.mkdtemp(dir=path.parent)) / path.name  # a new one, whatever failed before
            make(unready)
            unready.rename(path)
    return path
