"""The sessions of a store's only writer: the one that holds its lock, and the one in which its transactions run.

On PostgreSQL they are the same. On Citus the lock is at the coordinator, of which there is one, and transactions run at
the node that holds the schema: its statements need no way through the coordinator. That node plans them as Citus, so a
move of the schema holds them up, and afterwards they reach the new node; the writer follows it there.

A lock in one session and rows in another could part, if the first session is lost. So every commit compares the number
that the one before has left in the schema, and counts on. Whoever takes the lock changes that number first: a writer
that has lost its lock commits nothing any more, wherever the rows are.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from icefall.db.engine import StoreError, StoreLost
from icefall.db.postgres_session import SQL, Connection, connect

FOLLOW_EVERY_S = 5.0  # after it, the writer looks again where the schema is
WRITE_LIMIT_S = 600  # of one statement: a large rollback may take its time
LOST = "the session of the writer was ended: the store must be opened again"
_TAKEN = "another process has become the writer of this store: it must be opened again"


def node_info(url: str, host: str, port: int) -> str:
    """Return how to connect to another node of the same cluster."""
    left_out = ("host", "hostaddr", "port", "target_session_attrs", "load_balance_hosts")
    kept: dict[str, Any] = {name: value for name, value in conninfo_to_dict(url).items() if name not in left_out}
    return make_conninfo(**kept, host=host, port=port)


class WriterSessions:
    """The two sessions of a writer. `commits` is the number that its last commit has left; None: it counts none."""

    def __init__(self, url: str, schema: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._schema = schema
        self._clock = clock
        self._settings = {"search_path": schema, "statement_timeout": str(WRITE_LIMIT_S * 1000)}
        self.locking = connect(url, self._settings)
        self.writing = self.locking
        self._commits: int | None = None
        self._is_citus = False
        self._node: tuple[str, int] | None = None  # of the session that writes, if it is not the one that locks
        self._next_look = 0.0

    def begin(self, *, is_citus: bool) -> None:
        """Begin to commit, as the holder of the lock."""
        ((self._commits,),) = self.locking.execute(SQL.begin_commits.postgres).fetchall()
        self._is_citus = is_citus
        self.follow()

    def count_commit(self) -> None:
        """Count a commit, inside its transaction. StoreLost if another writer has begun meanwhile."""
        if self._commits is None:
            return
        expected = {"expected": self._commits}
        if self.writing.execute(SQL.count_commit.postgres, expected).rowcount != 1:
            raise StoreLost(_TAKEN)

    def note_commit(self) -> None:
        """Note that the transaction has ended with a commit."""
        if self._commits is not None:
            self._commits += 1

    def follow(self) -> None:
        """Write at the node that holds the schema, if it can be reached from here; else as before. It is looked for
        between transactions."""
        if not self._is_citus or self._clock() < self._next_look:
            return
        self._next_look = self._clock() + FOLLOW_EVERY_S
        found = self.writing.execute(SQL.citus_place.postgres, {"schema": self._schema}).fetchall()
        node = (found[0][0], int(found[0][1])) if found else None
        if node is None or node == self._node:
            return
        try:
            session = connect(node_info(self._url, *node), self._settings)
        except StoreError:  # an address that only the coordinator knows: it passes statements on
            return
        if self._is_same_store(session):
            self._end_writing()
            self.writing, self._node = session, node
        else:
            session.close()

    def _is_same_store(self, session: Connection) -> bool:
        """Whether a session leads to the rows that the lock is for: an address may mean another server here."""
        with suppress(psycopg.Error):
            return session.execute(SQL.commits.postgres).fetchall() == [(self._commits,)]
        return False

    def _end_writing(self) -> None:
        if self.writing is not self.locking:
            self.writing.close()

    def close(self) -> None:
        """Free the lock before the session ends: the server may notice the end of a session late."""
        self._end_writing()
        if self._commits is not None:
            with suppress(psycopg.Error):  # of a session that was ended
                self.locking.execute(SQL.unlock.postgres)
        self.locking.close()
