"""Admin: parameters and results."""

import msgspec

from icefall.api.kinds import Level, Text
from icefall.api.schema.names import Ask, Told


class AliasAsk(Ask, frozen=True):
    endpoint: Text = ""
    alias: Text = ""


class AliasChainAsk(Ask, frozen=True):
    chain: Text = ""
    alias: Text = ""


class ChainAsk(Ask, frozen=True):
    chain: Text = ""


class LoggerAsk(Ask, frozen=True):
    logger_name: Text = ""


class SetLevelAsk(Ask, frozen=True):
    logger_name: Text = ""
    log_level: Level = ""
    display_level: Level = ""


class ChainAliases(Told, frozen=True):
    aliases: list[str] | None


class LoggerLevel(Told, frozen=True):
    log_level: str
    display_level: str


class LoggerLevels(Told, frozen=True):
    logger_levels: dict[str, LoggerLevel]


class LoadedVms(Told, frozen=True):
    new_vms: dict[str, list[str]]
    failed_vms: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
