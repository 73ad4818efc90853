"""VM plugins: which names count, what a plugin must say of itself, and that a bad one harms only itself."""

import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.waiting import LIMIT_S, until

from icefall.node.admin import plugins
from icefall.node.admin.plugins import PluginError, PluginScan
from icefall.wire.ids import id_text

load_plugins = partial(plugins.load_plugins, timeout_s=LIMIT_S)  # an import has all the time it needs here

VM = id_text(b"first".ljust(32, b"\0"))
OTHER = id_text(b"second".ljust(32, b"\0"))
AVM = "jvYyfQTxGMJLuGWa55kdP2p2zSUYsQ5Raupu4TW34ZAUBAbtq"
KNOWN = {AVM: ["avm"]}

GOOD = """
import types
vm = types.SimpleNamespace(version="v1.2.3", aliases=["counter", "tally"])
"""
PLAIN = """
class vm:
    version = "0.1"
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "plugins"
    made.mkdir()
    return made


def failure(directory: Path, source: str, timeout_s: float = LIMIT_S) -> str:
    """Why a plugin of this source fails, without the part that names the file."""
    path = directory / f"{VM}.py"
    path.write_text(source)
    scan = load_plugins(directory, KNOWN, timeout_s=timeout_s)
    assert scan.new == {}
    assert scan.versions == {}
    prefix = f"failed to load {path}: "
    assert scan.failed[VM].startswith(prefix)
    return scan.failed[VM].removeprefix(prefix)


def install(site: Path, name: str, *entries: str) -> None:
    """A distribution with entry points, as pip would leave it."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[icefall.vms]\n" + "\n".join(entries) + "\n")


# Names


def test_an_empty_directory(directory: Path) -> None:
    assert load_plugins(directory, KNOWN) == PluginScan({}, {}, {})


def test_a_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(PluginError) as refusal:
        load_plugins(tmp_path / "none", KNOWN)
    assert str(refusal.value) == f"open {tmp_path / 'none'}: no such file or directory"


def test_a_file_as_directory(tmp_path: Path) -> None:
    (tmp_path / "plugins").write_text("")
    with pytest.raises(PluginError) as refusal:
        load_plugins(tmp_path / "plugins", KNOWN)
    assert str(refusal.value) == f"open {tmp_path / 'plugins'}: not a directory"


def test_directories_and_hidden_names_are_skipped(directory: Path) -> None:
    (directory / "junk").mkdir()
    (directory / "__pycache__").mkdir()
    (directory / ".hidden").write_text("")
    (directory / ".py").write_text("")
    assert load_plugins(directory, KNOWN) == PluginScan({}, {}, {})


@pytest.mark.parametrize(
    ("file_name", "named"),
    [
        ("junk", '"junk"'),
        ("junk.txt", '"junk"'),
        ("junk.py", '"junk"'),
        (".hidden.txt", '".hidden"'),
        ("a.b.py", '"a.b"'),
        ("111111111111111111116DBWJs.py", '"111111111111111111116DBWJs"'),  # an ID, but of 20 bytes
        (f"{VM[:-1]}.py", f'"{VM[:-1]}"'),
        ('quo"te', '"quo\\"te"'),
    ],
)
def test_a_name_that_is_no_vm_fails_the_call(directory: Path, file_name: str, named: str) -> None:
    (directory / f"{VM}.py").write_text("raise SystemExit('must not be tried')")
    (directory / file_name).write_text("")
    with pytest.raises(PluginError) as refusal:
        load_plugins(directory, KNOWN)
    assert str(refusal.value) == f"invalid vmID: {named}"


@pytest.mark.parametrize("file_name", ["avm", "avm.py", AVM, f"{AVM}.py", f"{AVM}.exe"])
def test_known_vms_are_skipped(directory: Path, file_name: str) -> None:
    (directory / file_name).write_text("raise SystemExit('must not be tried')")
    assert load_plugins(directory, KNOWN) == PluginScan({}, {}, {})


