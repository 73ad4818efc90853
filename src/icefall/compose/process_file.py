"""The file that a running program leaves in its data directory: its process IDs and addresses, for scripts and for
`icefall status`."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from icefall.errors import StartRefused
from icefall.observe.counters import alive

_OF_NODE = ("up", "node")  # one of them at a time has the data directory
_SEVERAL = "index"  # of these several may index different chains into the same data directory


class RunningProgram(NamedTuple):
    """`urls`: the addresses of its listeners, by name; none of a program that only indexes. `health_limit_ns`: how old
    the newest health result of its engine may be; 0 without an engine."""

    pid: int
    verb: str
    urls: dict[str, str]
    health_limit_ns: int = 0


def process_file(data_dir: Path, verb: str) -> Path:
    if verb in _OF_NODE:
        return data_dir / "process.json"
    return data_dir / (f"process-{verb}-{os.getpid()}.json" if verb == _SEVERAL else f"process-{verb}.json")


def put_process_file(path: Path, content: Mapping[str, Any]) -> None:
    beside = path.with_suffix(".new")
    try:
        beside.write_text(json.dumps(content, indent=2))
        beside.replace(path)  # a reader never sees half of it
    except OSError as error:
        raise StartRefused(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def left_while_indexing(data_dir: Path) -> Iterator[None]:
    """Leave the file of an `icefall index`, and remove it at the end, with those of others that were killed."""
    for path in data_dir.glob(f"process-{_SEVERAL}-*.json"):
        if _running(path) is None:
            path.unlink(missing_ok=True)
    own = process_file(data_dir, _SEVERAL)
    with suppress(StartRefused):  # a full disk, which the indexer waits for
        put_process_file(own, {"pid": os.getpid(), "verb": _SEVERAL})
    try:
        yield
    finally:
        own.unlink(missing_ok=True)


def running_programs(data_dir: Path) -> list[RunningProgram]:
    """`icefall up`, `node`, `data`, `metrics` and `index`. A program that was killed leaves its file, and is not
    listed."""
    found = (_running(path) for path in sorted(data_dir.glob("process*.json")))
    return [program for program in found if program is not None]


def _running(path: Path) -> RunningProgram | None:
    try:
        content = json.loads(path.read_bytes())
        pid, health_limit_ns = int(content["pid"]), int(content.get("healthLimitNs", 0))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if not alive(pid) or not _is_ours(pid):
        return None
    urls = {key.removesuffix("Uri"): url for key, url in content.items() if key.endswith("Uri")}
    return RunningProgram(pid, str(content.get("verb", "")), urls, health_limit_ns)


def _is_ours(pid: int) -> bool:
    """Not another process that has got the same ID since; without /proc nothing is known, and it counts."""
    try:
        return any(b"icefall" in Path(f"/proc/{pid}/{file}").read_bytes() for file in ("comm", "cmdline"))
    except OSError:
        return not Path("/proc/self").exists()
