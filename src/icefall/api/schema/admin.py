"""Admin: parameters and results."""

import msgspec

from icefall.api.kinds import Level, Text
from icefall.api.schema.names import Params, Result


class AliasEndpointParams(Params, frozen=True):
    endpoint: Text = ""
    alias: Text = ""


class AliasChainParams(Params, frozen=True):
    chain: Text = ""
    alias: Text = ""


class ChainAliasesParams(Params, frozen=True):
    chain: Text = ""


class LoggerParams(Params, frozen=True):
    logger_name: Text = ""


class SetLevelParams(Params, frozen=True):
    logger_name: Text = ""
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
