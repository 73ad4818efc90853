"""The lists of the Explorer over a million rows each: what the first and the last page cost, in this process.

`ICEFALL_BENCH_ROWS` sets how many rows. Times are the shortest of many, which a busy machine disturbs least.
"""

import asyncio
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.store.counted_statements import LocalRequest

from bench.evm_rows import address, mark_audited
from icefall.access.page_tokens import NumberTokens, PageTokens
from icefall.access.store import page_token_secret
from icefall.api.data.schema.chains import AllBlocksParams
from icefall.api.data.schema.explorer import BalanceHistoryParams, TokensParams
from icefall.api.data.schema.tokens import CollectionParams, HoldersParams
from icefall.api.data.schema.transactions import AllTxsParams
from icefall.api.http.app import App
from icefall.api.http.paging import NumberPaging, Paging, pack_cursor
from icefall.api.http.row import DATA, METRICS
from icefall.api.metrics.schema import NftHoldersParams
from icefall.compose.rest_apps import data_app, metrics_app
from icefall.compose.stores import Stores
from icefall.config.load import load
from icefall.db.engine import Transaction
from icefall.evm.encoding import pack_uint, position_of
from icefall.evm.model import ERC20, ERC721
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter
from icefall.wire.evm.rlp import keccak256

ROWS = 1_000_000
CHAIN, SMALL_CHAIN = "777", "778"
COIN, NFTS, BUSY = (address(number) for number in range(3))
COIN_ID, NFTS_ID, BUSY_ID, FIRST_ID = 1, 2, 3, 10
GENESIS_S = 1_700_000_000
TIMES = 60
_PIECE = 20_000


class Listed(NamedTuple):
    """A list, its first page and its last."""

    name: str
    listener: str
    first: str
    last: str


