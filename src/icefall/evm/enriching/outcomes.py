"""How reading one NFT may end: OUTCOMES says which indexStatus each way gives, and how often it is tried again.

A retry waits a minute, then four times as long as the one before, a day at most. What an operator would have to allow
first is put off until the settings change.
"""

import enum
from typing import NamedTuple

DAY_S = 86_400
FIRST_PAUSE_S = 60
PUT_OFF = 1 << 62  # retry_at of what waits for other settings
IN_HAND = -1  # retry_at of what is being read; due at once after a crash


class IndexStatus(enum.Enum):
    """indexStatus: the names are the interface's words."""

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
    status: IndexStatus
    retries: int  # 0: settled at once
    until_settings_change: bool = False
    passing: bool = False  # says nothing about the token: metadata read before from the same URI is kept


class NftOutcome(enum.Enum):
    """Each way reading an NFT may end."""

    READ = enum.auto()  # metadata understood
    NO_SUCH_TOKEN = enum.auto()  # the contract reverts, is gone, or has no such function
    NO_URI = enum.auto()  # its answer is no string, empty, or not a URI
    OTHER_SCHEME = enum.auto()  # a URI of a scheme we do not fetch
    URI_TOO_LONG = enum.auto()
    SWITCHED_OFF = enum.auto()  # nothing is fetched, or there is no gateway to fetch it by
    NOT_ALLOWED = enum.auto()  # the guard does not go there
    NOT_REACHED = enum.auto()  # no answer, too slow, or an HTTP status that is not 200
    THROTTLED = enum.auto()
    TOO_LARGE = enum.auto()
    NOT_JSON = enum.auto()
    NOT_METADATA = enum.auto()  # JSON, but not an object with any field we know
    OUR_FAULT = enum.auto()  # an exception nobody thought of


OUTCOMES: dict[NftOutcome, OutcomeRule] = {
    NftOutcome.READ: OutcomeRule(IndexStatus.INDEXED, 0),
    NftOutcome.NO_SUCH_TOKEN: OutcomeRule(IndexStatus.MISSING_TOKEN, 0),
    NftOutcome.NO_URI: OutcomeRule(IndexStatus.INVALID_TOKEN_URI, 0),
    NftOutcome.OTHER_SCHEME: OutcomeRule(IndexStatus.INVALID_TOKEN_URI_SCHEME, 0),
    NftOutcome.URI_TOO_LONG: OutcomeRule(IndexStatus.METADATA_CONTENT_TOO_LARGE, 0),
    NftOutcome.SWITCHED_OFF: OutcomeRule(IndexStatus.UNINDEXED, 0, until_settings_change=True, passing=True),
    NftOutcome.NOT_ALLOWED: OutcomeRule(IndexStatus.UNREACHABLE_TOKEN_URI, 0, until_settings_change=True),
    NftOutcome.NOT_REACHED: OutcomeRule(IndexStatus.UNREACHABLE_TOKEN_URI, 8, passing=True),
    NftOutcome.THROTTLED: OutcomeRule(IndexStatus.THROTTLED_TOKEN_URI, 12, passing=True),
    NftOutcome.TOO_LARGE: OutcomeRule(IndexStatus.METADATA_CONTENT_TOO_LARGE, 0),
    NftOutcome.NOT_JSON: OutcomeRule(IndexStatus.INVALID_METADATA_JSON, 2),  # an error page may come with status 200
    NftOutcome.NOT_METADATA: OutcomeRule(IndexStatus.INVALID_METADATA, 2),
    NftOutcome.OUR_FAULT: OutcomeRule(IndexStatus.UNKNOWN, 4, passing=True),
}


class UnusableNft(Exception):
    """A token that cannot be read, and how that counts."""

    def __init__(self, outcome: NftOutcome) -> None:
        super().__init__(outcome.name)
        self.outcome = outcome


def pause_s(failures: int) -> int:
    """How long to wait after that many failures before this one."""
    return int(min(DAY_S, FIRST_PAUSE_S * 4 ** min(failures, 10)))


def next_try(outcome: NftOutcome, failures: int, now: int, after_s: float = 0.0) -> int | None:
    """When to read again, after `failures` failures before this; None: never."""
    row = OUTCOMES[outcome]
    if row.until_settings_change:
        return PUT_OFF
    return now + max(pause_s(failures), int(after_s)) if failures < row.retries else None
