"""The schedule of attempts. Pure: the times and the dice come from the caller."""

from typing import NamedTuple

from icefall.webhooks.model import DELIVERED, FAILED, PENDING

ATTEMPT_S = 10.0  # for one attempt, from the name's lookup to the head of the answer
LEASE_S = 30.0  # after it, an attempt whose process has died counts as lost
DELAYS_S = (10.0, 60.0, 300.0, 600.0, 1800.0, 7200.0, 21600.0, 43200.0, 86400.0)
ATTEMPTS_MAX = len(DELAYS_S) + 1
RETRY_AFTER_MAX_S = 86400.0
JITTER = 0.1  # of a delay, added: messages that failed together do not come back together
GONE = 410


class Outcome(NamedTuple):
    """The end of an attempt. `code` 0: there was no answer. `retry_after_s`: what the answer asked for, else 0."""

    code: int
    error: str = ""
    retry_after_s: float = 0.0

    @property
    def is_taken(self) -> bool:
        return 200 <= self.code < 300 and not self.error


class Verdict(NamedTuple):
    """The state of a message after an attempt. `next_at` is meant for one that stays pending."""

    status: str
    next_at: float


def retry_at(attempts: int, outcome: Outcome, now: float, dice: float) -> float | None:
    """When to try again after so many attempts; None: never. `dice` is random, from 0 to 1."""
    if outcome.code == GONE or attempts >= ATTEMPTS_MAX:
        return None
    delay = DELAYS_S[max(attempts, 1) - 1] * (1 + JITTER * dice)
    return now + max(delay, min(outcome.retry_after_s, RETRY_AFTER_MAX_S))


def verdict(attempts: int, outcome: Outcome, now: float, dice: float) -> Verdict:
    """Judge an attempt: the message is delivered, tried again later, or given up."""
    if outcome.is_taken:
        return Verdict(DELIVERED, 0.0)
    again = retry_at(attempts, outcome, now, dice)
    return Verdict(FAILED, 0.0) if again is None else Verdict(PENDING, again)


def why_given_up(code: int, attempts: int) -> str:
    """The reason why a webhook is switched off with a message that was given up."""
    if code == GONE:
        return "the receiver answered 410 Gone"
    return f"a message was not taken in {attempts} attempts"
