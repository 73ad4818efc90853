"""The -wal file of a SQLite store: when it is merged into the store, and how a copy that lost it is recognised.

While a program writes a store, the file itself says WRITING_ID, and the newest page in its -wal file says
APPLICATION_ID. Whoever merges the -wal file (the last writer that closes, after `kill -9` the next one, or another
SQLite program) marks the store as whole by that. What says WRITING_ID and has no -wal file was copied without it.
"""

import sqlite3
from contextlib import ExitStack, closing, suppress
from pathlib import Path

APPLICATION_ID = 0x49434546  # "ICEF": distinguishes our files from other SQLite files
WRITING_ID = 0x49434557  # "ICEW": ours too, and whole only together with its -wal file
MERGE_BYTES = 32 << 20  # 4000 pages: longer -wal files make readers slower
# SQLite's own merging would bring the newest page into the file while it is still written. The size limit of 0 makes
# the -wal file as long as what it holds, so that its size says when to merge.
SETTINGS = ("pragma wal_autocheckpoint = 0", "pragma journal_size_limit = 0")


def lost_its_wal(path: Path) -> bool:
    # A writer may open or close the store between the two looks; not before both.
    return all(_wal_size(path) == 0 and _id_in_file(path) == WRITING_ID for _ in range(2))


def _wal_size(path: Path) -> int:
    """0 also where there is none: whoever looks at a copy with SQLite creates an empty one."""
    try:
        return Path(f"{path}-wal").stat().st_size
    except FileNotFoundError:
        return 0


def schema_in_file(path: Path) -> int:
    """The number of a store's schema, read without changing a byte of the store or its -wal file. 0 where there is
    none, or the file is not ours; what is damaged says so when it is opened."""
    how = "mode=ro" if _wal_size(path) else "mode=ro&immutable=1"
    with suppress(sqlite3.Error), closing(_open(path, how)) as connection:
        if connection.execute("pragma application_id").fetchone()[0] in (APPLICATION_ID, WRITING_ID):
            return int(connection.execute("pragma user_version").fetchone()[0])
    return 0


def _id_in_file(path: Path) -> int:
    """Read the mark without the -wal file. SQLite reads it, because a process that closes a file itself loses SQLite's
    locks on it."""
    with suppress(sqlite3.Error), closing(_open(path, "mode=ro&immutable=1")) as connection:
        return int(connection.execute("pragma application_id").fetchone()[0])
    return 0  # opening it will say why it cannot be read


def _open(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)


class MarkedWal:
    """The -wal file of a store that this process writes."""

    def __init__(self, path: Path, writer: sqlite3.Connection) -> None:
        self._path, self._writer = path, writer
        self._merge_at = MERGE_BYTES
        self._is_marked = False  # a store that is only opened stays whole

    def after_commit(self) -> None:
        if self._is_marked:
            self.merge_if_long()
        else:
            self._merge()

    def merge_if_long(self) -> None:
        if _wal_size(self._path) >= self._merge_at:
            self._merge()

    def _merge(self) -> None:
        """The same merge marks the file as not whole; then the -wal file says that it is, together with it."""
        with suppress(sqlite3.Error):  # a full disk, or a lock held for too long: the next commit tries again
            self._say(WRITING_ID)
            try:
                _, pages, merged = self._writer.execute("pragma wal_checkpoint(passive)").fetchone()
            finally:
                self._say(APPLICATION_ID)
            self._is_marked |= pages == merged  # if not, a reader needs the file as it was
            self._merge_at = _wal_size(self._path) + MERGE_BYTES  # what readers still need is not merged again

    def close_writer(self, *, is_only_writer: bool) -> None:
        """The last connection to close merges the -wal file, which must say then that the store is whole.

        The only writer merges it even if readers stay, so that a stopped store is whole by itself.
        """
        with ExitStack() as until_closed:
            with suppress(sqlite3.Error):
                if self._id() == WRITING_ID:
                    try:
                        self._say(APPLICATION_ID)
                    except sqlite3.Error:  # a full disk: a reader that closes later leaves the -wal file where it is
                        reader = until_closed.enter_context(closing(_open(self._path, "mode=ro")))
                        reader.execute("pragma application_id").fetchone()
                        is_only_writer = False
                if is_only_writer:
                    self._writer.execute("pragma wal_checkpoint(truncate)").fetchone()
            self._writer.close()

    def _id(self) -> int:
        return int(self._writer.execute("pragma application_id").fetchone()[0])

    def _say(self, application_id: int) -> None:
        self._writer.execute(f"pragma application_id = {application_id}")
