"""Installs the peers at fixed versions, once, outside of our own environment."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.peers.processes import Missing

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("ICEFALL_BENCH_PEERS") or HERE.parents[1] / ".counterparts" / "peers").resolve()
LIMIT_S = 600


def npm_project(name: str) -> Path:
    """A copy of `bench/peers/kits/<name>` with its packages; their install scripts are not run."""
    source, folder = HERE / "kits" / name, CACHE / name
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise Missing("node and npm are not on this machine")
    wanted = (source / "package.json").read_text()
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / ".installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        (folder / "package.json").write_text(wanted)
        command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
        run_installer(name, command, folder)
        stamp.write_text(wanted)
    shutil.copytree(source, folder, dirs_exist_ok=True)
    return folder


def python_environment(name: str, packages: list[str], customize: str) -> Path:
    """The programs of a virtual environment; `customize` is run at every start of its Python."""
    folder = CACHE / name
    stamp, wanted = folder / ".installed", "\n".join([*packages, customize])
    if not stamp.exists() or stamp.read_text() != wanted:
        run_installer(name, [sys.executable, "-m", "venv", "--clear", str(folder)], HERE)
        run_installer(name, [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages], HERE)
        for site in folder.glob("lib/*/site-packages"):
            (site / "sitecustomize.py").write_text(customize)
        stamp.write_text(wanted)
    return folder / "bin"


def run_installer(name: str, command: list[str], folder: Path) -> None:
    print(f"  installing {name} into {CACHE} (once)", flush=True)
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise Missing(f"not installed within {LIMIT_S} s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise Missing(f"cannot be installed: {lines[-1][-200:] if lines else 'no output'}")
