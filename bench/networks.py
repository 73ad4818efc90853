"""Lists of a P-Chain with a million transactions beside transactions of an EVM address (endpoint 4), in this process.

A recorded network is copied: each transaction of the copies has a block and an output of one address, every tenth
begins a validation and is paid a reward. `ICEFALL_BENCH_ROWS` sets how many transactions. CPU is the least of many
requests, each of which must show ten rows, without HTTP; the aims are at most twice endpoint 4, and a last page within
1.3 of the first.
"""

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from hashlib import sha256
from itertools import count, islice, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace
from tests.api.networks_scene import TOKEN_SECRET, plain_networks_app
from tests.pchain.recorded import Playback
from tests.pchain.replay import config_of
from tests.store.counted_statements import LocalRequest

from bench.data import CHAIN, fill
from bench.evm_rows import address
from icefall.access.page_tokens import PageTokens
from icefall.api.http.app import App
from icefall.api.http.paging import Paging, pack_cursor
from icefall.api.networks.handlers.utxos import Places
from icefall.api.networks.network import Networks
from icefall.api.networks.schema.c_chain import ChainUtxosParams
from icefall.api.networks.schema.transactions import ListedTxsParams
from icefall.api.networks.schema.validators import NetworkValidatorsParams, PaidRewardsParams
from icefall.compose.rest_apps import data_app
from icefall.compose.served_network import served_network
from icefall.compose.stores import Stores, stores_of
from icefall.config.load import load
from icefall.db.engine import Store, Transaction
from icefall.pchain.model import UtxoKind
from icefall.pchain.store import AMOUNT_BIAS, SQL
from icefall.server.response import Response
from icefall.wire.avm.types import Owners, TransferOutput
from icefall.wire.ids import PLATFORM_CHAIN, id_text
from icefall.wire.pvm.codec import pack_utxo, unpack_utxo
from icefall.wire.text import bech32

ROWS, EVM_TRANSFERS = 1_000_000, 100_000
RECORDING, HRP, PRIMARY = "p-local-1", "local", bytes(32)
STAKER_EVERY = 10
TIMES, PAGE = 60, 10
_PIECE = 20_000


def run() -> None:
    rows = int(os.environ.get("ICEFALL_BENCH_ROWS", ROWS))
    print(f"networks: {rows} P transactions, {rows // STAKER_EVERY} validations and rewards; CPU of a request, no HTTP")
    with TemporaryDirectory() as folder:
        (Path(folder) / "network").mkdir()
        asyncio.run(_measure(Path(folder), rows))


async def _measure(folder: Path, rows: int) -> None:
    owner = await _fill(folder / "network", rows)
    config = config_of(RECORDING, folder / "network")
    network = plain_networks_app(Networks(served_network(config, stores_of(config))))
    with closing(Stores(folder / "data")) as stores:
        stores.access_writer().ensure()
        await fill(stores, min(rows, EVM_TRANSFERS))
    file = folder / "icefall.toml"
    file.write_text(f'[[chain]]\nid = "{CHAIN}"\nrpc = "http://127.0.0.1:1"\n')
    chain = data_app(
        load("data", [f"--data-dir={folder}/data", f"--config-file={file}"], {}, folder).config, with_engine=False
    )
    anyone = (f"/v1/chains/{CHAIN}/addresses/0x{address(at).hex()}/transactions" for at in count(2))
    print(f"  {'list':<30}{'4 us':>10}{'first us':>10}{'of 4':>7}{'last us':>10}{'ratio':>8}")
    for name, first, last in _lists(owner):
        beside, of_first, of_last = await _least_us((chain, anyone), (network, repeat(first)), (network, repeat(last)))
        print(
            f"  {name:<30}{beside:>10.0f}{of_first:>10.0f}{of_first / beside:>7.2f}{of_last:>10.0f}"
            f"{of_last / of_first:>8.2f}",
            flush=True,
        )
    for app in (chain, network):
        await app.close()


async def _least_us(*asked: tuple[App, Iterator[str]]) -> list[float]:
    """The least CPU of each, asked in turns. Endpoint 4 has another target each time: its answers are kept, those about
    the network are not."""
    least = [float("inf")] * len(asked)
    for _ in range(TIMES):
        for at, (app, targets) in enumerate(asked):
            target = next(targets)
            request = LocalRequest("GET", target)
            began = time.process_time_ns()
            answer = await app.respond(request)
            least[at] = min(least[at], (time.process_time_ns() - began) / 1e3)
            assert rows_in(answer) == PAGE, (target, answer.body)
    return least


def rows_in(answer: Response) -> int:
    """The rows of the list that a page holds."""
    assert answer.status == 200, answer.body
    assert isinstance(answer.body, bytes)
    (rows,) = (value for value in msgspec.json.decode(answer.body).values() if isinstance(value, list))
    return len(rows)


