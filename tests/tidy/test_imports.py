"""Who may import whom, one way only: MAY_IMPORT is the rule. Nobody imports in a circle, and what decides is pure."""

import pytest
from tests.tidy.source import Module, imports, modules

SHARED = {"errors", "observe", "meters", "link"}
SETTINGS = {"setting_kinds", "settings", "settings_doc", "config_values", "config_file", "config"}
CONTEXTS = {"node", "xchain", "evm", "metrics", "access"}
INNER = SHARED | {"wire", "db", "upstream"}
COMPOSED = (
    INNER | CONTEXTS | {"api", "config", "demo", "network", "processes", "following", "beginning", "engine", "worker"}
)

MAY_IMPORT: dict[str, set[str]] = {
    "": set(),
    # pure, or knowing nothing of ours
    "wire": set(),
    "errors": set(),
    "observe": set(),
    "meters": set(),
    "link": {"errors"},
    "db": SHARED,
    # settings: a straight line from kinds of value to the loaded configuration
    "setting_kinds": {"wire"},
    "settings": {"wire", "setting_kinds"},
    "settings_doc": {"setting_kinds", "settings"},
    "config_values": {"wire", "errors", "setting_kinds", "settings"},
    "config_file": {"setting_kinds", "settings", "config_values"},
    "config": {"errors", "setting_kinds", "settings", "config_values", "config_file"},
    # the domain: contexts do not know each other
    "upstream": SHARED | {"wire"},
    "node": INNER,
    "xchain": INNER,
    "evm": INNER,
    "metrics": INNER | {"evm"},
    "access": INNER,
    "demo": (INNER - {"db"}) | {"node"},
    # what is served: readers and models of the contexts, never a store that can write
    "api": (INNER - {"db", "upstream"}) | CONTEXTS | {"settings_doc"},
    "web": set(),
    # what composes: the only ones that see the configuration
    "network": INNER | CONTEXTS | {"config"},
    "processes": {"errors", "config"},
    "following": INNER | CONTEXTS | {"config", "network"},
    "indexing": INNER | CONTEXTS | {"config", "processes"},
    "beginning": INNER | CONTEXTS | {"config", "network", "demo", "following"},
    "replaying": {"demo", "processes"},
    "engine": COMPOSED - {"worker"},
    "worker": COMPOSED,
    "runtime": COMPOSED | {"indexing", "replaying"},
    "cli": {"errors", "runtime", "indexing", "access"} | SETTINGS,
}

# What decides is free of clock, disk, network and chance: bytes in, values out.
IMPURE = {"asyncio", "os", "random", "secrets", "socket", "sqlite3", "ssl", "subprocess", "threading", "time", "urllib"}
PURE_XCHAIN = {"model", "syntax", "semantics", "execute", "operations", "ownership", "wellformed", "balance"}
PURE_EVM = {"model", "derive"}
PURE_ACCESS = {"limits", "paging", "clients"}
PURE_METRICS = {"periods", "rollup", "catalogue"}


def name_of(module: Module) -> str:
    return module.name


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_imports_go_one_way(module: Module) -> None:
    assert module.part in MAY_IMPORT, f"{module.shown} belongs to no row of MAY_IMPORT: say what it may import"
    allowed = MAY_IMPORT[module.part] | {module.part, ""}
    wrong = [
        f"{module.shown}:{line} imports {name}"
        for name, line in imports(module)
        if name.partition(".")[0] == "icefall" and name.partition(".")[2].partition(".")[0] not in allowed
    ]
    assert wrong == []


def test_nothing_imports_in_a_circle() -> None:
    ours = {module.name for module in modules()}
    edges = {module.name: {name for name, _ in imports(module) if name in ours} for module in modules()}
    done: set[str] = set()

    def follow(name: str, path: list[str]) -> None:
        assert name not in path, f"a circle: {' -> '.join([*path[path.index(name) :], name])}"
        if name not in done:
            for target in sorted(edges[name] - {name}):
                follow(target, [*path, name])
            done.add(name)

    for name in sorted(edges):
        follow(name, [])


def test_what_decides_is_pure() -> None:
    rules = {"xchain": PURE_XCHAIN, "evm": PURE_EVM, "access": PURE_ACCESS, "metrics": PURE_METRICS}
    pure = [
        m for m in modules() if m.part == "wire" or m.path.stem in rules.get(m.part, ()) or "derivations" in str(m.path)
    ]
    wrong = [
        f"{module.shown}:{line} imports {name}"
        for module in pure
        for name, line in imports(module)
        if name.partition(".")[0] in IMPURE or name.startswith("icefall.db")
    ]
    assert wrong == []


def test_only_who_composes_sees_the_configuration() -> None:
    seeing = {module.part for module in modules() for name, _ in imports(module) if name == "icefall.config.load"}
    composing = {"processes", "engine", "worker", "network", "following", "beginning", "indexing"}
    assert seeing <= {"cli", "runtime"} | composing
