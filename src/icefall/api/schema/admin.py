"""Admin: parameters and results."""

import msgspec

from icefall.api.params.node_kinds import Level, String
from icefall.api.schema.names import Params, Result


class AliasEndpointParams(Params, frozen=True):
    endpoint: String = ""
    alias: String = ""


class AliasChainParams(Params, frozen=True):
    chain: String = ""
    alias: String = ""


class ChainAliasesParams(Params, frozen=True):
    chain: String = ""


class LoggerParams(Params, frozen=True):
    logger_name: String = ""


class SetLevelParams(Params, frozen=True):
    logger_name: String = ""
    log_level: Level = ""
    display_level: Level = ""


class ChainAliases(Result, frozen=True):
    aliases: list[str] | None


class LoggerLevel(Result, frozen=True):
    log_level: str
    display_level: str


class LoggerLevels(Result, frozen=True):
    logger_levels: dict[str, LoggerLevel]


class LoadedVms(Result, frozen=True):
    new_vms: dict[str, list[str]]
    failed_vms: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
