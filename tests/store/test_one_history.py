"""Every answer is that of one history, whatever is rolled back and committed between two of its statements.

The two histories of a made-up chain give the IDs of addresses, and the positions of transactions, to different ones.
Before each statement of each endpoint, the store is switched from one history to the other.
"""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.api.made_chain import ANN, AUDIT_SQL, BEN, ID, block, deployed, erc20, erc721, minted
from tests.metrics.synthetic import address
from tests.postgres.citus import citus_nodes
from tests.postgres.server import new_prefix, server_url
from tests.store.statement_table import ENGINES

from icefall.access.page_tokens import NumberTokens, PageTokens
from icefall.api.dialect import INTERFACE, Dialect
from icefall.api.http.assemble import binding, reads_chains, routes_of
from icefall.api.http.paging import NumberPaging, Paging
from icefall.api.http.routes import Route, is_parameter
from icefall.api.http.row import DATA, METRICS, Rest
from icefall.api.metrics.handlers import MetricsClock
from icefall.api.table import rows_of
from icefall.compose.stores import Stores
from icefall.db.engine import Transaction
from icefall.db.postgres_pool import AsyncSessions
from icefall.db.postgres_version import VersionSession
from icefall.db.sqlite import SqliteReader
from icefall.errors import IcefallError
from icefall.evm.deriving.packing import packed
from icefall.evm.model import ERC20, BlockRows
from icefall.evm.packed import ResolvedBlock
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain, TokenInfo
from icefall.evm.reading.model import PageRange
from icefall.evm.reading.one_history import TRIES_MAX, HistoryChanged, in_one_history
from icefall.evm.storing.holders import count_all
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter
from icefall.observe.counters import CallCounters
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall

NEW = [address(500 + number) for number in range(9)]
TOKENS = [address(700), address(701)]
_MOVED = (
    "erc20_transfers", "erc20_deltas", "erc721_transfers", "nft_owners", "erc1155_transfers", "erc1155_deltas",
    "deployments", "code_changed",
)  # fmt: skip


def on_branch(rows: BlockRows, sender: bytes) -> BlockRows:
    """The same transfers in a block of the second history."""
    number = rows.block.number
    other = block(number, sender, ANN, branch=1, parent_branch=int(number > 2))
    return replace(other, **{name: getattr(rows, name) for name in _MOVED})


COMMON = [block(0), erc20(1, ANN, BEN, 5)]
HISTORIES = (
    [
        erc20(2, NEW[0], ANN, 4, TOKENS[0]), minted(block(3, NEW[1], ANN), ANN, 4), deployed(4, NEW[4]),
        erc20(5, NEW[2], ANN, 6, TOKENS[0]),
    ],
    [
        on_branch(erc20(2, NEW[5], ANN, 9, TOKENS[1]), BEN), on_branch(erc721(3, NEW[6], ANN), NEW[7]),
        on_branch(minted(block(4), ANN, 2), NEW[8]), on_branch(deployed(5, NEW[3]), NEW[6]),
        on_branch(erc20(6, NEW[1], ANN, 1, TOKENS[1]), NEW[0]),
    ],
)  # fmt: skip
# What health and progress say depends on the time; prices of a single transaction do not, as its block is old.
TIMED = {
    "/v1/chains/{chainId}/indexing",
    "/v1/health-check",
    "/v2/health-check",
    "/ext/metrics",
    "/v1/chains/{chainId}",
}
ROWS = [
    row
    for listener in (DATA, METRICS)
    for row in rows_of(listener)
    if isinstance(row, Rest) and reads_chains(row) and row.path not in TIMED
    if not (
        row.path.startswith("/v1/") and listener == METRICS and not row.path.startswith("/v1/avg_tps/")
    )  # all alike
]
VALUES = {
    "chainId": ID, "blockId": "3", "tokenId": "0", "address": f"0x{ANN.hex()}", "query": "name",
    "timestamp": "1700000003",
    "txHash": f"0x{HISTORIES[0][1].txs[0].tx_hash.hex()}", "threshold": "0", "pageSize": "50",
}  # fmt: skip
OF_TOKENS = {"tokens/{address}": TOKENS[0], "collections/{address}": address(2000), "contracts/{address}": TOKENS[0]}
Outcome = tuple[int, bytes]


