"""The outcomes of enrichment: what reading an NFT may end with, when it is tried again, and how often it happened.

OUTCOMES has the indexStatus of each outcome, and how often it is tried again.

The first retry waits a minute, each further one four times as long, at most a day. What the configuration does not
allow is postponed until the settings change.
"""

import enum
from collections import Counter
from typing import NamedTuple

DAY_S = 86_400
FIRST_PAUSE_S = 60
POSTPONED = 1 << 62  # retry_at of what waits for other settings


class IndexStatus(enum.Enum):
    """The indexStatus of an NFT; the names are those of the API."""

    UNKNOWN = enum.auto()
    MISSING_TOKEN = enum.auto()
    INVALID_TOKEN_URI = enum.auto()
    INVALID_TOKEN_URI_SCHEME = enum.auto()
    UNREACHABLE_TOKEN_URI = enum.auto()
    THROTTLED_TOKEN_URI = enum.auto()
    METADATA_CONTENT_TOO_LARGE = enum.auto()
    INVALID_METADATA = enum.auto()
    INVALID_METADATA_JSON = enum.auto()
    INDEXED = enum.auto()
    UNINDEXED = enum.auto()


class OutcomeRule(NamedTuple):
    """A row of OUTCOMES."""

    status: IndexStatus
    retries: int  # 0: final
    until_settings_change: bool = False
    is_transient: bool = False  # not about the token itself: metadata read before from the same URI is kept


class NftOutcome(enum.Enum):
    """The possible outcomes of reading an NFT."""

    READ = enum.auto()  # metadata parsed
    NO_SUCH_TOKEN = enum.auto()  # the contract reverts, does not exist, or has no such function
    NO_URI = enum.auto()  # the answer is not a string, empty, or not a URI
    OTHER_SCHEME = enum.auto()  # a URI scheme that is not fetched
    URI_TOO_LONG = enum.auto()
    SWITCHED_OFF = enum.auto()  # fetching is switched off, or no gateway is configured
    NOT_ALLOWED = enum.auto()  # GuardedFetcher refuses the address
    NOT_REACHED = enum.auto()  # no answer, too slow, or an HTTP status that is not 200
    THROTTLED = enum.auto()
    TOO_LARGE = enum.auto()
    NOT_JSON = enum.auto()
    NOT_METADATA = enum.auto()  # JSON, but not an object with a known field
    INTERNAL_ERROR = enum.auto()  # an unexpected exception


OUTCOMES: dict[NftOutcome, OutcomeRule] = {
    NftOutcome.READ: OutcomeRule(IndexStatus.INDEXED, 0),
    NftOutcome.NO_SUCH_TOKEN: OutcomeRule(IndexStatus.MISSING_TOKEN, 0),
    NftOutcome.NO_URI: OutcomeRule(IndexStatus.INVALID_TOKEN_URI, 0),
    NftOutcome.OTHER_SCHEME: OutcomeRule(IndexStatus.INVALID_TOKEN_URI_SCHEME, 0),
    NftOutcome.URI_TOO_LONG: OutcomeRule(IndexStatus.METADATA_CONTENT_TOO_LARGE, 0),
    NftOutcome.SWITCHED_OFF: OutcomeRule(IndexStatus.UNINDEXED, 0, until_settings_change=True, is_transient=True),
    NftOutcome.NOT_ALLOWED: OutcomeRule(IndexStatus.UNREACHABLE_TOKEN_URI, 0, until_settings_change=True),
    NftOutcome.NOT_REACHED: OutcomeRule(IndexStatus.UNREACHABLE_TOKEN_URI, 8, is_transient=True),
    NftOutcome.THROTTLED: OutcomeRule(IndexStatus.THROTTLED_TOKEN_URI, 12, is_transient=True),
    NftOutcome.TOO_LARGE: OutcomeRule(IndexStatus.METADATA_CONTENT_TOO_LARGE, 0),
    NftOutcome.NOT_JSON: OutcomeRule(IndexStatus.INVALID_METADATA_JSON, 2),  # an error page may come with status 200
    NftOutcome.NOT_METADATA: OutcomeRule(IndexStatus.INVALID_METADATA, 2),
    NftOutcome.INTERNAL_ERROR: OutcomeRule(IndexStatus.UNKNOWN, 4, is_transient=True),
}


class UnusableNft(Exception):
    """A token whose metadata cannot be read, with the outcome."""

    def __init__(self, outcome: NftOutcome) -> None:
        super().__init__(outcome.name)
        self.outcome = outcome


def retry_pause_s(failures: int) -> int:
    """The seconds to wait after a failure that followed `failures` others."""
    return int(min(DAY_S, FIRST_PAUSE_S * 4 ** min(failures, 10)))


def next_try(outcome: NftOutcome, failures: int, now: int, after_s: float = 0.0) -> int | None:
    """The time of the next try after a failure that followed `failures` others; None: never."""
    row = OUTCOMES[outcome]
    if row.until_settings_change:
        return POSTPONED
    return now + max(retry_pause_s(failures), int(after_s)) if failures < row.retries else None


class EnrichCounts:
    """The counters of the enrichment loops since the start, for /ext/metrics."""

    def __init__(self) -> None:
        self.tokens_read = 0
        self.nfts_read: Counter[str] = Counter()  # by status
        self.lists_loaded: Counter[str] = Counter()  # prices, reputation, token_list
        self.failures: Counter[str] = Counter()  # by loop
