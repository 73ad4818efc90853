"""`icefall index`, which also writes how much CPU its commits took to the file that ICEFALL_BENCH_COMMITS names."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def main() -> int:
    from icefall.cli import main as run  # not above: decoding processes import this module too
    from icefall.db.sqlite import SqliteStore

    spent = 0.0
    write_in_steps = SqliteStore.write_in_steps

    async def timed(store: SqliteStore, change: Callable[[Any], Iterator[None]]) -> None:
        """Between two steps other work is done, after the last only the commit itself."""
        nonlocal spent
        last = 0.0

        def steps(tx: Any) -> Iterator[None]:
            nonlocal spent, last
            last = time.thread_time()
            for _ in change(tx):
                spent += time.thread_time() - last
                yield
                last = time.thread_time()

        await write_in_steps(store, steps)
        spent += time.thread_time() - last

    SqliteStore.write_in_steps = timed  # type: ignore[assignment,method-assign]
    code = run(sys.argv[1:])
    Path(os.environ["ICEFALL_BENCH_COMMITS"]).write_text(str(spent))
    return code


if __name__ == "__main__":
    raise SystemExit(main())
