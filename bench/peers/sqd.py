"""SQD's evm-processor: into PostgreSQL, transfers and balances alone or with transactions and indexes by address."""

from pathlib import Path

from bench.peers.database import Database
from bench.peers.install import npm_project
from bench.peers.processes import PeerFailed, Spent, to_the_end
from bench.peers.replay import TOKEN_TEXT, History

_TABLES = """
create table position (height int, hash text);
create table transfer (
    id text primary key, block int, timestamp bigint, "from" text, "to" text, amount numeric
);
create table account (id text primary key, balance numeric);
"""
# What ours stores besides: with these, the transfers and transactions of an address can be listed.
_MORE_TABLES = """
create index on transfer ("from");
create index on transfer ("to");
create table tx (
    hash text primary key, block int, "from" text, "to" text, value numeric, nonce int, gas numeric, gas_price numeric,
    input text, gas_used numeric, status int
);
create index on tx ("from");
create index on tx ("to");
"""


def take(history: History, url: str, database: Database, log: Path, with_transactions: bool) -> Spent:
    folder = npm_project("sqd")
    database.run(_TABLES + (_MORE_TABLES if with_transactions else ""))
    environment = {
        "PEER_RPC": url,
        "PEER_DATABASE": database.url,
        "PEER_LAST": str(history.last),
        "PEER_TOKEN": TOKEN_TEXT,
        "PEER_TRANSACTIONS": "1" if with_transactions else "0",
    }
    spent = to_the_end(["node", "run.js"], log, environment, folder)
    for table in ("transfer", "tx") if with_transactions else ("transfer",):
        stored = database.number(f"select count(*) from {table}")
        if stored != history.transfers:
            raise PeerFailed(f"{stored} rows in {table} instead of {history.transfers}")
    return spent
