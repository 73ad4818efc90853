"""How long to wait before a process that has ended is started again."""

WINDOW_S = 60.0
QUICK_MAX = 5  # restarts within the window before pauses grow
QUICK_PAUSE_S = 0.2
PAUSE_MAX_S = 30.0
SERVING_PAUSE_MAX_S = 2.0  # of what clients wait for: listeners and the engine


class RestartBudget:
    """The restarts of one role. Those within the budget are quick; after it each pause is twice the one before.

    Once the process has run for a whole window, the budget is full again.
    """

    def __init__(self, pause_max_s: float = PAUSE_MAX_S) -> None:
        self._pause_max_s = pause_max_s
        self._ends: list[float] = []
        self._slow = 0

    @property
    def is_spent(self) -> bool:
        return self._slow > 0

    def pause_after_end(self, now: float) -> float:
        """The process ended at `now`; the seconds to wait."""
        if self._ends and now - self._ends[-1] >= WINDOW_S:
            self._slow = 0
        self._ends = [then for then in self._ends if now - then < WINDOW_S] + [now]
        if not self._slow and len(self._ends) <= QUICK_MAX:
            return QUICK_PAUSE_S
        self._slow += 1
        return float(min(2 ** (self._slow - 1), self._pause_max_s))
