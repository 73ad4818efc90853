"""The groups in which the docs page and OpenAPI list the endpoints: the first pattern that matches a path decides."""

import re
from typing import NamedTuple

from icefall.api.endpoints.row import DATA, METRICS, NODE, Rest, Rpc


class Tag(NamedTuple):
    name: str
    pattern: str
    summary: str


SERVICE = Tag("Service", r".*", "This service itself: health, its description, counters.")
TAGS: dict[str, tuple[Tag, ...]] = {
    NODE: (
        Tag("Health", r"/ext/health.*", "Whether the node works."),
        Tag("Admin", r"/ext/admin", "Administration; only with `--api-admin-enabled=true`."),
        Tag("Info", r"/ext/info", "The node and its network."),
        Tag("X-Chain", r"/ext/bc/X", "Assets, balances, blocks and transactions of the asset chain."),
        Tag("P-Chain", r"/ext/bc/P", "The platform chain, as far as X-Chain clients need it."),
        Tag("Index", r"/ext/index/.*", "Accepted containers of X, P and C, in order of acceptance."),
        SERVICE,
    ),
    DATA: (
        Tag("Search", r"/v1/search|/v1/stream", "Finding things on all chains, and following them live."),
        Tag("Chains", r"/v1/chains(/\{chainId\}|/address/.*)?|/v1/address/.*|.*/indexing", "The indexed chains."),
        Tag("Blocks", r".*/blocks(:\w+|/\{blockId\}(/transactions)?)?|.*/allBlocks", "Blocks of one or all chains."),
        Tag("Balances", r".*/balances:\w+", "What an address holds, now or at an earlier block."),
        Tag("NFTs", r".*/nfts/.*", "Single NFTs with their metadata."),
        Tag("Tokens", r".*/tokens(/.*)?", "Tokens, their transfers, holders and prices."),
        Tag("Contracts", r".*/contracts/.*|.*/addresses/\{address\}(/logs)?", "Contracts, deployments and logs."),
        Tag("Transactions", r".*/(transactions|allTransactions).*", "Transactions, transfers and internal calls."),
        SERVICE,
    ),
    METRICS: (
        Tag("Series by day", r"/v1/\w+/\{chainId\}", "One series per path, by day of UTC."),
        Tag("Series", r"/v1/metrics|.*[mM]etrics/\{metric\}", "Series by hour, day, week or month; windows."),
        Tag("Chains", r"/v2/chains(/\{chainId\})?", "The chains that have metrics."),
        Tag("Holders", r".*/contracts/.*", "Holders of tokens."),
        SERVICE,
    ),
}


def tag_of(listener: str, row: Rest | Rpc) -> str:
    return next(tag.name for tag in TAGS[listener] if re.fullmatch(tag.pattern, row.path))
