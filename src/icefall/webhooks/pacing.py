"""How many attempts each webhook may have at a time. Pure.

A webhook begins with one attempt, has twice as many after each message that is taken, and one again after a failure.
Webhooks that are not known to answer share half of all places: however many receivers hang, those that answer are not
delayed by them.
"""

from collections import Counter
from collections.abc import Iterable

from icefall.webhooks.model import Webhook

_UNKNOWN_PART = 2  # one of so many places may be taken by webhooks that are not known to answer


class Pacing:
    """The attempts that one process makes now."""

    def __init__(self, per_webhook: int, total: int) -> None:
        self._per_webhook = per_webhook
        self._total = total
        self._open: Counter[str] = Counter()  # attempts that are being made, by webhook
        self._limits: dict[str, int] = {}  # of those whose last message was taken
        self._unknown = 0  # attempts of others

    def in_turn(self, webhooks: Iterable[Webhook]) -> list[Webhook]:
        """The webhooks that may begin an attempt: those that are known to answer first, and of these those with the
        fewest attempts."""
        free = [one for one in webhooks if self.room(one) > 0]
        return sorted(free, key=lambda one: (one.id not in self._limits, self._open[one.id]))

    def room(self, webhook: Webhook) -> int:
        """How many more attempts a webhook may begin now."""
        limit = self._limits.get(webhook.id, 1)
        room = (1 if webhook.ordered else limit) - self._open[webhook.id]
        if webhook.id not in self._limits:
            room = min(room, max(self._total // _UNKNOWN_PART, 1) - self._unknown)
        return min(room, self._total - self._open.total())

    def begin(self, webhook: str) -> None:
        self._open[webhook] += 1
        self._unknown += webhook not in self._limits

    def cancel(self, webhook: str) -> None:
        """Give back the place of an attempt that is not made after all."""
        self._unknown -= webhook not in self._limits
        self._open[webhook] -= 1
        if not self._open[webhook]:
            del self._open[webhook]

    def end(self, webhook: str, *, is_taken: bool) -> None:
        """Note how an attempt ended. All others of the webhook that are open change with it between known and not."""
        self.cancel(webhook)
        others = self._open.get(webhook, 0)
        if is_taken:
            if webhook not in self._limits:
                self._unknown -= others
            self._limits[webhook] = min(2 * self._limits.get(webhook, 1), self._per_webhook)
        elif self._limits.pop(webhook, None) is not None:
            self._unknown += others
