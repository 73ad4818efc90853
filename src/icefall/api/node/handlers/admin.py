"""Handlers of the admin interface: calls that change something are forwarded to the engine, the others are answered
here.
"""

import msgspec

from icefall.api.dialect import Dialect
from icefall.api.http.routes import EndpointNames
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
from icefall.errors import BadRequest, CallFailed
from icefall.ipc.socket import SocketClient
from icefall.node.admin.commands import loggers_named
from icefall.node.chains import ENDPOINT_MAX, Chains
from icefall.observe.log import LevelPage
from icefall.wire.ids import id_text


async def alias(params: AliasEndpointParams, engine: SocketClient, endpoints: EndpointNames, dialect: Dialect) -> Empty:
    _require(dialect, endpoint=params.endpoint, alias=params.alias)
    if dialect.endpoint_must_exist and not await endpoints.exists(params.endpoint):
        raise CallFailed(f"there is no endpoint /ext/{params.endpoint[:ENDPOINT_MAX]}")
    await engine.call("alias", endpoint=params.endpoint, alias=params.alias)
    return Empty()


async def alias_chain(params: AliasChainParams, engine: SocketClient, dialect: Dialect) -> Empty:
    _require(dialect, chain=params.chain, alias=params.alias)
    await engine.call("alias_chain", chain=params.chain, alias=params.alias)
    return Empty()


async def get_chain_aliases(params: ChainAliasesParams, chains: Chains, dialect: Dialect) -> ChainAliases:
    _require(dialect, chain=params.chain)
    chain = params.chain
    if dialect.alias_names_chain and (chain_id := await chains.find(chain)) is not None:
        chain = id_text(chain_id)
    names = await chains.aliases(chain)
    return ChainAliases(dialect.no_aliases if names is None else names)


def _require(dialect: Dialect, **params: str) -> None:
    """Raise BadRequest for a parameter that is missing or empty. The existing node takes an empty text for it."""
    missing = [name for name, text in params.items() if not text]
    if missing and dialect.admin_params_required:
        raise BadRequest(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")


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
