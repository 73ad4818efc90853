"""Readers without a data directory or a config file: what they serve, their keys, page tokens and budgets come from the
store, so that any number of them answer alike."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import psycopg
import pytest
from tests.api.data_scene import chain_id, put_chains
from tests.postgres.server import new_prefix, reader_role, server_url
from tests.server import Server, serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import LIMIT_S, until

from icefall.access.budget_leases import BudgetLeases
from icefall.access.budget_server import StoredBudgets
from icefall.access.budgets import Tier
from icefall.cli import main
from icefall.compose.shared_chains import put_chain_configs, with_stored_chains
from icefall.compose.stores import Stores, stores_of
from icefall.config.load import load
from icefall.db.postgres_pool import POOL_SIZE
from icefall.observe.log import quiet

CHAIN = "berlin-1"


class Readers(NamedTuple):
    """`role_url`: the server of the store, for the role of a reader."""

    servers: list[Server]
    stores: Stores
    prefix: str
    role_url: str


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Readers]:
    """Two programs that share nothing but the store: one as its owner, the other in the role of a reader."""
    folder, prefix = tmp_path_factory.mktemp("readers"), new_prefix()
    settings = [f"--store={server_url()}", f"--store-prefix={prefix}"]
    with ExitStack() as stack:
        replay = stack.enter_context(in_thread(EvmReplay(CHAIN)))
        put_chains(folder, {CHAIN: replay.url})
        assert main(["copy", str(folder / "data"), server_url(), settings[1]]) == 0
        file = f"--config-file={folder / 'icefall.toml'}"
        config = load("index", [file, *settings, f"--data-dir={folder / 'none'}"], {}, folder).config
        stores = stack.enter_context(closing(stores_of(config)))
        put_chain_configs(config, stores)
        stores.node_store().close()
        url = reader_role(prefix, chain_id(CHAIN))
        servers = [
            stack.enter_context(serving("data", folder / name, f"--store={at}", settings[1], "--rate-limits=on"))
            for name, at in (("one", server_url()), ("other", url))
        ]
        yield Readers(servers, stores, prefix, url)


def test_they_serve_the_chains_of_the_store(readers: Readers) -> None:
    answers = [server.ask("GET", "/v1/chains", listener="data").json() for server in readers.servers]
    assert [chain["chainId"] for chain in answers[0]["chains"]] == [chain_id(CHAIN)]
    assert answers[0] == answers[1]


def test_a_page_token_of_one_continues_at_the_other(readers: Readers) -> None:
    target = f"/v1/chains/{chain_id(CHAIN)}/blocks?pageSize=5"
    first = readers.servers[0].ask("GET", target, listener="data").json()
    following = f"{target}&pageToken={quote(first['nextPageToken'])}"
    pages = [server.ask("GET", following, listener="data").json() for server in readers.servers]
    tokens = [page.pop("nextPageToken") for page in pages]  # they hold the second in which they were made
    assert len(pages[0]["blocks"]) == 5
    assert pages[0] == pages[1]
    assert all(tokens)


def test_keys_are_known_to_all(readers: Readers) -> None:
    access, target = readers.stores.access_writer(), f"/v1/chains/{chain_id(CHAIN)}/blocks?pageSize=1"

    def share(name: str) -> bool:
        """False where a minute ended between the two, or a lease took too long."""
        header, left = {"x-service-api-key": access.add_key(name, "pro", 5)}, []
        for server in readers.servers:
            answer = server.ask("GET", target, headers=header, listener="data")
            assert answer.status == 200
            left.append(int(answer.header("ratelimit-remaining") or 0))
        access.revoke_key(name, 6)
        for server in readers.servers:
            assert server.ask("GET", target, headers=header, listener="data").status == 403
        return left[1] < left[0]

    names = (f"alice-{number}" for number in count())
    until(lambda: share(next(names)), "what the first was granted is gone for the second")


def test_the_role_of_a_reader_stores_usage(readers: Readers) -> None:
    header = {"x-service-api-key": readers.stores.access_writer().add_key("bob", "pro", 5)}
    target = f"/v1/chains/{chain_id(CHAIN)}/blocks?pageSize=1"
    assert readers.servers[1].ask("GET", target, headers=header, listener="data").status == 200
    with psycopg.connect(readers.role_url, autocommit=True) as role:

        def calls() -> int:
            counted = f"select coalesce(sum(calls), 0) from {readers.prefix}_access.usage_day where caller like '%bob%'"
            return int(role.execute(counted).fetchall()[0][0])

        until(lambda: calls() == 1, "the reader has stored its usage")
        until(lambda: logged(role, readers.prefix) == 1, "and the request")


def logged(role: psycopg.Connection[tuple[Any, ...]], prefix: str) -> int:
    return int(role.execute(f"select count(*) from {prefix}_access.request_log where caller = 'bob'").fetchall()[0][0])


FORBIDDEN = [
    "insert into {p}_access.api_key (hash, name, tier, created) values ('x', 'mallory', 'pro', 1)",
    "update {p}_access.api_key set tier = 'unlimited'",
    "update {p}_access.api_key set revoked = null",
    "delete from {p}_access.api_key",
    "select 1 from {p}_access.api_key for update",
    "insert into {p}_access.secret (name, value) values ('other', 'x')",
    "insert into {p}_access.secret (name, value) values ('page_tokens', 'x') on conflict (name) do nothing",
    "update {p}_access.secret set value = 'x'",
    "update {p}_access.secret set name = 'x'",
    "delete from {p}_access.secret",
    "insert into {p}_access.chain_config (chain_id, position, config) values ('1', 1, '{{}}')",
    "update {p}_access.chain_config set config = '{{}}'",
    "delete from {p}_access.chain_config",
    "update {p}_access.schema_version set number = 1",
    "update {p}_access.request_log set caller = ''",
    "delete from {p}_access.request_log",
    "delete from {p}_access.usage_day",
    "delete from {p}_access.budget_spent",
    "truncate {p}_access.usage_day",
    "create table {p}_access.mine (id bigint)",
    "delete from {p}_chain_{c}.block",
    "update {p}_chain_{c}.meta set value = ''",
    "insert into {p}_node.meta (name, value) values ('a', 'b')",
]


@pytest.mark.parametrize("change", FORBIDDEN)
def test_the_role_of_a_reader_may_change_nothing_else(readers: Readers, change: str) -> None:
    with psycopg.connect(readers.role_url) as role, pytest.raises(psycopg.errors.InsufficientPrivilege):
        role.execute(change.format(p=readers.prefix, c=chain_id(CHAIN)).encode())


def test_the_role_of_a_reader_leases_budgets(readers: Readers, tmp_path: Path) -> None:
    """Without a socket of an owner: readers with a server lease from the store itself."""
    with closing(Stores(tmp_path, readers.role_url, readers.prefix)) as stores:
        owner = StoredBudgets(stores.access_store, lambda: 86_400.0 * 20_030 + 5)
        params = {"caller": "role", "per_minute": 1_000, "per_day": 1_500}
        grants = [asyncio.run(owner.call("lease", need=20, **params)) for _ in range(2)]
        owner.close()
    assert grants[0].units > 0
    assert grants[1].units > 0


def test_health_does_not_wait_for_the_sessions_of_others(readers: Readers) -> None:
    """The key of its caller is looked up too. More queries than there are sessions wait for a table before it."""
    server = readers.servers[0]
    header = {"x-service-api-key": readers.stores.access_writer().add_key("prober", "pro", 5)}
    target = f"/v1/chains/{chain_id(CHAIN)}/transactions/0x{{}}"
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%tx%'"
    server.ask("GET", "/v1/health-check", headers=header, listener="data")
    with (
        ThreadPoolExecutor(30) as clients,
        psycopg.connect(server_url()) as lock,
        psycopg.connect(server_url(), autocommit=True) as admin,
    ):
        lock.execute(f"lock table {readers.prefix}_chain_{chain_id(CHAIN)}.tx in access exclusive mode")
        others = [
            clients.submit(server.ask, "GET", target.format(f"{number:064x}"), listener="data") for number in range(30)
        ]
        until(lambda: int(admin.execute(waiting).fetchall()[0][0]) == POOL_SIZE, "all sessions of the pool are in use")
        answer = server.ask("GET", "/v1/health-check", headers=header, listener="data")
        unanswered = sum(not one.done() for one in others)
        lock.rollback()
        assert {one.result(LIMIT_S).status for one in others} <= {
            404,
            503,
        }  # 503: a busy machine has reached their limit
        assert answer.status == 200, answer.body
        assert unanswered, "it waited for all of them"


def test_usage_is_stored_again_after_the_sessions_were_ended(readers: Readers) -> None:
    header = {"x-service-api-key": readers.stores.access_writer().add_key("carol", "pro", 5)}
    target = f"/v1/chains/{chain_id(CHAIN)}/blocks?pageSize=1"
    with psycopg.connect(server_url(), autocommit=True) as admin:

        def has_stored(calls: int) -> bool:
            rows = f"select sum(calls) from {readers.prefix}_access.usage_day where caller like '%carol%'"
            return int(admin.execute(rows).fetchall()[0][0] or 0) >= calls

        for calls in (1, 2):
            until(lambda: readers.servers[0].ask("GET", target, headers=header, listener="data").status == 200, "200")
            until(partial(has_stored, calls), "its usage is stored")
            admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")


def test_budgets_are_shared_exactly(readers: Readers) -> None:
    now = [86_400.0 * 20_000 + 5]
    owners = [StoredBudgets(readers.stores.access_store, lambda: now[0]) for _ in range(2)]
    leases = [BudgetLeases(owner.call, 2, quiet(), lambda: now[0]) for owner in owners]
    tier = Tier("t", 1_000, 1_500)

    async def spend_all() -> int:
        spent = 0
        while True:
            taken = [(await one.take("caller", tier, 20)).allowed for one in leases]
            spent += 20 * sum(taken)
            if not any(taken):
                return spent

    async def scene() -> list[int]:
        spent = [await spend_all()]
        now[0] += 60
        spent.append(await spend_all())
        now[0] += 86_400
        return [*spent, await spend_all()]

    assert asyncio.run(scene()) == [1_000, 500, 1_000]
    for owner in owners:
        owner.close()


def test_machines_whose_clocks_differ_share_one_budget(readers: Readers) -> None:
    """At the end of a minute, and of a day, some are in the next one already."""
    now = [86_400.0 * 20_010 - 3]
    ahead = [5.0, 0.0]
    clocks = [lambda: now[0] + ahead[0], lambda: now[0] + ahead[1]]
    owners = [StoredBudgets(readers.stores.access_store, clock) for clock in clocks]
    leases = [BudgetLeases(owner.call, 2, quiet(), clock) for owner, clock in zip(owners, clocks, strict=True)]
    tier = Tier("t", 1_000, 1_500)

    async def spend_all() -> int:
        spent = 0
        while True:
            taken = [(await one.take("skewed", tier, 20)).allowed for one in leases]
            spent += 20 * sum(taken)
            if not any(taken) or spent > 5_000:
                return spent

    async def scene() -> list[int]:
        spent = [await spend_all()]
        now[0] += 3  # both are in the first minute of the day
        return [*spent, await spend_all()]

    assert asyncio.run(scene()) == [1_000, 0]
    for owner in owners:
        owner.close()


def test_units_are_given_back_in_one_order_everywhere(readers: Readers) -> None:
    """Two workers that locked the rows of two callers in opposite order would wait for each other for ever."""
    now = 86_400.0 * 20_020 + 5
    owner = StoredBudgets(readers.stores.access_store, lambda: now)
    for caller in ("order-a", "order-b"):
        asyncio.run(owner.call("lease", caller=caller, per_minute=1_000, per_day=1_500, need=20))
    lock = f"select 1 from {readers.prefix}_access.budget_spent where caller = %s for update"
    waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%budget_spent%'"
    given_back = {"minute": int(now) // 60, "unspent": [("order-b", 1), ("order-a", 1)]}
    with (
        ThreadPoolExecutor(1) as other,
        psycopg.connect(server_url()) as first,
        psycopg.connect(server_url(), autocommit=True) as second,
    ):
        first.execute(lock, ["order-a"])
        giving = other.submit(lambda: asyncio.run(owner.call("give_back", **given_back)))
        until(lambda: bool(second.execute(waiting).fetchall()), "it waits for the row of the first caller")
        try:
            second.execute(f"{lock} nowait", ["order-b"])
        finally:
            first.rollback()
        giving.result(LIMIT_S)
    owner.close()


def test_on_files_too_data_serves_what_up_indexes(tmp_path: Path) -> None:
    with in_thread(EvmReplay(CHAIN)) as replay:
        config = tmp_path / "elsewhere.toml"
        config.write_text(f'[[chain]]\nid = "{replay.chain_id}"\nrpc = "{replay.url}"\nname = "Berlin"\n')
        with serving("up", tmp_path, f"--config-file={config}", "--no-nft-metadata"):
            pass
        with serving("data", tmp_path) as server:
            (chain,) = server.ask("GET", "/v1/chains", listener="data").json()["chains"]
    assert chain["chainName"] == "Berlin"


def test_an_own_config_file_wins_and_other_releases_are_read(tmp_path: Path) -> None:
    config = load("data", [f"--data-dir={tmp_path}"], {}, tmp_path).config
    stores = Stores(tmp_path)
    rows = {
        "7": '{"id": "7", "rpc": ["http://a"], "name": "stored", "of_a_later_release": 1}',
        "8": '{"id": "8", "rpc": ["http://b"], "name": "other", "prices_interval": 5}',
    }
    stores.access_writer().put_chain_configs(rows)
    found = with_stored_chains(config, stores).chain
    assert [(chain.id, chain.name, chain.prices_interval) for chain in found] == [
        ("7", "stored", 300_000_000_000),
        ("8", "other", 5),
    ]
    (tmp_path / "icefall.toml").write_text('[[chain]]\nid = "7"\nrpc = "http://own"\n')
    own = load("data", [f"--data-dir={tmp_path}"], {}, tmp_path).config
    assert [chain.rpc for chain in with_stored_chains(own, stores).chain] == [("http://own",), ("http://b",)]