def test_a_vm_that_failed_before_is_skipped(directory: Path) -> None:
    failure(directory, "1 / 0")
    assert load_plugins(directory, {**KNOWN, VM: []}) == PluginScan({}, {}, {})


# Plugins that work


def test_a_plugin_tells_version_and_aliases(directory: Path) -> None:
    (directory / f"{VM}.py").write_text(GOOD)
    (directory / f"{OTHER}.py").write_text(PLAIN)
    scan = load_plugins(directory, KNOWN)
    assert scan == PluginScan({VM: ["counter", "tally"], OTHER: []}, {}, {VM: "v1.2.3", OTHER: "0.1"})
    assert VM not in sys.modules
    assert sorted(path.name for path in directory.iterdir()) == sorted([f"{VM}.py", f"{OTHER}.py"])


def test_a_file_named_by_the_operators_alias(directory: Path) -> None:
    (directory / "mine.py").write_text(GOOD)
    scan = load_plugins(directory, KNOWN, aliases={"mine": VM, "elsewhere": OTHER})
    assert scan.new == {VM: ["mine", "counter", "tally"]}


def test_the_id_is_never_its_own_alias(directory: Path) -> None:
    (directory / f"{VM}.py").write_text(f"class vm:\n    version = '1'\n    aliases = ['x', {VM!r}, 'x']")
    assert load_plugins(directory, KNOWN).new == {VM: ["x"]}


def test_what_a_plugin_prints_or_leaves_running_does_not_matter(directory: Path) -> None:
    (directory / f"{VM}.py").write_text(
        "import atexit, os, sys, threading, time\n"
        'print(\'{"version": "wrong"}\', flush=True)\n'
        "os.write(1, b'noise')\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "atexit.register(time.sleep, 600)\n" + PLAIN
    )
    assert load_plugins(directory, KNOWN).versions == {VM: "0.1"}


