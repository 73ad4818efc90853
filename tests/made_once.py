"""Files that are expensive to make: the first test process of a run makes one, and all others use it."""

import fcntl
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
    """The file `name`, which `make` has put at the path it was given. No test may change it."""
    path = _folder[0] / name
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            unready = path.with_stem(f"{path.stem}.unready")
            unready.unlink(missing_ok=True)  # of a process that failed
            make(unready)
            unready.rename(path)
    return path