class StateOfBlocks:
    """State that differs from block to block: all numbers follow from the hash."""

    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]:
        return [_number(at)] * len(addresses)

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]:
        return [_number(at).to_bytes(32, "big")] * len(calls)


def _number(at: At) -> int:
    return at if isinstance(at, int) else int.from_bytes(at[:4], "big")


class Scene:
    """The endpoints of a worker on one store, and its indexer."""

    def __init__(self, stores: Stores) -> None:
        self._store = stores.chain_store(ID)
        self._chain_store = ChainStore(self._store, [RollupWriter()])
        self._outside = ThreadPoolExecutor(1)
        info = ChainInfo(ID, "made", TokenInfo("Coin", "COIN", 18))
        self.chain = EvmChain(info, stores.chain_reader(ID), StateOfBlocks())
        self._routes = routes_of_chain(self.chain)
        self._history = 1
        self._statements = 0
        self._switch_before = 0
        self._runner = asyncio.Runner()
        self.run = self._runner.run
        self.in_thread(self._commit(COMMON))
        self.switch()

    def in_thread(self, work: Any) -> None:
        """Next to a loop that runs, and that waits for it."""
        self._outside.submit(asyncio.run, work).result()

    def switch(self) -> None:
        """Replace the blocks of one history by those of the other."""
        self._history = 1 - self._history
        self.in_thread(self._replace(HISTORIES[self._history]))

    async def _replace(self, blocks: list[BlockRows]) -> None:
        await self._chain_store.roll_back(1)
        await self._commit(blocks)

    async def _commit(self, blocks: list[BlockRows]) -> None:
        await self._chain_store.commit([ResolvedBlock(packed(rows), (), ()) for rows in blocks])
        await self._store.write(lambda tx: _enrich(tx, blocks[-1].block.number))
        await count_all(self._store)

    # -- requests ----------------------------------------------------------------------------------------------

    def statement(self) -> None:
        """Switch the history; called before each statement of the reader."""
        if threading.current_thread() is not threading.main_thread():
            return  # of the indexer
        self._statements += 1
        if self._statements == self._switch_before:
            self.switch()

    def answer(self, row: Rest, switch_before: int = 0) -> tuple[Outcome, int]:
        """The answer, and how many statements it took."""
        self._statements, self._switch_before = 0, switch_before
        outcome = self.run(self._answer(row))
        return outcome, self._statements

    async def _answer(self, row: Rest) -> Outcome:
        return await outcome_of(self._routes, row)

    def close(self) -> None:
        self.chain.reader.close()
        self._store.close()
        self._outside.shutdown()
        self._runner.close()


def routes_of_chain(chain: EvmChain) -> dict[str, Route]:
    """The endpoints of a worker that serves one chain."""
    secret = bytes(32)
    services: dict[type, Any] = {
        ChainDirectory: ChainDirectory([chain]),
        Paging: Paging(PageTokens(secret)),
        NumberPaging: NumberPaging(NumberTokens(secret)),
        MetricsClock: MetricsClock(),
        Dialect: INTERFACE,
    }
    counters = CallCounters([row.label for row in ROWS], None)
    return routes_of(list(ROWS), lambda _: True, services, INTERFACE, counters)


async def outcome_of(routes: dict[str, Route], row: Rest) -> Outcome:
    plain = routes[row.path].plain["GET"]
    values, query = target(row)
    try:
        result = await plain.call(plain.bind(values, query))
        return 200, re.sub(rb'"lastRun":\d+', b"", msgspec.json.encode(result))  # the time of the last commit
    except IcefallError as error:
        return error.status, str(error).encode()


