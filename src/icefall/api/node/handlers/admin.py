"""Admin: calls that change something are forwarded to the engine, the others are answered here."""

import msgspec

from icefall.api.dialect import Dialect
from icefall.api.http.structs import Empty, NoParams
from icefall.api.node.schema.node import (
    AliasChainParams,
    AliasEndpointParams,
    ChainAliases,
    ChainAliasesParams,
    LoadedVms,
    LoggerLevel,
    LoggerLevels,
    LoggerParams,
    SetLevelParams,
)
from icefall.ipc.socket import SocketClient
from icefall.node.admin.commands import loggers_named
from icefall.node.chains import Chains
from icefall.observe.log import LevelPage


async def alias(params: AliasEndpointParams, engine: SocketClient) -> Empty:
    await engine.call("alias", endpoint=params.endpoint, alias=params.alias)
    return Empty()


async def alias_chain(params: AliasChainParams, engine: SocketClient) -> Empty:
    await engine.call("alias_chain", chain=params.chain, alias=params.alias)
    return Empty()


async def get_chain_aliases(params: ChainAliasesParams, chains: Chains, dialect: Dialect) -> ChainAliases:
    names = await chains.aliases(params.chain)
    return ChainAliases(dialect.no_aliases if names is None else names)


async def get_logger_level(params: LoggerParams, page: LevelPage) -> LoggerLevels:
    return _levels(page, loggers_named(page, params.logger_name))


async def set_logger_level(
    params: SetLevelParams, engine: SocketClient, page: LevelPage, dialect: Dialect
) -> Empty | LoggerLevels:
    changed = await engine.call(
        "set_logger_level", logger=params.logger_name, log_level=params.log_level, display_level=params.display_level
    )
    return _levels(page, changed) if dialect.set_level_result else Empty()


def _levels(page: LevelPage, names: list[str]) -> LoggerLevels:
    return LoggerLevels({name: LoggerLevel(*page.get(name)) for name in names})


async def load_vms(_: NoParams, engine: SocketClient) -> LoadedVms:
    found = await engine.call("load_vms")
    return LoadedVms(found["new"], found["failed"] or msgspec.UNSET)


async def start_cpu_profiler(_: NoParams, engine: SocketClient) -> Empty:
    await engine.call("start_cpu_profiler")
    return Empty()


async def stop_cpu_profiler(_: NoParams, engine: SocketClient) -> Empty:
    await engine.call("stop_cpu_profiler")
    return Empty()


async def memory_profile(_: NoParams, engine: SocketClient) -> Empty:
    await engine.call("memory_profile")
    return Empty()


async def lock_profile(_: NoParams, engine: SocketClient) -> Empty:
    await engine.call("lock_profile")
    return Empty()
