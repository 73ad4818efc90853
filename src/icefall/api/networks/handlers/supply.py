"""Handlers of network details and of the supply of AVAX, from sums that are written with the blocks."""

from datetime import UTC, datetime

from msgspec import UNSET

from icefall.api.networks.handlers.utxos import NetworkClock
from icefall.api.networks.network import Networks, PrimaryNetwork
from icefall.api.networks.schema.assets import NetworkParams
from icefall.api.networks.schema.blocks import (
    NetworkDelegators,
    NetworkDetails,
    NetworkValidators,
    StakingDistribution,
)
from icefall.api.networks.schema.subnets import AvaxSupply, NoQuery
from icefall.errors import NotFound
from icefall.evm.reading.directory import ChainDirectory
from icefall.metrics.reader import MetricsReader
from icefall.pchain.observed import VersionStake
from icefall.pchain.sums import StakeTotal
from icefall.wire.ids import PRIMARY_NETWORK, id_text

_DECIMALS = 18
_WEI_PER_NAVAX = 10**9
_RATIO_DECIMALS = 20
UNKNOWN_VERSION = "offline"  # what the hosted service calls the version of nodes it is not connected to


async def network_details(params: NetworkParams, networks: Networks, clock: NetworkClock) -> NetworkDetails:
    network = await networks.find_staking(params.network)
    total = await network.lists.stake_total(PRIMARY_NETWORK)
    supply = await network.platform.supply(PRIMARY_NETWORK) or 0
    staked = total.validator_weight + total.delegator_weight
    return NetworkDetails(
        validator_details=NetworkValidators(
            validator_count=total.validators,
            total_amount_staked=str(total.validator_weight),
            estimated_annual_staking_reward=str(total.reward),
            staking_distribution_by_version=_by_version(total, await network.observed.by_version(int(clock.now()))),
            staking_ratio=ratio_text(staked, supply),
        ),
        delegator_details=NetworkDelegators(
            delegator_count=total.delegators, total_amount_staked=str(total.delegator_weight)
        ),
    )


def _by_version(total: StakeTotal, known: list[VersionStake]) -> list[StakingDistribution]:
    """The stake by version; what is left of the total is that of nodes whose version is not known."""
    amount = total.validator_weight + total.delegator_weight - sum(one.amount for one in known)
    count = total.validators - sum(one.validators for one in known)
    rows = [StakingDistribution(one.version, str(one.amount), one.validators) for one in known]
    if not rows or count > 0 < amount:
        rows.append(StakingDistribution(UNKNOWN_VERSION, str(amount), count))
    return rows


def ratio_text(part: int, whole: int) -> str:
    """Write a ratio with 20 decimals, exactly, rounded down."""
    scale = 10**_RATIO_DECIMALS
    scaled = part * scale // whole if whole else 0
    return f"{scaled // scale}.{scaled % scale:0{_RATIO_DECIMALS}d}"


async def get_avax_supply(params: NoQuery, networks: Networks, chains: ChainDirectory) -> AvaxSupply:
    """Everything is of the last block of each chain. What one of them burned is taken off where it is known."""
    network = await networks.the_network()
    ledger, staked = await network.platform.ledger(), await network.lists.stake_total(PRIMARY_NETWORK)
    locked = _wei(await network.lists.locked(network.platform.parameters.avax_asset_id, ledger.time))
    on_p = _wei(ledger.burned + ledger.l1_fees)
    on_x, on_c = await _burned_on_x(network), await _burned_on_c(network, chains)
    total = _wei(network.initial_supply + ledger.rewards_paid) - on_p - (on_x or 0) - (on_c or 0)
    return AvaxSupply(
        circulating_supply=avax_text(total - locked),
        total_supply=avax_text(total),
        total_p_burned=avax_text(on_p),
        total_x_burned=UNSET if on_x is None else avax_text(on_x),
        total_c_burned=UNSET if on_c is None else avax_text(on_c),
        total_staked=avax_text(_wei(staked.validator_weight + staked.delegator_weight)),
        total_locked=avax_text(locked),
        total_rewards=avax_text(_wei(ledger.rewards_paid)),
        last_updated=datetime.fromtimestamp(ledger.time, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        genesis_unlock=avax_text(_wei(network.initial_supply)),
        l1_validator_fees=avax_text(_wei(ledger.l1_fees)),
    )


async def _burned_on_x(network: PrimaryNetwork) -> int | None:
    """Wei; None while the lists are being made, and where an older release made some of them."""
    if not await network.outputs.is_complete(network.x_chain_id, network.c_chain_id):
        return None
    burned = await network.outputs.burned(network.x_chain_id)
    return None if burned is None else _wei(burned)


async def _burned_on_c(network: PrimaryNetwork, chains: ChainDirectory) -> int | None:
    """Wei: all fees of the C-Chain, and what its atomic transactions burned. None: it is not indexed from its first
    block on (block 0, which pays nothing, has no sums)."""
    atomic = await network.outputs.burned(network.c_chain_id)
    try:
        chain = await chains.find(id_text(network.c_chain_id))
    except NotFound:
        return None
    sums = await MetricsReader(chain.reader).whole()
    if atomic is None or sums is None or sums.first_block > 1:
        return None
    return sums.fees + _wei(atomic)


def _wei(amount: int) -> int:
    return amount * _WEI_PER_NAVAX


def avax_text(amount: int) -> str:
    """Write wei as AVAX, exactly, without zeros at the end."""
    whole, part = divmod(abs(amount), 10**_DECIMALS)
    decimals = f"{part:0{_DECIMALS}d}".rstrip("0")
    return ("-" if amount < 0 else "") + str(whole) + (f".{decimals}" if decimals else "")
