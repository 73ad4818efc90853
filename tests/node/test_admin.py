"""What an administrator can change, in the engine: the rules, the texts, and that a refusal changes nothing."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.opened import make_empty

from icefall.db.engine import StoreError
from icefall.db.sqlite import SqliteStore
from icefall.errors import CallFailed
from icefall.node.admin import commands
from icefall.node.admin.commands import Admin, loggers_named
from icefall.node.admin.profiles import LockStats, Profiles
from icefall.node.chains import ALIASES_FOLLOWED_MAX, Chains, primary_chains
from icefall.node.store import PACKAGE, NodeReader
from icefall.observe.cpu_samples import SampledProgram
from icefall.observe.log import LevelPage, Logs
from icefall.wire.ids import AVM_ID, id_text

X_ID, C_ID = b"x" * 32, b"c" * 32
X_TEXT = id_text(X_ID)
LOGGERS = ["main", "vm-factory", "P", "X", "C"]
VM_TEXT = id_text(b"v" * 32)


class Scene:
    """An administrator's end of an engine, over one data directory."""

    def __init__(self, folder: Path) -> None:
        make_empty(folder / "node.sqlite", PACKAGE)
        self.store = SqliteStore(folder / "node.sqlite", PACKAGE)
        self.reader = NodeReader(self.store)
        self.page = LevelPage.private(LOGGERS)
        for name in LOGGERS:
            self.page.put(name, "INFO", "WARN")
        self.chains = Chains(primary_chains(X_ID, C_ID, b"1" * 32, b"2" * 32, b"3" * 32), self.reader)
        self.locks = LockStats()
        self.plugins = folder / "plugins"
        self.plugins.mkdir(exist_ok=True)
        self.admin = Admin(
            self.store,
            self.chains,
            frozenset({"admin", "health", "info", "metrics"}),
            Logs("engine", self.page, folder / "logs", "json"),
            Profiles(folder / "profiles", self.locks, SampledProgram(folder / "samples", dict)),
            self.plugins,
            self.locks,
        )

    def alias(self, endpoint: str, alias: str) -> None:
        asyncio.run(self.admin.alias(endpoint, alias))

    def alias_chain(self, chain: str, alias: str) -> None:
        asyncio.run(self.admin.alias_chain(chain, alias))

    def endpoint(self, alias: str) -> str | None:
        return asyncio.run(self.reader.endpoint_of(alias))

    def rows(self) -> int:
        count = "select (select count(*) from endpoint_alias) + (select count(*) from chain_alias)"
        return int(asyncio.run(self.store.rows(count))[0][0])


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.store.close()


# -- aliases of endpoints ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "alias", ["myinfo", "a/b/c", "with space", "é" * 256, "a" * 512, "", "q?x=1", "trail/", "health/liveness", "Info"]
)
def test_nearly_any_text_can_be_an_alias(scene: Scene, alias: str) -> None:
    scene.alias("info", alias)
    assert scene.endpoint(alias) == "info"


@pytest.mark.parametrize("alias", ["a" * 513, "é" * 513])
def test_an_alias_has_512_characters_at_most(scene: Scene, alias: str) -> None:
    with pytest.raises(CallFailed, match=r"^alias length is too long$"):
        scene.alias("info", alias)
    with pytest.raises(CallFailed, match=r"^alias length is too long$"):
        scene.alias_chain("X", alias)
    assert scene.rows() == 0


@pytest.mark.parametrize("alias", ["info", "admin", f"bc/{X_TEXT}"])
def test_an_endpoint_is_no_alias(scene: Scene, alias: str) -> None:
    with pytest.raises(CallFailed) as caught:
        scene.alias("health", alias)
    assert str(caught.value) == f"failed to create endpoint as /ext/{alias} already exists"
    assert scene.rows() == 0