def _lists(owner: bytes) -> Iterator[tuple[str, str, str]]:
    """Each list with its first page and with the last one that has copies only."""
    paging, shown = Paging(PageTokens(TOKEN_SECRET)), bech32.encode(HRP, owner)
    written = ((HRP, owner),)
    chain: dict[str, Any] = {"network": "fuji", "blockchain_id": "p-chain"}
    base = "/v1/networks/fuji"

    def both(target: str, route: str, params: Any, cursor: int | bytes) -> tuple[str, str]:
        token = quote(paging.token(route, params, cursor if isinstance(cursor, bytes) else pack_cursor(cursor)))
        return base + target, f"{base}{target}{'&' if '?' in target else '?'}pageToken={token}"

    txs, of = "/blockchains/p-chain/transactions", f"?addresses={shown}"
    yield "transactions", *both(txs, "platformTransactions", ListedTxsParams(**chain), _FIRST.seq + 20)
    mine = ListedTxsParams(**chain, addresses=written)
    yield "transactions of an address", *both(txs + of, "platformTransactions", mine, _FIRST.seq + 20)
    utxos = ChainUtxosParams(**chain, addresses=written)
    places = Places((_FIRST.amount - AMOUNT_BIAS, _FIRST.position + 20))
    yield "UTXOs", *both(f"/blockchains/p-chain/utxos{of}", "platformUtxos", utxos, places.packed())
    validators = NetworkValidatorsParams(network="fuji", subnet_id=PRIMARY)
    target = f"/validators?subnetId={id_text(PRIMARY)}"
    yield "validators", *both(target, "validators", validators, _FIRST.seq + 20 * STAKER_EVERY)
    active = NetworkValidatorsParams(network="fuji", subnet_id=PRIMARY, validation_status="active")
    target += "&validationStatus=active"
    yield "active validators", *both(target, "validators", active, _FIRST.seq + 20 * STAKER_EVERY)
    rewards = PaidRewardsParams(network="fuji", addresses=written)
    yield "rewards", *both(f"/rewards{of}", "paidRewards", rewards, _FIRST.position + 20 * STAKER_EVERY)


# -- rows, straight into the tables ----------------------------------------------------------------------------------


class _First:
    """The numbers of the first copies, and the amount that each has."""

    height = seq = position = amount = 0


_FIRST = _First()


async def _fill(folder: Path, rows: int) -> bytes:
    """Play the recording, then copy one transaction, output and validation of it; returns the owner of the copies."""
    played = Playback(folder, RECORDING)
    await played.start()
    await played.play()
    store = played.store
    at = store.read("select height, next_seq, next_position, time from p_ledger")[0]
    _FIRST.height, _FIRST.seq, _FIRST.position, began = at[0] + 1, at[1], at[2], at[3]
    owner = sha256(b"owner of the copies").digest()[:20]
    for statement, values in _tables(store, owner, began, rows):
        while piece := list(islice(values, _PIECE)):
            await store.write(partial(_put, statement, piece))
    end = {"height": at[0] + rows, "seq": at[1] + rows, "position": at[2] + rows}
    change = "update p_ledger set height = :height, next_seq = :seq, next_position = :position"
    await store.write(lambda tx: tx.run(change, end))
    listed = {"next": end["height"] + 1, "chain_id": PLATFORM_CHAIN}
    await store.write(lambda tx: tx.run("update listed set next = :next where chain_id = :chain_id", listed))
    store.close()
    return owner


def _put(statement: str, rows: Sequence[Any], tx: Transaction) -> None:
    tx.run_many(statement, rows)


def _tables(store: Store, owner: bytes, began: int, rows: int) -> Iterator[tuple[str, Iterator[Any]]]:
    block = store.read("select * from p_block where tx_count = 1 order by height desc limit 1")[0]
    kind, raw = store.read("select type, bytes from p_tx where type = 34 order by length(bytes) limit 1")[0]
    output = store.read("select bytes, asset_id, amount from p_utxo where kind = 0 and state = 0 order by position")[0]
    staker = store.read(
        "select txid, subnet_id, node_id, state, priority, start_time, end_time, weight, potential_reward, shares, "
        "validation_owner, delegation_owner, public_key, proof_of_possession from p_staker "
        "where is_delegator = 0 and state = 1 and length(subnet_id) = 32 order by seq"
    )[0]
    _FIRST.amount = output[2]
    utxo = unpack_utxo(output[0])
    plain = TransferOutput(output[2], Owners(0, 1, (owner,)))
    every, some = range(rows), range(0, rows, STAKER_EVERY)
    height, seq, position = _FIRST.height, _FIRST.seq, _FIRST.position

    def unique(what: str, at: int) -> bytes:
        return sha256(f"{what} {at}".encode()).digest()

    def packed(at: int) -> bytes:
        return pack_utxo(replace(utxo, txid=unique("t", at), output=plain))

    yield (
        SQL.put_block,
        (
            (height + at, unique("b", at), block[2], began + at, 1, *block[5:7], unique("c", at), *block[8:])
            for at in every
        ),
    )
    yield SQL.put_tx, ((seq + at, unique("t", at), height + at, kind, 1, raw) for at in every)
    yield SQL.put_utxo, (
        (position + at, unique("u", at), packed(at), owner, output[1], output[2], 0,
         UtxoKind.PLAIN if at % STAKER_EVERY else UtxoKind.VALIDATOR_REWARD, 0, 0, seq + at, began + at, None, None,
         None if at % STAKER_EVERY else seq + at, None, None, None, None, position + at) for at in every
    )  # fmt: skip
    yield SQL.put_owner, ((owner, 0, position + at, position + at, output[2] - AMOUNT_BIAS) for at in every)
    yield SQL.put_address_tx, ((owner, seq + at) for at in every)
    yield SQL.put_staker, ((unique("t", at), *staker[1:], height + at, seq + at, 0, None, None) for at in some)
    yield SQL.put_reward_of, ((owner, 0, position + at) for at in some)
