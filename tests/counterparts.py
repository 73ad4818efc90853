"""Real counterparts for tests: found on this machine or installed from their registry, else the test is skipped and
says so. On CI, where all can be had, a missing one is a failure."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

CACHE = Path(__file__).parent.parent / ".counterparts"
INSTALL_LIMIT_S = 300


def missing(what: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"{what} is not here, and on CI it must be")
    pytest.skip(f"{what} is not on this machine")


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        missing(name)
    return found


def npm_project(source: Path) -> Path:
    """A folder with the package's dependencies installed, shared by all test processes."""
    program("node")
    npm = program("npm")
    folder = CACHE / source.name
    folder.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{source.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = (source / "package.json").read_text()
        stamp = folder / ".installed"
        if not stamp.exists() or stamp.read_text() != wanted:
            (folder / "package.json").write_text(wanted)
            command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
            done = subprocess.run(command, cwd=folder, capture_output=True, timeout=INSTALL_LIMIT_S, check=False)
            if done.returncode:
                missing(f"an npm registry ({done.stderr.decode()[-200:]})")
            stamp.write_text(wanted)
        for script in source.glob("*.js"):
            copied = Path(shutil.copy(script, folder / f"{script.name}.new"))
            copied.replace(folder / script.name)  # another test may be reading it
    return folder
