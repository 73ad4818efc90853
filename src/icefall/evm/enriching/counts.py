"""Counters of the enrichment loops since the start, for /ext/metrics."""

from collections import Counter


class EnrichCounts:
    def __init__(self) -> None:
        self.tokens_read = 0
        self.nfts_read: Counter[str] = Counter()  # by status
        self.lists_loaded: Counter[str] = Counter()  # prices, reputation
        self.failures: Counter[str] = Counter()  # by loop
