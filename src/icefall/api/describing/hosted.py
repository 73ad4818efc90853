"""Every operation of the hosted service, and how Icefall answers it: docs/hosted-api.md is made of this table and the
endpoint rows. An operation is served if a row has its verb and path; then DIFFERENCES says what is not the same, and
otherwise REASONS says why not.
"""

import re
from collections.abc import Iterable
from importlib.resources import files

from icefall.api.http.row import Rest, Rpc

# Verb, path and name of each operation, a line each; some have no name.
OPERATIONS = tuple(files("icefall.api.describing").joinpath("hosted_operations.txt").read_text().splitlines())

_NETWORK = "GET /v1/networks/{network}"
_CHAIN = f"{_NETWORK}/blockchains/{{blockchainId}}"
_VERTICES = "where an upstream has them; vertexTimestamp is the time of block 0"
_SEEN = "as one upstream sees it now"
# What a client of the hosted service notices, by the label of an operation.
DIFFERENCES: dict[str, str] = {
    "GET /v1/avax/supply": "totalCBurned only where the C-Chain is indexed from its first block on",
    _NETWORK: f"versions {_SEEN}",
    f"{_NETWORK}/addresses:listChainIds": "the official client refuses IDs of networks that are not public",
    f"{_NETWORK}/validators": f"uptime, version and health {_SEEN}; no geolocation; also by rewardAddresses",
    f"{_NETWORK}/validators/{{nodeId}}": f"uptime, version and health {_SEEN}; no geolocation",
    f"{_NETWORK}/rewards": "without prices",
    f"{_CHAIN}/vertices": _VERTICES,
    f"{_CHAIN}/vertices:listByHeight": _VERTICES,
    f"{_CHAIN}/vertices/{{vertexHash}}": _VERTICES,
    "GET /v1/apiLogs": "only of keys of this installation, for some days",
    "GET /v1/apiUsageMetrics": "there are no organisations: counts are by key",
    "GET /v1/chains": "the chains that are indexed here",
    "POST /v1/chains/{chainId}/nfts/collections/{address}/tokens/{tokenId}:reindex": "with a key, or from this machine",
    "GET /v1/networks/{network}/rewards": "currency is ignored: rewards have no prices",
    "GET /v1/health-check": "details name stores and chains of this installation",
    "GET /v2/health-check": "details name stores and chains of this installation",
    "GET /v1/operations/{operationId}": "metadata also has progress, rows and expiresAt",
    "POST /v1/operations/transactions:export": "a ZIP archive of CSV files of our own columns",
    "POST /v1/webhooks": "also confirmations, order and a first block; no thresholds of atomic memory",
    "POST /v2/lookingGlass/compositeQuery": "native balances of chains with up to 500,000 addresses",
    "GET /v2/chains/{chainId}/metrics/{metric}": "the series of /v1/metrics",
    "GET /v2/chains/{chainId}/rollingWindowMetrics/{metric}": "without lastWeek and last90Days",
}
# Operations that newer clients have besides, by their labels.
NEWER = {"GET /v2/icm/timeseries": "getICMTimeseries", "GET /v2/icm/summary": "getICMSummary"}
# Why an operation is not served, by the beginning of its path.
REASONS: dict[str, str] = {
    "/v1/chains/{chainId}/contracts/{address}": "changes data of the hosted service; names come from the chain",
    "/v1/media/": "stores images for the hosted service's own pages",
    "/v1/notifications/": "push messages to the hosted service's own app; webhooks do the same for servers",
    "/v1/primaryNetworkRpcUsageMetrics": "usage of the hosted service's RPC nodes",
    "/v1/rpcUsageMetrics": "usage of the hosted service's RPC nodes",
    "/v1/signatureAggregator/": "needs connections to validators, which only a node has",
    "/v1/subnetRpcUsageMetrics": "usage of the hosted service's RPC nodes",
    "/v2/chains/43114/btcb/": "about one token of one chain; token holders answer it for any token",
}
_PARAMETER = re.compile(r"\{\w+\}")


def shape_of(label: str) -> str:
    """A verb and a path without the names of its parameters, which may differ."""
    return _PARAMETER.sub("{}", label)


def reason_of(label: str) -> str:
    """Why an operation is not served; empty if that is not said."""
    path = label.partition(" ")[2]
    return max(((len(begin), text) for begin, text in REASONS.items() if path.startswith(begin)), default=(0, ""))[1]


def hosted_markdown(rows: Iterable[Rest | Rpc]) -> str:
    """The page: one line for each operation."""
    served = {shape_of(row.label): row for row in rows if isinstance(row, Rest)}
    lines, counts = [], {"yes": 0, "differs": 0, "no": 0}
    for operation in OPERATIONS:
        verb, path, name = (*operation.split(" "), "")[:3]
        label = f"{verb} {path}"
        row = served.get(shape_of(label))
        note = reason_of(label) if row is None else DIFFERENCES.get(label, "")
        state = "no" if row is None else "differs" if note else "yes"
        counts[state] += 1
        lines.append(f"| `{label}` | {f'`{name}`' if name else ''} | {state} | {note} |".replace("|  |", "| |"))
    newer = ", ".join(f"`{one.rpartition('/')[2]}`" for one in NEWER)
    head = [
        "# The hosted service's operations",
        "",
        f"All {len(OPERATIONS)} operations of the hosted service, and whether Icefall serves them: "
        f"{counts['yes']} as they are, {counts['differs']}",
        f"with a difference that a client may notice, and {counts['no']} not. [dialects.md](dialects.md) has the "
        "differences in form,",
        f"[api.md](api.md) what Icefall serves besides. Newer clients have these too, which are served: {newer}.",
        "Generated from `src/icefall/api/describing/hosted.py` and the endpoint rows by `make docs`.",
        "",
        "| call | operation | served | difference, or why not |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *lines, ""])