def test_aliases_of_aliases_are_limited(scene: Scene) -> None:
    scene.alias("info", "a1")
    for number in range(2, ALIASES_FOLLOWED_MAX + 1):
        scene.alias(f"a{number - 1}", f"a{number}")
    with pytest.raises(CallFailed, match=f"followed {ALIASES_FOLLOWED_MAX} times at most"):
        scene.alias(f"a{ALIASES_FOLLOWED_MAX}", "more")
    with pytest.raises(CallFailed, match="at most"):
        scene.alias(f"a{ALIASES_FOLLOWED_MAX}/tail", "more")
    assert scene.rows() == ALIASES_FOLLOWED_MAX
    scene.alias("a1", "a sibling")
    scene.alias("loop", "loop")


def test_the_number_of_aliases_is_limited(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "ALIASES_MAX", 3)
    scene.alias("info", "a")
    scene.alias("info", "b")
    scene.alias_chain("X", "c")
    with pytest.raises(CallFailed, match="there are 3 aliases already"):
        scene.alias("info", "d")
    with pytest.raises(CallFailed, match="there are 3 aliases already"):
        scene.alias_chain("X", "d")
    assert scene.rows() == 4  # an alias of a chain is one of its endpoint too


def test_an_aliased_endpoint_has_a_length_limit(scene: Scene) -> None:
    with pytest.raises(CallFailed, match="endpoint may be 1024 characters long at most, got 1025"):
        scene.alias("e" * 1025, "a")


@pytest.mark.parametrize("alias", ["X", "avm", "bc/C", "platform"])
def test_a_built_in_alias_is_taken(scene: Scene, alias: str) -> None:
    with pytest.raises(CallFailed) as caught:
        scene.alias("health", alias)
    assert str(caught.value) == f"route is either already aliased or already maps to a handle: /ext/{alias}"


def test_an_alias_is_given_once(scene: Scene) -> None:
    scene.alias("info", "mine")
    for endpoint in ("info", "health"):
        with pytest.raises(CallFailed, match="route is either already aliased or already maps to a handle: /ext/mine"):
            scene.alias(endpoint, "mine")
    assert scene.endpoint("mine") == "info"


def test_a_target_need_not_exist(scene: Scene) -> None:
    scene.alias("not/there/yet", "later")
    scene.alias("later", "latest")
    assert (scene.endpoint("later"), scene.endpoint("latest")) == ("not/there/yet", "later")


# -- aliases of chains -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", ["X", "avm", X_TEXT])
def test_a_chain_alias_works_wherever_its_id_does(scene: Scene, chain: str) -> None:
    scene.alias_chain(chain, "mychain")
    assert asyncio.run(scene.chains.lookup("mychain")) == X_ID
    assert scene.endpoint("bc/mychain") == f"bc/{X_TEXT}"
    assert asyncio.run(scene.chains.aliases(X_TEXT)) == ["X", "avm", X_TEXT, "mychain"]


def test_chain_aliases_are_listed_in_the_order_they_were_given(scene: Scene) -> None:
    for alias in ("zeta", "alpha", "mid"):
        scene.alias_chain("X", alias)
    scene.alias_chain("zeta", "by alias")
    assert asyncio.run(scene.chains.aliases(X_TEXT)) == ["X", "avm", X_TEXT, "zeta", "alpha", "mid", "by alias"]


@pytest.mark.parametrize(
    ("chain", "alias", "text"),
    [
        ("nope", "a", "there is no ID with alias: nope"),
        ("", "a", "there is no ID with alias: "),
        ("X", "X", "alias already mapped to an ID: X"),
        ("X", "C", "alias already mapped to an ID: C"),
        ("X", X_TEXT, f"alias already mapped to an ID: {X_TEXT}"),
    ],
)
def test_chain_aliases_refused(scene: Scene, chain: str, alias: str, text: str) -> None:
    with pytest.raises(CallFailed) as caught:
        scene.alias_chain(chain, alias)
    assert str(caught.value) == text
    assert scene.rows() == 0


def test_the_same_chain_alias_again_is_refused(scene: Scene) -> None:
    scene.alias_chain("X", "mine")
    for chain in ("X", "C"):
        with pytest.raises(CallFailed, match="alias already mapped to an ID: mine"):
            scene.alias_chain(chain, "mine")


