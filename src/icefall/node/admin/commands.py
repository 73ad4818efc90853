"""The admin API's changes, made in the engine: each call is one transaction, or changes nothing."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from icefall.db.engine import Store, Transaction
from icefall.errors import CallFailed
from icefall.node.admin.plugins import PluginError, load_plugins
from icefall.node.admin.profiles import LockStats, MeteredLock, ProfileError, Profiles
from icefall.node.chains import (
    ALIAS_MAX,
    ALIASES_FOLLOWED_MAX,
    ALIASES_MAX,
    ENDPOINT_MAX,
    TOO_MANY_FOLLOWED,
    Chains,
    splits,
)
from icefall.node.store import SQL, NodeReader
from icefall.observe.log import LevelPage, Logs
from icefall.wire.ids import VM_NAMES, id_text
from icefall.wire.text.go_text import quote


class Admin:
    def __init__(
        self,
        store: Store,
        chains: Chains,
        bases: frozenset[str],
        logs: Logs,
        profiles: Profiles,
        plugin_dir: Path,
        locks: LockStats,
        *,
        alias_in_bytes: bool = False,
    ) -> None:
        self._store = store
        self._reader = NodeReader(store)
        self._chains = chains
        self._bases = bases | {f"bc/{chain.id_text}" for chain in chains}
        self._built_in = {name for chain in chains for alias in chain.aliases for name in (alias, f"bc/{alias}")}
        self._logs = logs
        self._profiles = profiles
        self._plugin_dir = plugin_dir
        self._in_bytes = alias_in_bytes
        self._levels_turn = MeteredLock("logger levels", locks)  # the stored levels must be those last set
        self._plugins_turn = MeteredLock("VM plugins", locks)  # two calls at once must not load the same plugin twice

    def commands(self) -> Mapping[str, Callable[..., object]]:
        """The calls that workers may send to the engine, by name."""
        return {
            "alias": self.alias,
            "alias_chain": self.alias_chain,
            "set_logger_level": self.set_logger_level,
            "load_vms": self.load_vms,
            "start_cpu_profiler": lambda: self._profile(self._profiles.start_cpu),
            "stop_cpu_profiler": lambda: self._profile(self._profiles.stop_cpu),
            "memory_profile": lambda: self._profile(self._profiles.memory),
            "lock_profile": lambda: self._profile(self._profiles.lock),
        }

    async def alias(self, endpoint: str, alias: str) -> None:
        self._check_length(alias)
        if len(endpoint) > ENDPOINT_MAX:
            raise CallFailed(f"endpoint may be {ENDPOINT_MAX} characters long at most, got {len(endpoint)}")
        await self._store.write(lambda tx: self._put_alias(tx, endpoint, alias))

    async def alias_chain(self, chain: str, alias: str) -> None:
        self._check_length(alias)
        chain_id = await self._chains.lookup(chain)

        def change(tx: Transaction) -> None:
            if self._chains.known(alias) or tx.rows(SQL.chain_of_alias, {"alias": alias}):
                raise CallFailed(f"alias already mapped to an ID: {alias}")
            tx.run(SQL.put_chain_alias, {"alias": alias, "chain_id": chain_id})
            self._put_alias(tx, f"bc/{id_text(chain_id)}", f"bc/{alias}")

        await self._store.write(change)

    def _check_length(self, alias: str) -> None:
        if (len(alias.encode()) if self._in_bytes else len(alias)) > ALIAS_MAX:
            raise CallFailed("alias length is too long")

    def _put_alias(self, tx: Transaction, endpoint: str, alias: str) -> None:
        if alias in self._bases:
            raise CallFailed(f"failed to create endpoint as /ext/{alias} already exists")
        if alias in self._built_in or tx.rows(SQL.endpoint_of_alias, {"alias": alias}):
            raise CallFailed(f"route is either already aliased or already maps to a handle: /ext/{alias}")
        if tx.rows(SQL.endpoint_alias_count)[0][0] >= ALIASES_MAX:
            raise CallFailed(f"there are {ALIASES_MAX} aliases already, and no more are stored")
        if self._followed(tx, endpoint, {alias}) > ALIASES_FOLLOWED_MAX:
            raise CallFailed(TOO_MANY_FOLLOWED)
        tx.run(SQL.put_endpoint_alias, {"alias": alias, "endpoint": endpoint})

    def _followed(self, tx: Transaction, path: str, seen: set[str]) -> int:
        """How many aliases a request for `path` would follow, and those in `seen`; the search ends above the limit.
        A worker counts again: an alias may be made before the one it names."""
        for alias, tail in splits(path):
            rows = tx.rows(SQL.endpoint_of_alias, {"alias": alias}) if alias not in seen else []
            if rows and len(seen) <= ALIASES_FOLLOWED_MAX:
                seen.add(alias)
                self._followed(tx, rows[0][0] + tail, seen)
        return len(seen)

    async def set_logger_level(self, logger: str, log_level: str, display_level: str) -> list[str]:
        """Change one logger, or all for an empty name; the names touched. An empty level stays as it is."""
        if not log_level and not display_level:
            raise CallFailed("need to specify either displayLevel or logLevel")
        page = self._logs.page
        names = loggers_named(page, logger)
        async with self._levels_turn:
            await self._change_levels(names, log_level, display_level)
        return names

    async def _change_levels(self, names: list[str], log_level: str, display_level: str) -> None:
        page = self._logs.page
        levels = {name: page.get(name) for name in names}
        changed = {name: (log_level or old[0], display_level or old[1]) for name, old in levels.items()}

        def change(tx: Transaction) -> None:
            for name, (log, display) in changed.items():
                tx.run(SQL.put_logger_level, {"logger": name, "log_level": log, "display_level": display})

        await self._store.write(change)
        for name, (log, display) in changed.items():
            page.put(name, log, display)

    async def restore_levels(self) -> None:
        for name, (log, display) in (await self._reader.logger_levels()).items():
            if name in self._logs.page.names():
                self._logs.page.put(name, log, display)

    async def load_vms(self) -> dict[str, dict[str, list[str]] | dict[str, str]]:
        async with self._plugins_turn:
            return await self._load_vms()

    async def _load_vms(self) -> dict[str, dict[str, list[str]] | dict[str, str]]:
        known = {id_text(vm_id): [name] for vm_id, name in VM_NAMES.items()}
        known.update({plugin.vm_id: plugin.aliases for plugin in await self._reader.plugins()})
        try:
            scan = await asyncio.to_thread(load_plugins, self._plugin_dir, known)
        except PluginError as error:
            raise CallFailed(str(error)) from error
        found = [(vm_id, aliases, "") for vm_id, aliases in scan.new.items()]
        found += [(vm_id, [], failure) for vm_id, failure in scan.failed.items()]

        def change(tx: Transaction) -> None:
            for vm_id, aliases, failure in found:
                text = msgspec.json.encode(aliases).decode()
                tx.run(SQL.put_vm_plugin, {"vm_id": vm_id, "aliases": text, "failure": failure})

        if found:
            await self._store.write(change)
        for vm_id, failure in scan.failed.items():
            self._logs["vm-factory"].warn("VM plugin failed to load", vm=vm_id, error=failure)
        return {"new": dict(scan.new), "failed": dict(scan.failed)}

    async def _profile(self, act: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(act)
        except ProfileError as error:
            raise CallFailed(str(error)) from error


def loggers_named(page: LevelPage, logger: str) -> list[str]:
    """All loggers for an empty name, else the one."""
    if not logger:
        return page.names()
    if logger not in page.names():
        raise CallFailed(f"logger with name {quote(logger)} not found")
    return [logger]
