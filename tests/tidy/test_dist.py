"""The built package: complete, versioned in one place, and able to run without the checkout."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.tidy.source import PACKAGE, ROOT
from tests.waiting import LIMIT_S

from icefall import __version__


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make dist` builds."""
    assert "\t$(BIN)/python -m build --no-isolation --outdir dist\n" in (ROOT / "Makefile").read_text()
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_the_wheel_holds_the_whole_package(dist: Path) -> None:
    with zipfile.ZipFile(dist / f"icefall-{__version__}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert [str(path) for path in files if f"icefall/{path.relative_to(PACKAGE)}" not in names] == []
    with tarfile.open(dist / f"icefall-{__version__}.tar.gz") as source:
        assert not any("/tests/" in name for name in source.getnames()), "recordings would make it large"


def test_the_wheel_runs_without_the_checkout(dist: Path, tmp_path: Path) -> None:
    """A data file that is missing from it would be missed here: the demo reads recordings, SQL and migrations."""
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    shown = "import icefall, icefall.demo.history as h; print(icefall.__file__, sum(1 for _ in h.recorded_runs()))"
    done = subprocess.run(
        [sys.executable, "-c", shown], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert done.stdout.startswith(str(tmp_path / "site")), done.stderr
    command = [sys.executable, "-m", "icefall", "keys", "add", "--name=a", f"--data-dir={tmp_path / 'data'}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert "This is the key of a" in done.stdout, done.stderr


def test_the_version_is_in_one_place_and_in_the_changelog() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [heading.split()[0] for heading in headings if heading != headings[0] or heading != "Unreleased"]
    assert released == sorted(released, key=lambda text: [int(part) for part in text.split(".")], reverse=True)
    assert released[0] == __version__
