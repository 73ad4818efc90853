"""Specific to PostgreSQL: one writer, lost sessions, poolers, the pool of connections, and what is refused."""

import asyncio
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest
from tests.counterparts import missing
from tests.ports import held_port
from tests.postgres.server import as_server_user, new_prefix, server_url
from tests.store.engines import NOTES, PostgresKit
from tests.store.opened import open_store
from tests.waiting import until

from icefall.cli import main
from icefall.compose.stores import DRIVER, Stores
from icefall.db import postgres_pool, postgres_session
from icefall.db.engine import (
    StoreBusy,
    StoreError,
    StoreInUse,
    StoreLost,
    StoreUnreachable,
    Transaction,
    urgent_queries,
)
from icefall.db.postgres import PostgresReader, PostgresStore
from icefall.db.postgres_pool import ServerPool
from icefall.db.postgres_session import SessionSettings, connect
from icefall.db.statements import Statement
from icefall.errors import StartRefused
from icefall.evm.storing.holders import SQL as HOLDERS
from icefall.evm.storing.store import PACKAGE

V1 = {"schema": NOTES}
PUT = "insert into note (id, text) values (:id, :text)"
COPIED = "insert into note (id, text) values (?, ?)"


def end_sessions() -> None:
    """As an administrator, a failover or the network does."""
    with psycopg.connect(server_url(), autocommit=True) as admin:
        admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where starts_with(application_name, 'icefall')"
        )


def put(number: int) -> dict[str, object]:
    return {"id": number, "text": "x"}


def test_there_is_one_writer(kit: PostgresKit) -> None:
    first = kit.open(V1, exclusive=True)
    with pytest.raises(StoreInUse, match=r"is in use by icefall \d+ at 127\.0\.0\.1") as refused:
        kit.open(V1, exclusive=True)
    assert refused.value.can_wait
    first.close()
    kit.open(V1, exclusive=True).close()


