"""VM plugins: what `admin.loadVMs` and the start of the node find, try and report.

A plugin is a Python object `vm` with a `version` (string) and, optionally, `aliases` (list of strings). It comes either

- as a file `<name>.py` in the plugin directory, a module that defines `vm`, or
- as an entry point `<name> = "package.module:vm"` in group `icefall.vms` of an installed distribution;

its name is the VM's ID or an alias of it. A plugin is imported in a process of its own, which ends when it has
printed version and aliases: one that hangs, exits or crashes is a line in `failed`. The engine itself never imports it.
"""

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, NoReturn

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.ids import id_from_text
from icefall.wire.text.go_text import quote

GROUP = "icefall.vms"
LOAD_TIMEOUT_S = 5.0
LOADS_AT_ONCE = 4
ERROR_SIZE_MAX = 1000


class PluginError(Exception):
    """The plugin directory could not be read; the text is the node's."""


class PluginScan(NamedTuple):
    """VM ID to aliases (never the ID itself), to why it failed, and to version. No ID is both new and failed."""

    new: dict[str, list[str]]
    failed: dict[str, str]
    versions: dict[str, str]


class _Candidate(NamedTuple):
    vm_id_text: str
    kind: str  # "file" or "entry point"
    target: str  # the file's path, or the entry point's module:attribute


class _Description(msgspec.Struct, frozen=True):
    version: str
    aliases: list[str]


def load_plugins(
    directory: Path,
    known: Mapping[str, Sequence[str]],
    *,
    aliases: Mapping[str, str] | None = None,
    timeout_s: float = LOAD_TIMEOUT_S,
) -> PluginScan:
    """Try every plugin whose VM is not in `known` (VM ID to its aliases, VMs that failed before included).

    `aliases` are names the operator has given to VMs, installed or not: alias to VM ID.
    """
    taken = {alias: vm_id for vm_id, names in known.items() for alias in names} | dict(aliases or {})
    claims: dict[str, list[_Candidate]] = {}
    for candidate in (*_installed(taken), *_files(directory, taken)):
        if candidate.vm_id_text not in known:
            claims.setdefault(candidate.vm_id_text, []).append(candidate)
    with ThreadPoolExecutor(LOADS_AT_ONCE) as pool:
        outcomes = list(pool.map(lambda candidates: _load(candidates, timeout_s), claims.values()))

    scan = PluginScan({}, {}, {})
    for vm_id, outcome in zip(claims, outcomes, strict=True):
        if isinstance(outcome, str):
            scan.failed[vm_id] = outcome
            continue
        clash = next((alias for alias in outcome.aliases if taken.get(alias, vm_id) != vm_id), None)
        if clash is not None:
            scan.failed[vm_id] = f"alias already mapped to an ID: {clash}"
            continue
        taken.update(dict.fromkeys(outcome.aliases, vm_id))
        scan.new[vm_id] = [alias for alias, owner in taken.items() if owner == vm_id and alias != vm_id]
        scan.versions[vm_id] = outcome.version
    return scan


def _installed(taken: Mapping[str, str]) -> Iterator[_Candidate]:
    for entry in sorted(entry_points(group=GROUP)):
        yield _Candidate(_vm_id(entry.name, taken), "entry point", entry.value)


def _files(directory: Path, taken: Mapping[str, str]) -> Iterator[_Candidate]:
    try:
        paths = sorted(path for path in directory.iterdir() if not path.is_dir())
    except OSError as failure:
        raise PluginError(f"open {directory}: {(failure.strerror or str(failure)).lower()}") from failure
    for path in paths:
        name = path.name[: path.name.rindex(".")] if "." in path.name else path.name
        if name:  # `.hidden` is all extension
            yield _Candidate(_vm_id(name, taken), "file", str(path))


def _vm_id(name: str, taken: Mapping[str, str]) -> str:
    if name in taken:
        return taken[name]
    try:
        id_from_text(name)
    except WireError as error:
        raise PluginError(f"invalid vmID: {quote(name)}") from error
    return name


def _load(candidates: list[_Candidate], timeout_s: float) -> _Description | str:
    """The plugin's description, or why it has none."""
    first = candidates[0]
    if len(candidates) > 1:
        return f"more than one plugin for this VM: {', '.join(candidate.target for candidate in candidates)}"
    if first.kind == "file" and not first.target.endswith(".py"):
        return f"failed to load {first.target}: Icefall's VM plugins are Python modules, named <VM ID>.py"
    outcome = _describe_in_child(first, timeout_s)
    return outcome if isinstance(outcome, _Description) else f"failed to load {first.target}: {outcome}"


def _describe_in_child(plugin: _Candidate, timeout_s: float) -> _Description | str:
    command = [sys.executable, "-P", "-B", "-m", __name__, plugin.kind, plugin.target]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        child = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as failure:
        return f"cannot start {sys.executable}: {failure.strerror}"
    with child:
        try:
            output, _ = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # and whatever it has started
            return f"not done importing after {timeout_s:g} s"
    try:
        return msgspec.json.decode(output, type=_Description | str)
    except msgspec.DecodeError:
        if child.returncode < 0:
            return f"the import was ended by signal {-child.returncode} ({signal.strsignal(-child.returncode)})"
        return f"the import ended its process with status {child.returncode}"


# In the child


def _print_description(kind: str, target: str) -> NoReturn:
    """Print a description of the plugin (object) or what went wrong (text), and nothing else, then exit.

    What the plugin prints goes to stderr; threads and exit handlers it leaves behind are not waited for.
    """
    report = os.dup(1)
    os.dup2(2, 1)
    answer: _Description | str
    try:
        answer = _describe(_import_file(target) if kind == "file" else EntryPoint("vm", target, GROUP).load())
    except BaseException as error:  # SystemExit too
        answer = f"{type(error).__name__}: {error}"[:ERROR_SIZE_MAX]
    os.write(report, msgspec.json.encode(answer))
    os._exit(0)


def _import_file(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def _describe(plugin: object) -> _Description:
    vm = plugin.vm if isinstance(plugin, ModuleType) else plugin
    version, aliases = getattr(vm, "version", None), getattr(vm, "aliases", [])
    if not isinstance(version, str) or not version:
        raise TypeError(f"vm.version must be a string, got {version!r}")
    if not isinstance(aliases, list) or not all(isinstance(alias, str) and alias for alias in aliases):
        raise TypeError(f"vm.aliases must be a list of strings, got {aliases!r}")
    return _Description(version, aliases)


if __name__ == "__main__":
    _print_description(*sys.argv[1:])
