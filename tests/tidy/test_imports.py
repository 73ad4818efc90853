"""Who may import whom, one way only: MAY_IMPORT is the rule. Nobody imports in a circle, and what decides is pure."""

import pytest
from tests.tidy.source import Module, imports, modules

CONTEXTS = {"node", "xchain", "evm", "metrics", "access"}
SHARED = {"errors", "observe", "ipc"}
INNER = SHARED | {"wire", "db", "upstream"}

MAY_IMPORT: dict[str, set[str]] = {
    "": set(),
    # pure, or knowing nothing of ours
    "wire": set(),
    "errors": set(),
    "observe": set(),
    "ipc": {"errors"},
    "db": SHARED,
    "config": {"wire", "errors"},
    # the domain: contexts do not know each other
    "upstream": SHARED | {"wire"},
    "node": INNER,
    "xchain": INNER,
    "evm": INNER,
    "metrics": INNER | {"evm"},
    "access": INNER,
    "demo": (INNER - {"db"}) | {"node"},
    "primary": INNER | CONTEXTS | {"demo"},
    # what is served: readers and models of the contexts, never a store that can write
    "api": (INNER - {"db", "upstream"}) | CONTEXTS | {"config"},
    "web": set(),
    # what composes: the only ones that see the configuration
    "run": INNER | CONTEXTS | {"primary", "api", "config", "demo"},
    "cli": {"errors", "run", "config", "access"},
}
STORE_ENGINES = ("icefall.db.sqlite", "icefall.db.postgres")

# What decides is free of clock, disk, network and chance: bytes in, values out.
IMPURE = {"asyncio", "os", "random", "secrets", "socket", "sqlite3", "ssl", "subprocess", "threading", "time", "urllib"}
PURE_XCHAIN = {"model", "syntax", "semantics", "execute", "operations", "ownership", "wellformed", "balance"}
PURE_EVM = {"model", "amounts", "positions"}
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
        m
        for m in modules()
        if m.part == "wire" or m.path.stem in rules.get(m.part, ()) or m.path.parent.name == "deriving"
    ]
    wrong = [
        f"{module.shown}:{line} imports {name}"
        for module in pure
        for name, line in imports(module)
        if name.partition(".")[0] in IMPURE or name.startswith("icefall.db")
    ]
    assert wrong == []


def test_only_composition_roots_see_the_configuration() -> None:
    seeing = {module.part for module in modules() for name, _ in imports(module) if name == "icefall.config.load"}
    assert seeing <= {"cli", "run", "config"}


def test_only_run_stores_names_a_store_engine() -> None:
    naming = {
        module.name
        for module in modules()
        if module.part != "db" and any(name in STORE_ENGINES for name, _ in imports(module))
    }
    assert naming == {"icefall.run.stores"}
