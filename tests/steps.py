"""What a query costs, counted instead of timed."""

from icefall.db.sqlite import SqliteReader


class Steps:
    """How many steps the engine takes: like time, but the same on every machine."""

    def __init__(self, reader: SqliteReader) -> None:
        self._connection = reader._connection
        self.count = 0

    def __enter__(self) -> "Steps":
        def step() -> int:
            self.count += 1
            return 0

        self._connection.set_progress_handler(step, 1)
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.set_progress_handler(None, 0)