def target(row: Rest) -> tuple[tuple[str, ...], str]:
    """The values in the path and the query of a request."""
    own = dict(VALUES)
    for part, contract in OF_TOKENS.items():
        own |= {"address": f"0x{contract.hex()}"} if part in row.path else {}
    binder = binding(row).__self__  # type: ignore[attr-defined]
    known = {param.name: own.get(param.name, row.examples.get(param.name, param.type.example)) for param in binder.all}
    names = [part.strip("{}").partition("}")[0] for part in row.path.split("/") if is_parameter(part.partition(":")[0])]
    asked = [param.name for param in binder.all if not param.in_path and (param.required or param.name == "pageSize")]
    return tuple(known[name] for name in names), "&".join(f"{name}={known[name]}" for name in asked)


def _enrich(tx: Transaction, last: int) -> None:
    """Give each token a name, decimals and a price that follow from its address."""
    for token, of in tx.rows("select t.token, a.address from token t join address a on a.id = t.token"):
        named = {"token": token, "name": f"name {of.hex()}", "decimals": of[-1] % 19}
        tx.run("update token set name = :name, symbol = :name, decimals = :decimals where token = :token", named)
        price = {"address": of, "value": str(1 + of[-1])}
        tx.run(
            "insert into price (token_address, currency, day, value) values (:address, 'usd', -1, :value) "
            "on conflict (token_address, currency, day) do nothing",
            price,
        )
    tx.run(AUDIT_SQL.put_checkpoint, {"block": last, "credit": 0})


@pytest.fixture(scope="module", params=ENGINES)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    engine: str = request.param
    url = "" if engine == "sqlite" else server_url() if engine == "postgres" else citus_nodes()[0]
    folder: Path = tmp_path_factory.mktemp("data")
    with (
        pytest.MonkeyPatch.context() as patch,
        closing(Stores(folder, url, new_prefix())) as stores,
        closing(Scene(stores)) as made,
    ):
        for owner, name in ((SqliteReader, "read"), (AsyncSessions, "query"), (VersionSession, "send")):
            patch.setattr(owner, name, noted(getattr(owner, name), made.statement))
        yield made


def noted(method: Callable[..., Any], note: Callable[[], None]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        note()
        return method(*args)

    return run


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
def test_answers_are_of_one_history(scene: Scene, row: Rest) -> None:
    answers = []
    for _ in HISTORIES:
        scene.answer(row)  # opens the store, and learns of the switch
        answers.append(scene.answer(row))
        assert scene.answer(row)[0] == answers[-1][0]
        scene.switch()
    outcomes = [outcome for outcome, _ in answers]
    assert {status for status, _ in outcomes} <= {200, 404, 503}  # 503: raw logs, which only an upstream has
    assert not any(b"rolled back" in body for _, body in outcomes)
    for before in range(2, max(count for _, count in answers) + 2):
        found, _ = scene.answer(row, switch_before=before)
        assert found in outcomes


def test_most_answers_differ_between_the_histories(scene: Scene) -> None:
    """Else the test above would show nothing."""
    differ = 0
    for row in ROWS:
        first, _ = scene.answer(row)
        scene.switch()
        differ += scene.answer(row)[0] != first
    assert differ >= 0.6 * len(ROWS)


def test_a_token_is_not_shown_with_the_name_of_another(scene: Scene) -> None:
    """The ID of a row is that of another token when its name is read."""
    chain, switches_left = scene.chain, 0

    async def name_of_newest() -> tuple[bytes, str]:
        nonlocal switches_left
        (row, *_) = await chain.lists.transfers_of(ERC20, ANN, PageRange(), 1)
        if switches_left:
            switches_left -= 1
            scene.switch()
        details = (await chain.enriched.answer_tokens([row.token_ref], "usd")).details[row.token_ref]
        assert details is not None
        return row.token, details.name

    for switches in (0, 1, 2, TRIES_MAX - 1):
        switches_left = switches
        token, name = scene.run(in_one_history(name_of_newest))
        assert name == f"name {token.hex()}"
    switches_left = TRIES_MAX
    with pytest.raises(HistoryChanged, match="rolled back while they were read"):
        scene.run(in_one_history(name_of_newest))
    switches_left = 1
    token, name = scene.run(name_of_newest())  # as it was
    assert name != f"name {token.hex()}"