def run() -> None:
    rows = int(os.environ.get("ICEFALL_BENCH_ROWS", ROWS))
    print(f"lists: {rows} rows each, pages of ten; shortest time of a request in process, without HTTP")
    with TemporaryDirectory() as folder, closing(Stores(Path(folder) / "data")) as stores:
        stores.access_writer().ensure()
        for chain, count in ((CHAIN, rows), (SMALL_CHAIN, rows // 1000)):
            asyncio.run(_fill(stores, chain, count))
        file = Path(folder) / "icefall.toml"
        tables = (f'[[chain]]\nid = "{one}"\nrpc = "http://127.0.0.1:1"\n' for one in (CHAIN, SMALL_CHAIN))
        file.write_text("".join(tables))
        arguments = [f"--data-dir={folder}/data", f"--config-file={file}"]
        apps = {
            DATA: data_app(load("data", arguments, {}, Path(folder)).config, with_engine=False),
            METRICS: metrics_app(load("metrics", arguments, {}, Path(folder)).config, with_engine=False),
        }
        with closing(stores.access_reader()) as access:
            asyncio.run(_compare(apps, list(_lists(page_token_secret(access), rows))))


async def _compare(apps: dict[str, App], lists: Sequence[Listed]) -> None:
    print(f"  {'list':<34}{'first us':>10}{'last us':>10}{'ratio':>8}")
    for one in lists:
        first, last = [await _shortest_us(apps[one.listener], target) for target in (one.first, one.last)]
        print(f"  {one.name:<34}{first:>10.0f}{last:>10.0f}{last / first:>8.2f}", flush=True)
    for app in apps.values():
        await app.close()


async def _shortest_us(app: App, target: str) -> float:
    request, times_us = LocalRequest("GET", target), []
    for _ in range(TIMES):
        began = time.perf_counter_ns()
        answer = await app.respond(request)
        times_us.append((time.perf_counter_ns() - began) / 1e3)
        assert answer.status == 200, (target, answer.body)
    return min(times_us)


def _lists(secret: bytes, rows: int) -> Iterator[Listed]:
    paging, numbers = Paging(PageTokens(secret)), NumberPaging(NumberTokens(secret))
    near_end = rows - 20

    def behind(path: str, route: str, params: Any, cursor: bytes) -> tuple[str, str]:
        return path, f"{path}{'&' if '?' in path else '?'}pageToken={quote(paging.token(route, params, cursor))}"

    chain, coin, nfts, busy = f"/v1/chains/{CHAIN}", f"0x{COIN.hex()}", f"0x{NFTS.hex()}", f"0x{BUSY.hex()}"

    def in_both(of_chain: int, of_small: int) -> bytes:
        return pack_cursor(GENESIS_S + 15, int(CHAIN), of_chain, int(SMALL_CHAIN), of_small)

    yield Listed("blocks of all chains", DATA, *behind(
        "/v1/blocks", "allBlocks", AllBlocksParams(), in_both(15, 16)))  # fmt: skip
    yield Listed("transactions of all chains", DATA, *behind(
        "/v1/transactions", "allTransactions", AllTxsParams(),
        in_both(position_of(15, 0), position_of(16, 0))))  # fmt: skip
    yield Listed("tokens", DATA, *behind(
        f"{chain}/tokens", "tokens", TokensParams(chain_id=CHAIN), pack_cursor(20, 0)))  # fmt: skip
    of_standard = TokensParams(chain_id=CHAIN, erc_type="ERC-20")
    yield Listed("tokens of a standard", DATA, *behind(
        f"{chain}/tokens?ercType=ERC-20", "tokens", of_standard, pack_cursor(20, 0)))  # fmt: skip
    yield Listed("search by name", DATA, "/v1/search?query=token+0000", f"/v1/search?query=token+{near_end:07}")
    yield Listed("tokens of an NFT collection", DATA, *behind(
        f"{chain}/nfts/collections/{nfts}/tokens", "collectionTokens",
        CollectionParams(chain_id=CHAIN, address=NFTS), pack_uint(near_end)))  # fmt: skip
    smallest = (FIRST_ID + 15).to_bytes(8, "big") + (15).to_bytes(1, "big")
    yield Listed("holders by balance", DATA, *behind(
        f"{chain}/tokens/{coin}/holders", "holders",
        HoldersParams(chain_id=CHAIN, address=COIN), smallest))  # fmt: skip
    holders = f"/v2/chains/{CHAIN}/contracts/{nfts}/nfts:listHolders?pageSize=10"
    token = numbers.token("nftHolders", NftHoldersParams(chain_id=CHAIN, address=NFTS), FIRST_ID + near_end)
    yield Listed("holders by ID", METRICS, holders, f"{holders}&pageToken={quote(token)}")
    yield Listed("logs of an address", DATA, *(f"{chain}/addresses/{busy}/logs?endBlock={end}" for end in (rows, 20)))
    yield Listed("balance history", DATA, *behind(
        f"{chain}/addresses/{busy}/balances:listHistory", "balanceHistory",
        BalanceHistoryParams(chain_id=CHAIN, address=BUSY), pack_cursor(15)))  # fmt: skip


# -- rows, straight into the tables ----------------------------------------------------------------------------------


async def _fill(stores: Stores, chain: str, rows: int) -> None:
    store = ChainStore(stores.chain_store(chain), [RollupWriter()])
    for statement, values in _tables(chain, rows):
        every = iter(values)
        while piece := list(islice(every, _PIECE)):
            await store.write(partial(_put, statement, piece))
    await mark_audited(store)
    store.close()


def _put(statement: str, rows: Sequence[Any], tx: Transaction) -> None:
    tx.run_many(statement, rows)


def _insert(table: str, columns: str) -> str:
    return f"insert into {table} ({columns}) values ({', '.join('?' for _ in columns.split(','))})"


def _tables(chain: str, rows: int) -> Iterator[tuple[str, Iterable[Any]]]:
    every, one = range(rows), pack_uint(1)
    hashes = [keccak256(f"{chain} {number}".encode()) for number in every]
    yield _insert("meta", "name, value"), [("logs_from", "0"), ("holders_to", str(rows))]
    yield _insert("address", "id, address"), [(COIN_ID, COIN), (NFTS_ID, NFTS), (BUSY_ID, BUSY)]
    yield _insert("address", "id, address"), ((FIRST_ID + at, hashes[at][:20]) for at in every)
    yield (
        _insert("block", "number, hash, parent_hash, time, tx_count, base_fee, gas_used, gas_limit, gas_cost, "
                "fees_spent, cumulative_txs, next_address, touched"),
        ((at, hashes[at], hashes[at - 1], GENESIS_S + at, 1, one, one, one, one, one, at, FIRST_ID, b"")
         for at in every),
    )  # fmt: skip
    yield (
        _insert("tx", "tx_at, hash, sender, recipient, kind, amounts, selector, input"),
        ((position_of(at, 0), hashes[at], BUSY_ID, FIRST_ID + at, 4,
          b"".join((one, pack_uint(at), one, one, one, b"\xff\xff")), b"", b"") for at in every),
    )  # fmt: skip
    yield (
        _insert("token", "token, first_block, standards, kind, name, symbol, decimals, read_at"),
        ((FIRST_ID + at, at, ERC20, "ERC-20", f"Token {at:07}", f"T{at:07}", 18, 1) for at in every),
    )
    yield _insert("nft", "token, token_id, first_block, retry_at"), ((NFTS_ID, pack_uint(at), at, None) for at in every)
    for token, standard in ((COIN_ID, ERC20), (NFTS_ID, ERC721)):
        holders = ((token, standard, FIRST_ID + at, pack_uint(at + 1)) for at in every)
        yield _insert("holder", "token, standard, holder, balance"), holders
        yield _insert("holder_total", "token, standard, holders, tokens"), [(token, standard, rows, rows)]
    yield (
        _insert("log", "log_at, tx_index, address, topic0, topics, data"),
        ((position_of(at, 0), 0, BUSY, hashes[0], b"", b"\1") for at in every),
    )
    balances = ((BUSY_ID, at, pack_uint(at + 1)) for at in every)
    yield _insert("native_balance", "address, block, balance"), balances
