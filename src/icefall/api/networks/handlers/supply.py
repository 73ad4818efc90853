"""Handlers of network details and of the supply of AVAX, from sums that are written with the blocks."""

from datetime import UTC, datetime

from icefall.api.networks.network import Networks
from icefall.api.networks.schema.assets import NetworkParams
from icefall.api.networks.schema.blocks import (
    NetworkDelegators,
    NetworkDetails,
    NetworkValidators,
    StakingDistribution,
)
from icefall.api.networks.schema.subnets import AvaxSupply, NoQuery
from icefall.pchain.parameters import AVAX
from icefall.wire.ids import PRIMARY_NETWORK

_DECIMALS = 9
_RATIO_DECIMALS = 20
UNKNOWN_VERSION = "offline"  # what the hosted service calls the version of nodes it is not connected to


async def network_details(params: NetworkParams, networks: Networks) -> NetworkDetails:
    network = await networks.find_staking(params.network)
    total = await network.lists.stake_total(PRIMARY_NETWORK)
    supply = await network.platform.supply(PRIMARY_NETWORK) or 0
    staked = total.validator_weight + total.delegator_weight
    return NetworkDetails(
        validator_details=NetworkValidators(
            validator_count=total.validators,
            total_amount_staked=str(total.validator_weight),
            estimated_annual_staking_reward=str(total.reward),
            staking_distribution_by_version=[
                StakingDistribution(
                    version=UNKNOWN_VERSION, amount_staked=str(staked), validator_count=total.validators
                )
            ],
            staking_ratio=ratio_text(staked, supply),
        ),
        delegator_details=NetworkDelegators(
            delegator_count=total.delegators, total_amount_staked=str(total.delegator_weight)
        ),
    )


def ratio_text(part: int, whole: int) -> str:
    """Write a ratio with 20 decimals, exactly, rounded down."""
    scale = 10**_RATIO_DECIMALS
    scaled = part * scale // whole if whole else 0
    return f"{scaled // scale}.{scaled % scale:0{_RATIO_DECIMALS}d}"


async def get_avax_supply(params: NoQuery, networks: Networks) -> AvaxSupply:
    """Everything is of the last block of the P-Chain. What X and C burned is not known here, and not taken off."""
    network = await networks.the_network()
    ledger, staked = await network.platform.ledger(), await network.lists.stake_total(PRIMARY_NETWORK)
    locked = await network.lists.locked(network.platform.parameters.avax_asset_id, ledger.time)
    total = network.initial_supply + ledger.rewards_paid - ledger.burned - ledger.l1_fees
    return AvaxSupply(
        circulating_supply=avax_text(total - locked),
        total_supply=avax_text(total),
        total_p_burned=avax_text(ledger.burned + ledger.l1_fees),
        total_staked=avax_text(staked.validator_weight + staked.delegator_weight),
        total_locked=avax_text(locked),
        total_rewards=avax_text(ledger.rewards_paid),
        last_updated=datetime.fromtimestamp(ledger.time, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        genesis_unlock=avax_text(network.initial_supply),
        l1_validator_fees=avax_text(ledger.l1_fees),
    )


def avax_text(amount: int) -> str:
    """Write nAVAX as AVAX, exactly, without zeros at the end."""
    whole, part = divmod(abs(amount), AVAX)
    decimals = f"{part:0{_DECIMALS}d}".rstrip("0")
    return ("-" if amount < 0 else "") + str(whole) + (f".{decimals}" if decimals else "")
