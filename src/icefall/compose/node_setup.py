"""What the engine, the indexer and the workers of a node build alike: the configured network and the loggers."""

from pathlib import Path

from icefall.config.settings import ChainConfig, Config
from icefall.node.health.runner import Freshness, UnstoredFailureReader
from icefall.observe.log import Logs, open_logs
from icefall.observe.log_file import MIB, Rotation
from icefall.pchain.parameters import RewardParameters, StakingLimits
from icefall.primary.network import (
    AssetChainSource,
    LearnedNetwork,
    Network,
    NetworkSettings,
    PlatformSettings,
    network_of,
)
from icefall.wire.text.go_text import SECOND_NS

_SLACK_NS = 10 * 10**9  # a busy machine delays health checks without the engine being unhealthy


def configured_network(config: Config, now: int, learned: LearnedNetwork | None = None) -> Network:
    return network_of(
        NetworkSettings(
            config.network_id,
            config.genesis_file,
            config.tx_fee,
            config.create_asset_tx_fee,
            tuple(AssetChainSource(one.id, one.genesis, one.aliases) for one in config.asset_chain),
            _platform_settings(config),
        ),
        now,
        learned,
    )


def _platform_settings(config: Config) -> PlatformSettings:
    rewards = RewardParameters(
        config.stake_min_consumption_rate,
        config.stake_max_consumption_rate,
        config.stake_minting_period // SECOND_NS,
        config.stake_supply_cap,
    )
    limits = StakingLimits(config.min_validator_stake, config.min_delegator_stake)
    return PlatformSettings(config.upgrade_file, rewards, limits)


def unstored_path(data_dir: Path) -> Path:
    """Return the path at which the engine leaves a health failure that it could not store."""
    return data_dir / "run" / "health"


def health_limit_ns(config: Config) -> int:
    """Return how old the newest health result of a working engine may be."""
    return 2 * config.health_check_frequency + config.health_check_timeout + _SLACK_NS


def freshness(data_dir: Path, limit_ns: int) -> Freshness:
    """Tell until when the health results of the engine count, for all who report them."""
    return Freshness(limit_ns, UnstoredFailureReader(unstored_path(data_dir)))


def log_rotation(config: Config) -> Rotation:
    return Rotation(config.log_rotater_max_size * MIB, config.log_rotater_max_files)


def chain_log_name(chain: ChainConfig) -> str:
    """Return the name of the logger to which the indexer writes what concerns one chain."""
    return f"chain-{chain.id}"


def node_logs(config: Config, process: str, network: Network, *, create: bool) -> Logs:
    """The loggers of one process of a node. The engine creates the page of their levels, all others share it, so each
    of them must name the same loggers."""
    return open_logs(
        process,
        ["main", "vm-factory", *(chain.name for chain in network.chains), *map(chain_log_name, config.chain)],
        Path(config.log_dir),
        (config.log_level.upper(), config.log_display_level.upper()),
        config.log_format,
        rotation=log_rotation(config),
        shared=Path(config.data_dir) / "run" / "levels",
        create=create,
    )