def test_installed_plugins(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    install(site, "counters", f"{VM} = counters.chain:vm", "mine = counters", "avm = counters.gone:vm")
    (site / "counters").mkdir()
    (site / "counters" / "__init__.py").write_text(PLAIN)
    (site / "counters" / "chain.py").write_text(GOOD)
    monkeypatch.syspath_prepend(site)
    scan = load_plugins(directory, KNOWN, aliases={"mine": OTHER})
    assert scan == PluginScan({OTHER: ["mine"], VM: ["counter", "tally"]}, {}, {OTHER: "0.1", VM: "v1.2.3"})
    assert "counters" not in sys.modules


def test_an_installed_plugin_that_is_gone(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", "counters", f"{VM} = counters_gone:vm")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert load_plugins(directory, KNOWN).failed == {
        VM: "failed to load counters_gone:vm: ModuleNotFoundError: No module named 'counters_gone'"
    }


def test_an_installed_plugin_with_a_bad_name(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", "counters", "nonsense = counters:vm")
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(PluginError, match=r'^invalid vmID: "nonsense"$'):
        load_plugins(directory, KNOWN)


# Plugins that fail


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import nothing_like_it", "ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("def", f"SyntaxError: invalid syntax ({VM}.py, line 1)"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import os; os._exit(3)", "the import ended its process with status 3"),
        ("import os; os._exit(0)", "the import ended its process with status 0"),
        ("", f"AttributeError: module '{VM}' has no attribute 'vm'"),
        ("vm = 1", "TypeError: vm.version must be a string, got None"),
        ("class vm: version = 7", "TypeError: vm.version must be a string, got 7"),
        ("class vm: version = ''", "TypeError: vm.version must be a string, got ''"),
        ("class vm: version = '1'; aliases = 'ab'", "TypeError: vm.aliases must be a list of strings, got 'ab'"),
        ("class vm: version = '1'; aliases = ['']", "TypeError: vm.aliases must be a list of strings, got ['']"),
        ("raise Exception('x' * 5000)", "Exception: " + "x" * 989),
    ],
)
def test_why_a_plugin_failed_is_reported(directory: Path, source: str, why: str) -> None:
    assert failure(directory, source) == why


def test_a_plugin_that_crashes(directory: Path) -> None:
    source = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    assert failure(directory, source) == f"the import was ended by signal 11 ({signal.strsignal(11)})"


def test_a_plugin_that_hangs_is_ended_with_its_children(directory: Path, tmp_path: Path) -> None:
    left = tmp_path / "children"
    source = (
        "import os, subprocess, time\n"
        "sleep = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(left)!r}, 'w').write(f'{{os.getpid()}} {{sleep.pid}}')\n"
        "time.sleep(600)\n"
    )
    assert failure(directory, source, timeout_s=5) == "not done importing after 5 s"
    own, child = map(int, left.read_text().split())
    until(lambda: has_ended(own), "the end of the import")
    until(lambda: has_ended(child), "the end of what it started")


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return f"{pid} (sleep) Z" in Path(f"/proc/{pid}/stat").read_text()  # not collected yet by who inherited it
    except OSError:
        return True


def test_several_plugins_are_imported_at_the_same_time(directory: Path, tmp_path: Path) -> None:
    """Each one waits until all have started, so none would be done if they ran one after the other."""
    started = tmp_path / "started"
    started.mkdir()
    source = (
        "import pathlib, time\n"
        f"started = pathlib.Path({str(started)!r})\n"
        "(started / pathlib.Path(__file__).stem).touch()\n"
        "while len(list(started.iterdir())) < 3:\n"
        "    time.sleep(0.01)\n"
    )
    for number in range(3):
        (directory / f"{id_text(bytes([number]) * 32)}.py").write_text(source + PLAIN)
    scan = load_plugins(directory, KNOWN)
    assert not scan.failed


@pytest.mark.parametrize(("file_name", "content"), [("", b"\x7fELF\x02"), (".exe", b"MZ"), (".txt", b""), (".", b"")])
def test_plugins_that_are_not_python(directory: Path, file_name: str, content: bytes) -> None:
    path = directory / f"{VM}{file_name}"
    path.write_bytes(content)
    assert load_plugins(directory, KNOWN).failed == {
        VM: f"failed to load {path}: Icefall's VM plugins are Python modules, named <VM ID>.py"
    }


def test_a_binary_called_python(directory: Path) -> None:
    path = directory / f"{VM}.py"
    path.write_bytes(b"\x7fELF\x00\x01")
    assert "SyntaxError: " in load_plugins(directory, KNOWN).failed[VM]


def test_a_file_that_cannot_be_read(directory: Path) -> None:
    (directory / f"{VM}.py").symlink_to(directory / "gone")
    assert "FileNotFoundError: " in load_plugins(directory, KNOWN).failed[VM]


def test_two_plugins_for_one_vm(directory: Path) -> None:
    first, second = directory / VM, directory / f"{VM}.py"
    first.write_text("")
    second.write_text(GOOD)
    assert load_plugins(directory, KNOWN) == PluginScan(
        {}, {VM: f"more than one plugin for this VM: {first}, {second}"}, {}
    )


def test_aliases_belong_to_one_vm(directory: Path) -> None:
    (directory / f"{VM}.py").write_text(GOOD)
    (directory / f"{OTHER}.py").write_text("class vm:\n    version = '1'\n    aliases = ['avm']")
    scan = load_plugins(directory, KNOWN)
    assert scan.failed == {OTHER: "alias already mapped to an ID: avm"}
    assert list(scan.new) == [VM]

    (directory / f"{OTHER}.py").write_text(GOOD)
    scan = load_plugins(directory, KNOWN)
    first, second = sorted([VM, OTHER])
    assert scan.new == {first: ["counter", "tally"]}
    assert scan.failed == {second: "alias already mapped to an ID: counter"}


def test_an_interpreter_that_cannot_start(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert failure(directory, GOOD) == "cannot start /nowhere/python: No such file or directory"


def test_the_time_a_plugin_gets() -> None:
    assert plugins.LOAD_TIMEOUT_S == 5
