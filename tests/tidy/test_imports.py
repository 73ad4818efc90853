"""Import direction: MAY_IMPORT says which package may import which. No cycles, and modules with rules are pure."""

import subprocess
import sys

import pytest
from tests.forked import exit_code_of
from tests.tidy.source import imports, modules

CONTEXTS = {"node", "xchain", "pchain", "evm", "metrics", "access", "webhooks", "exports"}
SHARED = {"errors", "observe", "ipc"}
INNER = SHARED | {"wire", "db", "upstream"}

MAY_IMPORT: dict[str, set[str]] = {
    "": set(),
    # pure, or independent of the rest
    "wire": set(),
    "errors": set(),
    "observe": set(),
    "ipc": {"errors"},
    "db": SHARED,
    "config": {"wire", "errors"},
    # the domain: contexts do not import each other
    "upstream": SHARED | {"wire"},
    "node": INNER,
    "xchain": INNER,
    "pchain": INNER | {"xchain"},  # the lists of unspent outputs have one form, and are kept in one way
    "evm": INNER,
    "metrics": INNER | {"evm"},
    "access": INNER,
    "webhooks": INNER | {"evm"},
    "exports": INNER | {"evm"},
    "demo": (INNER - {"db"}) | {"node"},
    "primary": INNER | CONTEXTS | {"demo"},
    # the interfaces: readers and models of the contexts, never a store that can write
    "server": {"errors"},
    "api": (INNER - {"db", "upstream"}) | CONTEXTS | {"config", "server"},
    "web": set(),
    # what constructs and starts: only these see the configuration
    "compose": INNER | CONTEXTS | {"primary", "api", "server", "config", "demo", "web"},
    "processes": INNER | CONTEXTS | {"compose", "api", "server", "config", "demo"},
    "commands": INNER | CONTEXTS | {"compose", "config", "api"},
    "cli": {"errors", "commands", "processes", "compose", "config", "access"},
    "__main__": {"cli"},
}
STORE_ENGINES = ("icefall.db.sqlite", "icefall.db.postgres")

# Modules that contain rules use no clock, disk, network or randomness: bytes in, values out.
IMPURE = {"asyncio", "os", "random", "secrets", "socket", "sqlite3", "ssl", "subprocess", "threading", "time", "urllib"}
PURE = {
    "xchain": {"model", "syntax", "semantics", "execute", "ownership"},
    "pchain": {"model", "parameters", "fees", "stakers", "state", "transactions", "execute", "genesis"},
    "evm": {"model", "encoding"},
    "access": {"budgets", "page_tokens", "client_address", "usage"},
    "metrics": {"rollup", "catalogue"},
    "webhooks": {"model", "matching", "signing", "retrying"},
}


def test_imports_go_one_way() -> None:
    assert {module.shown: module.part for module in modules() if module.part not in MAY_IMPORT} == {}
    wrong = [
        f"{module.shown}:{line} imports {name}"
        for module in modules()
        for name, line in imports(module)
        if name.partition(".")[0] == "icefall"
        and name.partition(".")[2].partition(".")[0] not in MAY_IMPORT[module.part] | {module.part, ""}
    ]
    assert wrong == []


def test_the_interfaces_import_each_other_nowhere() -> None:
    interfaces = {"node", "data", "metrics", "networks"}
    wrong = [
        f"{module.shown}:{line} imports {name}"
        for module in modules()
        for name, line in imports(module)
        if module.part == "api" and name.startswith("icefall.api.")
        for own, other in [(module.name.split(".")[2:3], name.split(".")[2:3])]
        if other and other[0] in interfaces and own != other and (own[0] in interfaces or own == ["http"])
    ]
    assert wrong == []


def test_no_import_cycles() -> None:
    ours = {module.name for module in modules()}
    edges = {module.name: {name for name, _ in imports(module) if name in ours} for module in modules()}
    done: set[str] = set()

    def follow(name: str, path: list[str]) -> None:
        assert name not in path, f"import cycle: {' -> '.join([*path[path.index(name) :], name])}"
        if name not in done:
            for target in sorted(edges[name] - {name}):
                follow(target, [*path, name])
            done.add(name)

    for name in sorted(edges):
        follow(name, [])


def test_modules_with_rules_are_pure() -> None:
    listed = [m for m in modules() if m.path.stem in PURE.get(m.part, ())]
    assert {(part, stem) for part, stems in PURE.items() for stem in stems} == {(m.part, m.path.stem) for m in listed}
    pure = [*listed, *(m for m in modules() if m.part == "wire" or m.path.parent.name == "deriving")]
    wrong = [
        f"{module.shown}:{line} imports {name}"
        for module in pure
        for name, line in imports(module)
        if name.partition(".")[0] in IMPURE or name.startswith("icefall.db")
    ]
    assert wrong == []


def test_only_what_starts_processes_sees_the_configuration() -> None:
    config = ("icefall.config.load", "icefall.config.settings")
    seeing = {module.part for module in modules() for name, _ in imports(module) if name in config}
    assert seeing <= {"cli", "commands", "processes", "compose", "config"}


def test_only_compose_stores_names_a_store_engine() -> None:
    naming = {
        module.name
        for module in modules()
        if module.part != "db" and any(name in STORE_ENGINES for name, _ in imports(module))
    }
    assert naming == {"icefall.compose.stores"}


# Modules that take long to import, and the parts of the program that start without them.
SLOW = ("aiohttp", "cryptography", "Crypto", "difflib", "psycopg")
STARTED = {
    "icefall.cli": SLOW,
    "icefall.processes.listening": (*SLOW, "asyncio", "sqlite3", "subprocess"),
    "icefall.processes.start": SLOW,
    "icefall.compose.worker": SLOW,
    "icefall.compose.node_app": SLOW,
    "icefall.compose.rest_apps": SLOW,
    "icefall.compose.engine": tuple(name for name in SLOW if name != "cryptography"),
}


@pytest.mark.parametrize("module", STARTED)
def test_a_process_starts_without_what_it_may_never_need(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert [name for name in STARTED[module] if name in loaded] == []


def _end_well_if_imported(names: tuple[str, ...]) -> None:
    sys.exit(0 if sys.modules.keys() >= set(names) else 1)


def test_tests_fork_the_program_from_a_process_that_has_imported_it() -> None:
    """Each of some hundred starts would import it again."""
    assert exit_code_of(_end_well_if_imported, tuple(module.name for module in modules())) == 0
