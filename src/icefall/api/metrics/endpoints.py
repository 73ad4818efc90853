"""The rows of the metrics interface."""

from icefall.api.describing import examples
from icefall.api.http import service
from icefall.api.http.row import METRICS, MetricsWeight, Rest
from icefall.api.http.service import HealthCheckParams, ServiceHealth
from icefall.api.metrics import handlers
from icefall.api.metrics.schema import (
    AddressList,
    DaysParams,
    DaysResult,
    HoldersAboveParams,
    MeasuredChain,
    MeasuredChainParams,
    MeasuredChains,
    MeasuredChainsParams,
    MetricsResult,
    NftHolderList,
    NftHoldersParams,
    RollingParams,
    RollingResult,
    SeriesParams,
    SeriesResult,
)
from icefall.metrics.catalogue import METRICS as SERIES

# fmt: off
METRICS_ENDPOINTS: tuple[Rest, ...] = (
    *(Rest(verb="GET", path=f"/v1/{one.name}/{{chainId}}", params=DaysParams, result=DaysResult,
           handler=handlers.days_of(one), listeners=(METRICS,), weight=MetricsWeight.MEDIUM,
           summary=f"By day of UTC, newest first: {one.summary[0].lower()}{one.summary[1:]}") for one in SERIES),
    Rest(verb="GET", path="/v1/metrics", result=MetricsResult, handler=handlers.list_metrics, listeners=(METRICS,),
         weight=MetricsWeight.FREE, summary="All series, with their units and the intervals they are offered in."),
    Rest(verb="GET", path="/v2/chains", params=MeasuredChainsParams, result=MeasuredChains,
         handler=handlers.list_chains, listeners=(METRICS,), weight=MetricsWeight.FREE, operation="listChains",
         summary="The chains that have metrics."),
    Rest(verb="GET", path="/v2/chains/{chainId}", params=MeasuredChainParams, result=MeasuredChain,
         handler=handlers.get_chain, listeners=(METRICS,), weight=MetricsWeight.FREE, operation="getChain",
         summary="One chain that has metrics."),
    Rest(verb="GET", path="/v2/chains/{chainId}/metrics/{metric}", params=SeriesParams, result=SeriesResult,
         handler=handlers.series, listeners=(METRICS,), weight=MetricsWeight.MEDIUM, operation="getEvmChainMetrics",
         summary="A series by hour, day, week or month, newest first, from `startTimestamp` to before `endTimestamp`."),
    Rest(verb="GET", path="/v2/chains/{chainId}/rollingWindowMetrics/{metric}", params=RollingParams,
         result=RollingResult, handler=handlers.rolling, listeners=(METRICS,), weight=MetricsWeight.MEDIUM,
         operation="getEvmChainRollingWindowMetrics",
         summary="A metric over the last hour, day, 30 days and 365 days up to now, and over all time."),
    Rest(verb="GET", path="/v2/chains/{chainId}/contracts/{address}/nfts:listHolders", params=NftHoldersParams,
         result=NftHolderList, handler=handlers.nft_holders, listeners=(METRICS,), weight=MetricsWeight.LARGE,
         operation="getNftHoldersByContractAddress", examples=examples.NFT,
         summary="Addresses that hold NFTs of a contract now."),
    Rest(verb="GET", path="/v2/chains/{chainId}/contracts/{address}/balances", params=HoldersAboveParams,
         result=AddressList, handler=handlers.holders_above, listeners=(METRICS,), weight=MetricsWeight.XL,
         operation="getAddressesByBalanceOverTime", examples=examples.TOKEN,
         summary="Addresses that held more than `threshold` of an ERC-20 token at some time of the frame."),
    Rest(verb="GET", path="/v2/health-check", params=HealthCheckParams, result=ServiceHealth,
         handler=service.health_check, status=service.verdict, listeners=(METRICS,), weight=MetricsWeight.FREE,
         never_limited=True, operation="metrics-health-check",
         summary="Whether this service can answer and its chains are followed; with `strict=true` 503 if not."),
)
# fmt: on