def test_a_chain_alias_whose_route_is_taken_changes_nothing(scene: Scene) -> None:
    scene.alias("info", "bc/mine")
    with pytest.raises(CallFailed, match="route is either already aliased or already maps to a handle: /ext/bc/mine"):
        scene.alias_chain("X", "mine")
    with pytest.raises(CallFailed, match="there is no ID with alias: mine"):
        asyncio.run(scene.chains.lookup("mine"))
    assert scene.endpoint("bc/mine") == "info"
    assert scene.rows() == 1


def test_an_alias_requested_twice_at_once_is_given_once(scene: Scene) -> None:
    async def scenario() -> list[object]:
        calls = [scene.admin.alias_chain(chain, "mine") for chain in ("X", "C") * 10]
        return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = asyncio.run(scenario())
    assert outcomes.count(None) == 1
    assert {str(outcome) for outcome in outcomes if outcome} == {"alias already mapped to an ID: mine"}
    assert scene.rows() == 2


@pytest.mark.parametrize(
    ("text", "error"),
    [("X", "input string is smaller than the checksum size"), ("", None), (X_TEXT[:-1] + "x", None)],
)
def test_get_chain_aliases_takes_ids_only(scene: Scene, text: str, error: str | None) -> None:
    with pytest.raises(CallFailed, match=error):
        asyncio.run(scene.chains.aliases(text))
    assert asyncio.run(scene.chains.aliases(id_text(b"?" * 32))) is None


def test_aliases_survive_a_restart(scene: Scene, tmp_path: Path) -> None:
    scene.alias("info", "mine")
    scene.alias_chain("C", "sea")
    again = Scene(tmp_path)
    assert again.endpoint("mine") == "info"
    assert asyncio.run(again.chains.lookup("sea")) == C_ID
    again.store.close()


# -- levels ------------------------------------------------------------------------------------------------------


def set_level(scene: Scene, logger: str, log_level: str, display_level: str) -> list[str]:
    return asyncio.run(scene.admin.set_logger_level(logger, log_level, display_level))


def test_one_logger_changes_and_the_others_do_not(scene: Scene) -> None:
    assert set_level(scene, "X", "DEBUG", "") == ["X"]
    assert scene.page.get("X") == ("DEBUG", "WARN")
    assert set_level(scene, "X", "", "OFF") == ["X"]
    assert scene.page.get("X") == ("DEBUG", "OFF")
    assert {scene.page.get(name) for name in LOGGERS if name != "X"} == {("INFO", "WARN")}


def test_without_a_name_all_change(scene: Scene) -> None:
    assert set_level(scene, "", "VERBO", "FATAL") == sorted(LOGGERS)
    assert {scene.page.get(name) for name in LOGGERS} == {("VERBO", "FATAL")}


def test_a_missing_level_is_refused_before_the_name_is_checked(scene: Scene) -> None:
    with pytest.raises(CallFailed, match=r"^need to specify either displayLevel or logLevel$"):
        set_level(scene, "unknown", "", "")


@pytest.mark.parametrize("name", ["unknown", "x", "Main"])
def test_an_unknown_logger_is_refused(scene: Scene, name: str) -> None:
    with pytest.raises(CallFailed, match=f'^logger with name "{name}" not found$'):
        set_level(scene, name, "DEBUG", "")
    with pytest.raises(CallFailed, match=f'^logger with name "{name}" not found$'):
        loggers_named(scene.page, name)


def test_levels_survive_a_restart(scene: Scene, tmp_path: Path) -> None:
    set_level(scene, "X", "DEBUG", "")
    again = Scene(tmp_path)
    asyncio.run(again.admin.restore_levels())
    assert again.page.get("X") == ("DEBUG", "WARN")
    assert again.page.get("main") == ("INFO", "WARN")
    again.store.close()


def test_levels_of_a_logger_that_is_no_more_are_ignored(scene: Scene, tmp_path: Path) -> None:
    put = "insert into logger_level (logger, log_level, display_level) values ('old', 'DEBUG', 'DEBUG')"
    asyncio.run(scene.store.write(lambda tx: tx.run(put)))
    asyncio.run(scene.admin.restore_levels())
    assert scene.page.names() == sorted(LOGGERS)


