"""Parameters and results of the series of the primary network: stakes, and fees of L1 validators, by day."""

from typing import Annotated

from icefall.api.http.rest_params import HoldersPageSize, MetricsPageSize, Network, PageToken, Timestamp, one_of
from icefall.api.http.structs import Page, RestParams, RestResult
from icefall.api.networks.params import IdParam, NetworkName, NodeId, OptionalId

# The name of a series -> the field of a day that it shows.
STAKE_SERIES = {
    "validatorCount": "validators",
    "validatorWeight": "validator_weight",
    "delegatorCount": "delegators",
    "delegatorWeight": "delegator_weight",
}
TOTAL_FEES = {
    "totalValidatorFeesDaily": "paid",
    "totalCumulativeFeesDaily": "cumulative",
    "totalPayingValidatorsDaily": "paying",
}
SUBNET_FEES = {
    "perSubnetDailyFeesPaid": "paid",
    "perSubnetCumulativeFeesPaid": "cumulative",
    "perSubnetPayingValidators": "paying",
}
NODE_FEES = {"perNodeDailyFeesPaid": "paid", "perNodeCumulativeFeesPaid": "cumulative"}
VALIDATION_FEES = {"validationFeesDaily": "paid", "validationCumulativeFeesDaily": "cumulative"}

StakeSeries = Annotated[str, one_of(*STAKE_SERIES)]
TotalFeeSeries = Annotated[str, one_of(*TOTAL_FEES)]
SubnetFeeSeries = Annotated[str, one_of(*SUBNET_FEES)]
NodeFeeSeries = Annotated[str, one_of(*NODE_FEES)]
ValidationFeeSeries = Annotated[str, one_of(*VALIDATION_FEES)]


class StakeSeriesParams(RestParams, frozen=True):
    """The sums are over all subnets and the primary network where no `subnetId` is given."""

    network: NetworkName
    metric: StakeSeries
    subnet_id: OptionalId = None
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None
    page_token: PageToken = ""
    page_size: MetricsPageSize = 100


class TotalFeeParams(RestParams, frozen=True):
    metric: TotalFeeSeries
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None


class SubnetFeeParams(RestParams, frozen=True):
    subnet_id: IdParam
    metric: SubnetFeeSeries
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None


class NodeFeeParams(RestParams, frozen=True):
    node_id: NodeId
    metric: NodeFeeSeries
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None


class ValidationFeeParams(RestParams, frozen=True):
    l1_validation_id: IdParam
    metric: ValidationFeeSeries
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None


class StakersParams(RestParams, frozen=True):
    subnet_id: IdParam
    network: Network = None
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None
    page_token: PageToken = ""
    page_size: HoldersPageSize = 1000


class NetworkPoint(RestResult, frozen=True, gc=False):
    timestamp: int
    value: int


class NetworkSeries(Page, frozen=True, kw_only=True):
    results: list[NetworkPoint]


class StakerAddresses(RestResult, frozen=True, gc=False):
    addresses: list[str]
    sort_key: str


class StakerAddressPage(Page, frozen=True, kw_only=True):
    addresses: list[StakerAddresses]
