"""How many attempts each webhook may have at a time. Pure.

There are two kinds of places. Those for fast webhooks, which have answered within a second, and those for slow ones:
webhooks that have not answered yet, whose last message was not taken, or that have an attempt without an answer for
more than a second. A webhook that becomes slow takes its open attempts along: however many receivers begin to hang
together, the places of those that answer are free again after that second.

A webhook begins with one attempt, has twice as many after each message that is taken, and one again after a failure.
While many webhooks of a kind have something to send, none has more than its share of the places. One whose receiver
asks for a pause has none until that is over, or until it has another receiver.
"""

from collections import Counter, deque
from collections.abc import Iterable

from icefall.webhooks.model import Webhook

PAUSE_MAX_S = 60.0  # of all messages of a webhook; the one that the receiver refused waits for as long as it asked
SLOW_S = 1.0  # an attempt that has no answer after so long makes its webhook slow
_FAST_PART = 2  # one of so many places is for the attempts of fast webhooks
_SLOW_PART = 4  # the same for those of slow ones; what is left is for attempts that were fast when they began


class Pacing:
    """The attempts that one process makes now. `per_webhook` and `total` limit them."""

    def __init__(self, per_webhook: int, total: int) -> None:
        self._per_webhook = per_webhook
        self._total = total
        self._places = {True: max(total // _FAST_PART, 1), False: max(total // _SLOW_PART, 1)}  # by whether it is fast
        self._used = {True: 0, False: 0}
        self._shares = {True: per_webhook, False: per_webhook}
        self._open: Counter[str] = Counter()  # attempts that are being made, by webhook
        self._limits: dict[str, int] = {}  # of those whose last message was taken
        self._fast: set[str] = set()
        self._begun: deque[tuple[float, int, str]] = deque()  # attempts in their order, also some that have ended
        self._running: set[int] = set()
        self._late: set[int] = set()  # attempts without an answer for too long
        self._late_of: Counter[str] = Counter()  # the same, by webhook
        self._last: dict[str, int] = {}  # the newest attempt of each webhook
        self._newest = 0
        self._pauses: dict[str, tuple[str, float]] = {}  # by webhook: the receiver that asked for it, and its end

    def pause(self, webhook: Webhook, until: float, now: float) -> None:
        """Begin no attempt for some time."""
        self._pauses[webhook.id] = webhook.url, min(until, now + PAUSE_MAX_S)

    def _is_paused(self, webhook: Webhook, now: float) -> bool:
        url, end = self._pauses.get(webhook.id, ("", 0.0))
        if url == webhook.url and now < end:
            return True
        self._pauses.pop(webhook.id, None)
        return False

    def in_turn(self, webhooks: Iterable[Webhook], now: float) -> list[Webhook]:
        """The webhooks that may begin an attempt, of those that have something to send: fast ones first, of these those
        with the fewest attempts, and of these those whose last attempt began first."""
        self._note_slow(now)
        due = [one for one in webhooks if not self._is_paused(one, now)]
        busy = {one.id for one in due} | self._open.keys()
        fast = len(busy & self._fast)
        for is_fast, count in ((True, fast), (False, len(busy) - fast)):
            self._shares[is_fast] = max(self._places[is_fast] // max(count, 1), 1)
        free = [one for one in due if self.room(one) > 0]
        return sorted(free, key=lambda one: (one.id not in self._fast, self._open[one.id], self._last.get(one.id, 0)))

    def room(self, webhook: Webhook) -> int:
        """How many more attempts a webhook may begin now."""
        is_fast = webhook.id in self._fast
        limit = 1 if webhook.ordered else min(self._limits.get(webhook.id, 1), self._shares[is_fast])
        room = min(limit - self._open[webhook.id], self._places[is_fast] - self._used[is_fast])
        return max(min(room, self._total - self._open.total()), 0)

    def begin(self, webhook: str, now: float) -> int:
        """Begin an attempt; its number ends it."""
        self._open[webhook] += 1
        self._used[webhook in self._fast] += 1
        self._newest += 1
        self._last[webhook] = self._newest
        self._running.add(self._newest)
        self._begun.append((now, self._newest, webhook))
        return self._newest

    def cancel(self, webhook: str, number: int) -> None:
        """Give back the place of an attempt that is not made after all."""
        self._running.discard(number)
        if number in self._late:
            self._late.discard(number)
            self._late_of -= Counter((webhook,))
        self._used[webhook in self._fast] -= 1
        self._open[webhook] -= 1
        if not self._open[webhook]:
            del self._open[webhook]

    def end(self, webhook: str, number: int, *, is_taken: bool, took_s: float) -> None:
        """Note how an attempt ended. All others of the webhook that are open move with it between fast and slow."""
        self.cancel(webhook, number)
        if is_taken:
            self._limits[webhook] = min(2 * self._limits.get(webhook, 1), self._per_webhook)
        else:
            self._limits.pop(webhook, None)
        is_fast = is_taken and took_s <= SLOW_S and not self._late_of[webhook]
        self._move(webhook, is_fast=is_fast)

    def _note_slow(self, now: float) -> None:
        """Move webhooks that have an attempt without an answer for too long."""
        while self._begun and (self._begun[0][1] not in self._running or self._begun[0][0] + SLOW_S < now):
            _, number, webhook = self._begun.popleft()
            if number in self._running:
                self._late.add(number)
                self._late_of[webhook] += 1
                self._move(webhook, is_fast=False)

    def _move(self, webhook: str, *, is_fast: bool) -> None:
        if is_fast == (webhook in self._fast):
            return
        count = self._open.get(webhook, 0)
        self._used[is_fast] += count
        self._used[not is_fast] -= count
        (self._fast.add if is_fast else self._fast.discard)(webhook)