def test_levels_set_at_the_same_time_do_not_undo_each_other(scene: Scene) -> None:
    async def scenario() -> None:
        for _ in range(20):
            await asyncio.gather(
                scene.admin.set_logger_level("X", "DEBUG", ""), scene.admin.set_logger_level("X", "", "OFF")
            )
            assert scene.page.get("X") == ("DEBUG", "OFF")
            await scene.admin.set_logger_level("X", "INFO", "WARN")

    asyncio.run(scenario())


def test_a_level_that_cannot_be_stored_does_not_hold_either(scene: Scene) -> None:
    scene.store._writer.execute("pragma query_only = on")
    with pytest.raises(StoreError):
        set_level(scene, "", "DEBUG", "DEBUG")
    assert {scene.page.get(name) for name in LOGGERS} == {("INFO", "WARN")}


# -- plugins and profiles ----------------------------------------------------------------------------------------


def test_a_plugin_is_loaded_once_and_remembered(scene: Scene, tmp_path: Path) -> None:
    (scene.plugins / f"{VM_TEXT}.py").write_text("class vm:\n    version = '1'\n    aliases = ['mine']\n")

    async def scenario() -> list[object]:
        return await asyncio.gather(*(scene.admin.load_vms() for _ in range(3)))

    outcomes = asyncio.run(scenario())
    assert sorted(outcomes, key=str) == [
        {"new": {VM_TEXT: ["mine"]}, "failed": {}},
        {"new": {}, "failed": {}},
        {"new": {}, "failed": {}},
    ]
    assert [(p.vm_id, p.aliases) for p in asyncio.run(scene.reader.plugins())] == [(VM_TEXT, ["mine"])]


def test_a_failed_plugin_is_reported_once_logged_and_remembered(scene: Scene, tmp_path: Path) -> None:
    (scene.plugins / f"{VM_TEXT}.py").write_text("raise RuntimeError('no luck')")
    result = asyncio.run(scene.admin.load_vms())
    assert result["new"] == {}
    assert "no luck" in str(result["failed"][VM_TEXT])
    assert asyncio.run(scene.admin.load_vms()) == {"new": {}, "failed": {}}
    assert "no luck" in (tmp_path / "logs" / "vm-factory.log").read_text()
    (plugin,) = asyncio.run(scene.reader.plugins())
    assert (plugin.aliases, "no luck" in plugin.failure) == ([], True)


def test_plugins_that_cannot_be_looked_through_are_a_refusal(scene: Scene) -> None:
    (scene.plugins / "junk.py").touch()
    with pytest.raises(CallFailed, match=r'^invalid vmID: "junk"$'):
        asyncio.run(scene.admin.load_vms())


def test_a_plugin_named_like_a_known_vm_is_skipped(scene: Scene) -> None:
    (scene.plugins / f"{id_text(AVM_ID)}.py").write_text("raise RuntimeError")
    (scene.plugins / "evm.py").write_text("raise RuntimeError")
    assert asyncio.run(scene.admin.load_vms()) == {"new": {}, "failed": {}}


def test_profiles_refuse_with_the_nodes_words(scene: Scene, tmp_path: Path) -> None:
    commands = scene.admin.commands()

    async def call(name: str) -> None:
        await commands[name]()  # type: ignore[misc]

    with pytest.raises(CallFailed, match=r"^cpu profiler doesn't exist$"):
        asyncio.run(call("stop_cpu_profiler"))
    asyncio.run(call("start_cpu_profiler"))
    with pytest.raises(CallFailed, match=r"^cpu profiler already running$"):
        asyncio.run(call("start_cpu_profiler"))
    for name in ("stop_cpu_profiler", "memory_profile", "lock_profile"):
        asyncio.run(call(name))
    assert sorted(path.name for path in (tmp_path / "profiles").iterdir()) == [
        "cpu.profile",
        "lock.profile",
        "mem.profile",
    ]


def test_waits_for_the_administrators_locks_are_profiled(scene: Scene) -> None:
    async def scenario() -> None:
        await asyncio.gather(*(scene.admin.set_logger_level("X", "DEBUG", "") for _ in range(5)))

    asyncio.run(scenario())
    assert scene.locks.profile().samples
