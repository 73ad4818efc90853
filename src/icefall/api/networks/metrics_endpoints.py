"""The rows of the primary network in the metrics interface: stakes, and fees of L1 validators, by day."""

from icefall.api.describing import examples
from icefall.api.http.row import METRICS, MetricsWeight, Rest
from icefall.api.networks.handlers import metrics
from icefall.api.networks.schema.metrics import (
    NetworkSeries,
    NodeFeeParams,
    StakerAddressPage,
    StakersParams,
    StakeSeriesParams,
    SubnetFeeParams,
    TotalFeeParams,
    ValidationFeeParams,
)

# fmt: off
NETWORK_METRICS_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="GET", path="/v2/networks/{network}/metrics/{metric}", params=StakeSeriesParams, result=NetworkSeries,
         handler=metrics.stake_series, listeners=(METRICS,), weight=MetricsWeight.MEDIUM,
         operation="getStakingMetrics",
         summary="Validators, delegators and their stake at the end of each day, newest first."),
    Rest(verb="GET", path="/v2/subnets/{subnetId}/validators:getAddresses", params=StakersParams,
         result=StakerAddressPage, handler=metrics.staker_addresses, listeners=(METRICS,), weight=MetricsWeight.LARGE,
         operation="getValidatorsByDateRange",
         summary="Reward addresses of validations of a subnet that began in a time frame, newest first."),
    Rest(verb="GET", path="/v2/validators/metrics/{metric}", params=TotalFeeParams, result=NetworkSeries,
         handler=metrics.total_fees, listeners=(METRICS,), weight=MetricsWeight.MEDIUM,
         operation="getTotalL1ValidatorMetrics",
         summary="Fees of all L1 validators by day, in nAVAX, and how many paid, newest first."),
    Rest(verb="GET", path="/v2/subnet/{subnetId}/metrics/{metric}", params=SubnetFeeParams, result=NetworkSeries,
         handler=metrics.subnet_fees, listeners=(METRICS,), weight=MetricsWeight.MEDIUM,
         operation="getMetricsBySubnetId", examples=examples.L1_SUBNET,
         summary="Fees of the validators of an L1 by day, in nAVAX, and how many paid, newest first."),
    Rest(verb="GET", path="/v2/validator/{nodeId}/metrics/{metric}", params=NodeFeeParams, result=NetworkSeries,
         handler=metrics.node_fees, listeners=(METRICS,), weight=MetricsWeight.MEDIUM,
         operation="getMetricsByNodeId", examples=examples.L1_NODE,
         summary="Fees of a node's validations of L1s by day, in nAVAX, newest first."),
    Rest(verb="GET", path="/v2/validation/{l1ValidationId}/metrics/{metric}", params=ValidationFeeParams,
         result=NetworkSeries, handler=metrics.validation_fees, listeners=(METRICS,), weight=MetricsWeight.MEDIUM,
         operation="getMetricsByValidationId", examples=examples.L1_VALIDATION,
         summary="Fees of one validation of an L1 by day, in nAVAX, newest first."),
)
# fmt: on