def test_a_closed_store_is_free_before_its_session_has_ended(kit: PostgresKit, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may notice the end of a session after the next program has started."""
    store = kit.open(V1, exclusive=True)
    with monkeypatch.context() as session_stays:
        session_stays.setattr(store._sessions.locking, "close", lambda: None)
        store.close()
        kit.open(V1, exclusive=True).close()
    store._sessions.locking.close()


def taken_over(kit: PostgresKit) -> PostgresStore:
    """As the only writer. The server still ends a session when its client has heard of it already."""
    opened: list[PostgresStore] = []

    def is_free() -> bool:
        with suppress(StoreInUse):
            opened.append(kit.open(V1, exclusive=True))
        return bool(opened)

    until(is_free, "the lock is free")
    return opened[0]


def test_a_writer_that_lost_its_session_commits_nothing(kit: PostgresKit) -> None:
    store = kit.open(V1, exclusive=True)

    def change(tx: Transaction) -> None:
        tx.run(PUT, put(1))
        end_sessions()
        tx.run(PUT, put(2))

    with pytest.raises(StoreLost, match="must be opened again"):
        store.write_here(change)
    other = taken_over(kit)  # the lock went with the session
    with pytest.raises(StoreLost):
        asyncio.run(store.write(lambda tx: tx.run(PUT, put(3))))
    assert other.read("select * from note") == []


def test_a_broken_connection_is_replaced_and_the_query_asked_again(kit: PostgresKit) -> None:
    kit.open(V1)
    reader = kit.reader()
    for _ in range(3):
        assert asyncio.run(reader.rows("select count(*) from note")) == [(0,)]
        end_sessions()


def test_one_that_was_of_another_schema_is_replaced_too(kit: PostgresKit) -> None:
    kit.open(V1)
    pool = ServerPool(server_url(), size=1)
    pool.blocking._size = 1
    readers = [PostgresReader(pool, schema) for schema in (kit.schema, "public", "pg_catalog")]
    for reader in readers:
        assert asyncio.run(reader.rows("select count(*) from pg_class where false")) == [(0,)]
        assert reader.read("select count(*) from pg_class where false") == [(0,)]
        end_sessions()
    pool.close()


def test_connections_are_bounded_and_shared_by_schemas(kit: PostgresKit) -> None:
    kit.open(V1)
    pool = ServerPool(server_url(), size=2)
    readers = [PostgresReader(pool, schema) for schema in (kit.schema, "public", "pg_catalog")]

    async def ask_all() -> None:
        await asyncio.gather(*(reader.rows("select current_schema()") for reader in readers * 5))

    asyncio.run(ask_all())
    assert 0 < len(pool.of_loops._idle) <= 2
    assert [reader.read("select current_schema()")[0][0] for reader in readers] == [kit.schema, "public", "pg_catalog"]
    pool.close()


def test_urgent_queries_do_not_wait_for_the_sessions_of_others(
    kit: PostgresKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.open(V1)
    monkeypatch.setattr(postgres_pool, "WAITING_MAX", 20)
    pool = ServerPool(server_url(), size=2)
    reader = PostgresReader(pool, kit.schema)
    key = {"key": 20261117}

    async def ask_all(holder: psycopg.Connection[tuple[object, ...]]) -> None:
        others = [
            asyncio.ensure_future(reader.rows("select pg_advisory_xact_lock_shared(:key)", key)) for _ in range(20)
        ]
        await asyncio.sleep(0)
        with urgent_queries():
            counts = await asyncio.gather(*(reader.rows("select count(*) from note") for _ in range(10)))
            assert await reader.schema_number() > 0
        with pytest.raises(StoreBusy, match="too many"):
            await reader.rows("select count(*) from note")
        assert counts == [[(0,)]] * 10
        assert not any(one.done() for one in others)
        holder.rollback()
        await asyncio.gather(*others)

    with psycopg.connect(server_url()) as holder:
        holder.execute("select pg_advisory_xact_lock(%(key)s)", key)
        asyncio.run(ask_all(holder))
    pool.close()


def test_too_many_waiting_queries_are_refused(kit: PostgresKit, monkeypatch: pytest.MonkeyPatch) -> None:
    kit.open(V1)
    monkeypatch.setattr(postgres_pool, "WAITING_MAX", 3)

    async def ask_all() -> list[object]:
        asked = [kit.reader().rows("select pg_sleep(0.05)") for _ in range(6)]
        return await asyncio.gather(*asked, return_exceptions=True)

    refused = [one for one in asyncio.run(ask_all()) if isinstance(one, StoreBusy)]
    assert len(refused) == 3


def test_a_server_that_is_not_there() -> None:
    with held_port() as port:
        pool = ServerPool(f"postgresql://someone:secret@127.0.0.1:{port}/db")
        with pytest.raises(StoreUnreachable, match="Connection refused") as refused:
            PostgresReader(pool, "public").read("select 1")
    assert "secret" not in str(refused.value)
    assert "127.0.0.1" not in str(refused.value)
    pool.close()


def test_a_schema_of_something_else_is_refused(kit: PostgresKit) -> None:
    with psycopg.connect(server_url(), autocommit=True) as admin:
        admin.execute(f"create schema {kit.schema}")
        admin.execute(f"create table {kit.schema}.mine (id int)")
    with pytest.raises(StoreError, match="is not an Icefall store: use another --store-prefix"):
        kit.open(V1)


def test_an_old_server_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_session, "SERVER_MIN", 990000)
    with pytest.raises(StoreError, match="needs PostgreSQL 14 or newer"):
        connect(server_url(), {})


def test_text_with_a_zero_character_is_found_again(kit: PostgresKit) -> None:
    store = kit.open(V1)
    store.write_here(lambda tx: tx.run(PUT, {"id": 1, "text": "a\0b"}))
    assert store.read("select id from note where text = :text", {"text": "a\0b"}) == [(1,)]
    assert store.read("select id from note where text = :text", {"text": "ab"}) == []


# -- poolers -----------------------------------------------------------------------------------------------------


@pytest.fixture
def port() -> Iterator[int]:
    with held_port() as held:
        yield held


@pytest.fixture
def pooler(port: int) -> Iterator[dict[str, str]]:
    """pgbouncer before the server: URLs by mode. Its folder is one that the server's user may enter."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        missing("pgbouncer")
    folder = Path(tempfile.mkdtemp(prefix="icefall-pgbouncer-"))
    file = folder / "pgbouncer.ini"
    upstream = psycopg.conninfo.conninfo_to_dict(server_url())
    target = f"host=127.0.0.1 port={upstream['port']} dbname=postgres user=postgres"
    file.write_text(
        f"[databases]\nshared = {target} pool_mode=transaction\nown = {target} pool_mode=session\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\nunix_socket_dir =\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    folder.chmod(0o755)
    command = as_server_user([program, "--quiet", str(file)])
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    urls = {mode: f"postgresql://postgres@127.0.0.1:{port}/{mode}" for mode in ("shared", "own")}

    def listens() -> bool:
        try:
            psycopg.connect(urls["own"]).close()
        except psycopg.OperationalError:
            return False
        return True

    try:
        until(listens, "pgbouncer listens")
        yield urls
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def test_a_transaction_pooler_is_refused_and_a_session_pooler_is_not(
    pooler: dict[str, str], kit: PostgresKit, capsys: pytest.CaptureFixture[str]
) -> None:
    kit.open(V1)
    with closing(connect(pooler["own"], SessionSettings(kit.schema, 5.0).settings())) as session:
        assert session.execute("select count(*) from note").fetchall() == [(0,)]
    with pytest.raises(StoreError, match="this is a transaction pooler, which gives one session to several clients"):
        connect(pooler["shared"], {})
    assert main(["migrate", f"--store={pooler['shared']}", f"--store-prefix={new_prefix()}"]) == 1
    assert "transaction pooler" in capsys.readouterr().err


# -- without the driver ------------------------------------------------------------------------------------------


def without_driver(folder: Path, *arguments: str) -> str:
    """What `icefall` says where psycopg is not installed."""
    (folder / "psycopg.py").write_text("raise ImportError\n")
    command = [sys.executable, "-m", "icefall.cli", *arguments]
    path = f"{folder}:{Path(__file__).parents[2] / 'src'}"
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": path, "HOME": "/"})
    assert done.returncode == 1
    return done.stderr


VERBS_WITH_A_SERVER = [
    ("migrate", "--store=postgresql://a/b"),
    ("keys", "list", "--store=postgresql://a/b"),
    ("copy", "postgresql://a/b", "new"),
    ("copy", "kept", "postgresql://a/b"),
]


@pytest.mark.parametrize("arguments", VERBS_WITH_A_SERVER, ids=" ".join)
def test_without_the_driver_a_url_is_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert main(["keys", "add", "--name=a", f"--data-dir={tmp_path / 'kept'}"]) == 0
    verb, *words = (str(tmp_path / word) if word in ("kept", "new") else word for word in arguments)
    said = without_driver(tmp_path, verb, *words)
    driver = f"{shlex.quote(sys.executable)} -m pip install '{DRIVER}'"
    assert said == f"icefall: a PostgreSQL store needs its driver: {driver}\n"


def test_the_named_driver_is_that_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"]["postgres"] == [DRIVER]


def test_the_command_for_the_driver_is_that_of_the_installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "icefall.db.postgres_pool", None)

    def said() -> str:
        with pytest.raises(StartRefused) as refused, closing(Stores(tmp_path, "postgresql://a/b")) as stores:
            stores.names()
        return str(refused.value).partition(": ")[2]

    monkeypatch.setattr(sys, "executable", "/opt/my programs/python")
    assert said() == f"'/opt/my programs/python' -m pip install '{DRIVER}'"
    monkeypatch.setattr("icefall.compose.stores.find_spec", lambda _: None)  # an environment that uv has made
    assert said() == f"uv pip install --python '/opt/my programs/python' '{DRIVER}'"
    (tmp_path / "pipx_metadata.json").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert said() == f"pipx inject icefall '{DRIVER}'"


def test_stores_of_chains_may_be_on_other_servers(tmp_path: Path) -> None:
    prefix = new_prefix()
    with closing(Stores(tmp_path, "", prefix, {"7": server_url()})) as stores:
        stores.chain_store("7").close()
        stores.chain_store("8").close()
        assert stores.has_chain_store("7")
        assert (tmp_path / "chains" / "8.sqlite").exists()
        assert not (tmp_path / "chains" / "7.sqlite").exists()
        with closing(stores.chain_store("7")) as store:
            assert isinstance(store, PostgresStore)


def test_a_holder_is_found_by_the_key_in_a_new_table(tmp_path: Path) -> None:
    """Nothing is known of it yet, and the index by balance has the same columns."""
    store = open_store(tmp_path / "chain.postgres", PACKAGE)
    explain = Statement("explain")
    explain.postgres = f"explain {HOLDERS.holder.postgres}"
    try:
        plan = store.write_here(lambda tx: tx.rows_of_each(explain, [(1, 1, 1), (1, 1, 2)]))
    finally:
        store.close()
    assert "holder_pkey" in str(plan)
    assert "Sort" not in str(plan)


def test_a_migration_may_take_longer_than_any_other_statement(
    kit: PostgresKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icefall.db.postgres_writer.WRITE_LIMIT_S", 0.1)
    slow = "create table slow as select 1 as one from pg_sleep(0.3);\n"
    kit.open(V1).close()
    with closing(kit.open(V1 | {"0102_slow": slow})) as store:
        assert store.read("select count(*) from slow") == [(1,)]
        with pytest.raises(StoreError, match="stopped at its time limit"):
            store.write_here(lambda tx: tx.run("insert into note select 1, 'x' from pg_sleep(0.3)"))


def test_arrays_come_to_the_server_as_they_are(kit: PostgresKit) -> None:
    columns: list[tuple[str, list[object]]] = [
        ("bigint", [0, 1, -1, 2**63 - 1, -(2**63)]),
        ("bigint", [None, 5, None]),
        ("bigint", [None]),
        ("bigint", [True, 7]),
        ("bigint", list(range(5_000))),
        ("bytea", [b"", b"\0a", None]),
        ("text", ["", "a", None]),
    ]
    with closing(kit.open(V1)) as store:
        for kind, values in columns:
            each = Statement("select 1")
            each.postgres = f"select value from unnest(%s::{kind}[]) with ordinality as k(value, at) order by at"
            assert store.read(each, [values]) == [(value,) for value in values]
            assert asyncio.run(store.rows(each, [values])) == [(value,) for value in values]


def test_arrays_of_one_statement_may_have_numbers_of_any_size(kit: PostgresKit) -> None:
    """The first one alone would fit into a smallint, the first two into an integer."""
    pairs = [(1, 1 << 20, 1 << 40), (2, -1, 3)]
    with closing(kit.open(V1)) as store:
        each = Statement("select 1")
        each.postgres = "select a, b, c from unnest(%s, %s, %s) as k(a, b, c)"
        assert store.write_here(lambda tx: tx.rows_of_each(each, pairs)) == pairs
        assert asyncio.run(store.rows_of_each(each, pairs)) == pairs
        by_name = [dict(zip("abc", pair, strict=True)) for pair in pairs]
        assert store.read_each("select :a + 0, :b + 0, :c + 0", by_name) == [[pair] for pair in pairs]


def _stored(store: PostgresStore) -> list[int]:
    return [number for (number,) in store.read("select id from note order by id")]


def test_rows_are_copied_before_the_next_statement_is_run(kit: PostgresKit) -> None:
    """They are on their way to the server while the caller makes others, even of another size."""

    def change(tx: Transaction) -> list[int]:
        tx.run_many(COPIED, [(number, "x") for number in range(20)])
        tx.run_many(COPIED, [(number, "x") for number in range(20, 23)])
        seen = [tx.rows("select count(*) from note")[0][0]]
        tx.run_many(COPIED, [(number, "x") for number in range(23, 60)])
        seen.append(tx.run("delete from note where id >= 50"))
        tx.run_many(COPIED, [(number, "x") for number in range(50, 70)])
        tx.run_many("delete from note where id = ?", [(69,), (68,)])
        tx.run_many(COPIED, [(number, "x") for number in range(68, 90)])
        tx.run_many("insert into note (text, id) values (?, ?)", [("x", number) for number in range(90, 110)])
        return seen

    with closing(kit.open(V1)) as store:
        assert store.write_here(change) == [23, 10]
        assert _stored(store) == list(range(110))


def test_copied_rows_that_the_server_refuses_fail_the_transaction(kit: PostgresKit) -> None:
    rows = [(number, "x") for number in (*range(20), 7)]

    def and_then(tx: Transaction) -> None:
        tx.run_many(COPIED, rows)
        tx.rows("select 1")

    with closing(kit.open(V1)) as store:
        for change in (lambda tx: tx.run_many(COPIED, rows), and_then):
            with pytest.raises(psycopg.IntegrityError):
                store.write_here(change)
            assert _stored(store) == []
        store.write_here(lambda tx: tx.run_many(COPIED, rows[:20]))
        assert _stored(store) == list(range(20))


def test_nothing_is_left_of_a_copy_whose_caller_fails(kit: PostgresKit) -> None:
    def change(tx: Transaction) -> None:
        tx.run_many(COPIED, [(number, "x") for number in range(50)])
        raise ValueError("of the caller")

    with closing(kit.open(V1)) as store:
        with pytest.raises(ValueError, match="of the caller"):
            store.write_here(change)
        assert _stored(store) == []
        store.write_here(lambda tx: tx.run_many(COPIED, [(1, "x")]))
        assert _stored(store) == [1]
