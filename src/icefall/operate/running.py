"""The programs that run on a data directory, from the process files they leave there."""

import json
from pathlib import Path
from typing import NamedTuple

from icefall.observe.counters import alive


class RunningProgram(NamedTuple):
    """`urls`: the addresses of its listeners, by name."""

    pid: int
    urls: dict[str, str]


def running_programs(data_dir: Path) -> list[RunningProgram]:
    """`icefall up`, `node`, `data` and `metrics`. A program that was killed leaves its file, and is not listed."""
    found = []
    for path in sorted(data_dir.glob("process*.json")):
        try:
            content = json.loads(path.read_bytes())
            pid = int(content["pid"])
        except (OSError, ValueError, TypeError, KeyError):
            continue
        if alive(pid) and _is_ours(pid):
            urls = {key.removesuffix("Uri"): url for key, url in content.items() if key.endswith("Uri")}
            found.append(RunningProgram(pid, urls))
    return found


def _is_ours(pid: int) -> bool:
    """Not another process that has got the same ID since; without /proc nothing is known, and it counts."""
    try:
        return any(b"icefall" in Path(f"/proc/{pid}/{file}").read_bytes() for file in ("comm", "cmdline"))
    except OSError:
        return not Path("/proc/self").exists()
