"""The handler of the reward addresses of validators."""

from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.api.networks.network import Networks, PrimaryNetwork
from icefall.api.networks.schema.subnets import ValidatorAddresses, ValidatorAddressesParams, ValidatorAddressPage
from icefall.errors import BadRequest
from icefall.pchain.model import StakerState
from icefall.pchain.periods import PeriodSource
from icefall.xchain.store import NEWEST

_VALIDATORS = "validatorAddresses"


async def validator_addresses(
    params: ValidatorAddressesParams, networks: Networks, paging: Paging
) -> ValidatorAddressPage:
    """List who is rewarded for validating a subnet, in the order of the transactions that began it."""
    network = await (networks.the_network() if params.network is None else networks.find_staking(params.network))
    low, below = await _seqs(network, params)
    cursor = cursor_of(_VALIDATORS, params, paging)
    low = low if cursor is None else max(low, cursor[0] + 1)
    source, limit = PeriodSource("of_subnet", params.subnet_id), params.page_size + 1
    rows = await network.lists.periods([source], tuple(StakerState), low, below, limit, upwards=True)
    page = rows[: params.page_size]
    token: str | UnsetType = UNSET
    if len(rows) > len(page):
        token = paging.token(_VALIDATORS, params, pack_cursor(page[-1].seq))
    began = await network.lists.txs_with_ids([one.txid for one in page]) if page else {}
    return ValidatorAddressPage(
        next_page_token=token,
        addresses=[
            ValidatorAddresses(
                network.addresses(one.validation_owner.addresses),
                str(began[one.txid].time if one.txid in began else one.start),
            )
            for one in page
            if one.validation_owner is not None
        ],
    )


async def _seqs(network: PrimaryNetwork, params: ValidatorAddressesParams) -> tuple[int, int]:
    """The numbers of the transactions of a time frame, from its start to before its end."""
    start, end = params.start_timestamp, params.end_timestamp
    if start is not None and end is not None and start > end:
        raise BadRequest(f"startTimestamp must not be after endTimestamp, got {start} and {end}")
    if start is None and end is None:
        return 0, NEWEST
    count = await network.lists.tx_count()
    low = 0 if start is None else await network.lists.first_seq(start, count)
    return low, NEWEST if end is None else await network.lists.first_seq(end, count)
