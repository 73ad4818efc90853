"""Every answer is that of one history, whatever is rolled back and committed between two of its statements.

The two histories of a made-up chain give the IDs of addresses, and the positions of transactions, to different ones.
Before each statement of each endpoint, of each series and of the live stream, the store is switched from one history
to the other. On a server, where that takes 300 statements, this is done before two statements of each request, and on
Citus before one; ICEFALL_FUZZ_SWITCHES sets another number. The clock stands still.
"""

import asyncio
import os
import re
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import pytest
from msgspec.structs import replace
from tests.api.made_chain import ANN, AUDIT_SQL, BEN, ID, block, deployed, erc20, erc721, minted
from tests.messages.logs import MESSENGER, Log, Sample, raised, sent
from tests.metrics.synthetic import address
from tests.postgres.citus import citus_nodes
from tests.postgres.server import new_prefix, server_url
from tests.store.statement_table import ENGINES

from icefall.access.page_tokens import NumberTokens, PageTokens
from icefall.access.store import AccessReader
from icefall.api.data.handlers import chains, stream, transactions
from icefall.api.dialect import INTERFACE, Dialect
from icefall.api.http import service
from icefall.api.http.assemble import binding, reads_chains, routes_of
from icefall.api.http.paging import NumberPaging, Paging
from icefall.api.http.routes import Route, is_parameter
from icefall.api.http.row import DATA, METRICS, Rest
from icefall.api.http.service import CounterSource
from icefall.api.http.structs import NoParams
from icefall.api.metrics.handlers import MetricsClock
from icefall.api.networks.network import Networks
from icefall.api.table import rows_of
from icefall.compose.stores import Stores
from icefall.db.engine import Transaction
from icefall.db.postgres_pool import AsyncSessions
from icefall.db.postgres_version import VersionSession
from icefall.db.sqlite import SqliteReader
from icefall.errors import IcefallError
from icefall.evm.deriving.messages import messenger_event
from icefall.evm.deriving.packing import packed
from icefall.evm.enriching.pictures import Pictures
from icefall.evm.model import ERC20, BlockRows
from icefall.evm.packed import ResolvedBlock
from icefall.evm.reading import live
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain, TokenInfo
from icefall.evm.reading.model import PageRange
from icefall.evm.reading.one_history import TRIES_MAX, HistoryChanged, in_one_history
from icefall.evm.status import COUNTED, ChainStatus, encode_status
from icefall.evm.storing.holders import count_all
from icefall.evm.storing.store import ChainStore
from icefall.evm.storing.writing import SQL as WRITES_SQL
from icefall.metrics.catalogue import METRICS as METRICS_TABLE
from icefall.metrics.store import RollupWriter
from icefall.observe.counters import CallCounters
from icefall.observe.program import ProcessReader
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall
from icefall.wire.evm.types import EventLog

T = TypeVar("T")
NEW = [address(500 + number) for number in range(9)]
TOKENS = [address(700), address(701)]
_MOVED = (
    "erc20_transfers", "erc20_deltas", "erc721_transfers", "nft_owners", "erc1155_transfers", "erc1155_deltas",
    "deployments", "code_changed", "messenger_events",
)  # fmt: skip


def on_branch(rows: BlockRows, sender: bytes) -> BlockRows:
    """The same transfers in a block of the second history."""
    number = rows.block.number
    other = block(number, sender, ANN, branch=1, parent_branch=int(number > 2))
    return replace(other, **{name: getattr(rows, name) for name in _MOVED})


def messaged(rows: BlockRows, *found: Log) -> BlockRows:
    """A block that has logs of a messenger."""
    placed = [EventLog(MESSENGER, *log, 100 + at) for at, log in enumerate(found)]
    return replace(rows, messenger_events=tuple(filter(None, (messenger_event(0, log) for log in placed))))


MESSAGE = Sample(bytes([1] * 32), bytes([2] * 32), 1, ANN, BEN, b"one", fee_token=TOKENS[0], fee=7)
OTHER = MESSAGE._replace(nonce=2, data=b"other")
COMMON = [block(0), erc20(1, ANN, BEN, 5)]
HISTORIES = (
    [
        messaged(erc20(2, NEW[0], ANN, 4, TOKENS[0]), sent(MESSAGE)), minted(block(3, NEW[1], ANN), ANN, 4),
        deployed(4, NEW[4]), erc20(5, NEW[2], ANN, 6, TOKENS[0]),
    ],
    [
        on_branch(erc20(2, NEW[5], ANN, 9, TOKENS[1]), BEN),
        on_branch(messaged(erc721(3, NEW[6], ANN), sent(OTHER), sent(MESSAGE), raised(MESSAGE, 9)), NEW[7]),
        on_branch(minted(block(4), ANN, 2), NEW[8]), on_branch(deployed(5, NEW[3]), NEW[6]),
        on_branch(erc20(6, NEW[1], ANN, 1, TOKENS[1]), NEW[0]),
    ],
)  # fmt: skip
# Every path that is answered from the store of a chain; the same path may be served by two listeners. ABIs lie in the
# access store, which has one history.
ROWS = list(
    {
        row.path: row
        for listener in (DATA, METRICS)
        for row in rows_of(listener)
        if isinstance(row, Rest) and (reads_chains(row) or row.is_stream) and not row.path.endswith("/abi")
    }.values()
)
STREAM = next(row for row in ROWS if row.is_stream)
NOW = 1_700_000_020.0  # just behind the blocks: what tells of the present sees them
VALUES = {
    "chainId": ID, "blockId": "3", "tokenId": "0", "address": f"0x{ANN.hex()}", "query": "name",
    "timestamp": "1700000003", "messageId": MESSAGE.id.hex(),
    "txHash": f"0x{HISTORIES[0][1].txs[0].tx_hash.hex()}", "threshold": "0", "pageSize": "50",
}  # fmt: skip
OF_TOKENS = {"tokens/{address}": TOKENS[0], "collections/{address}": address(2000), "contracts/{address}": TOKENS[0]}
Outcome = tuple[int, bytes]
USUAL = {"postgres": 2, "citus": 1}
SWITCHES = {engine: int(os.environ.get("ICEFALL_FUZZ_SWITCHES", usual)) for engine, usual in USUAL.items()}


class Case(NamedTuple):
    """A request: its row, and values of parameters besides those that all requests have."""

    row: Rest
    own: dict[str, str]

    @property
    def label(self) -> str:
        return " ".join([self.row.label, *self.own.values()])


def cases_of(row: Rest) -> Iterator[Case]:
    """The requests of a row: one for each series, where it has several."""
    if "metrics/{metric}" in row.path:
        yield from (Case(row, {"metric": metric.camel_name}) for metric in METRICS_TABLE)
        yield from (Case(row, {"metric": "txCount", "timeInterval": span}) for span in ("hour", "week", "month"))
    elif "teleporterMetrics" in row.path:
        yield Case(row, {"metric": "teleporterTotalTxnCount"})
    elif "icm/timeseries" in row.path:
        yield from (Case(row, {"timeInterval": span, "groupBy": "destBlockchainId"}) for span in ("hour", "month"))
    elif "{metric}" in row.path:
        yield from (Case(row, {"metric": metric.camel_name}) for metric in METRICS_TABLE if metric.has_rolling)
    else:
        yield Case(row, {})


CASES = [case for row in ROWS if not row.is_stream for case in cases_of(row)]


class FixedTime:
    """The module `time` for handlers."""

    @staticmethod
    def time() -> float:
        return NOW


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

    def __init__(self, stores: Stores, switches_max: int | None = None) -> None:
        self._switches_max = switches_max
        self._store = stores.chain_store(ID)
        self._chain_store = ChainStore(self._store, [RollupWriter(FixedTime.time)])
        stores.access_writer().ensure()
        self._access = stores.access_reader()
        self._outside = ThreadPoolExecutor(1)
        info = ChainInfo(ID, "made", TokenInfo("Coin", "COIN", 18))
        reader, standbys = stores.chain_reader(ID), stores.chain_standbys(ID)
        self.chain = EvmChain(info, reader, StateOfBlocks(), standbys=standbys)
        self._data_dir = stores.data_dir
        self._routes = self.routes_of(self.chain)
        self._history = 1
        self._statements = 0
        self._switch_before = 0
        self._runner = asyncio.Runner()
        self.run = self._runner.run
        self.in_thread(self._commit(COMMON))
        self.switch()

    def routes_of(self, chain: EvmChain) -> dict[str, Route]:
        """The endpoints of a worker that serves this chain."""
        secret = bytes(32)
        services: dict[type, Any] = {
            ChainDirectory: ChainDirectory([chain]),
            Networks: Networks(None),
            Paging: Paging(PageTokens(secret)),
            NumberPaging: NumberPaging(NumberTokens(secret)),
            MetricsClock: MetricsClock(FixedTime.time),
            Dialect: INTERFACE,
            AccessReader: AccessReader(self._access),
            Pictures: Pictures(self._data_dir / "pictures", 0, ""),
            CounterSource: CounterSource(
                self._data_dir / "counters", [], "0", DATA, ProcessReader(0), data_dir=self._data_dir / "none"
            ),
        }
        counters = CallCounters([row.label for row in ROWS], None)
        return routes_of(list(ROWS), lambda _: True, services, INTERFACE, counters)

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

    def switches(self, statements: int, turn: int) -> list[int]:
        """The statements of a request before which the history is to change: where not before all, before the one in
        the middle, with which most answers that are not checked are mixed from both, and others that `turn` chooses."""
        every, most = list(range(2, statements + 2)), self._switches_max
        if most is None or len(every[:-1]) <= most:  # the last of them only follows where blocks were rolled back
            return every
        middle = every[(len(every) - 2) // 2]
        others = [one for one in every[:-1] if one != middle]
        spread = (turn + place * len(others) // (most - 1) for place in range(most - 1))
        return [middle, *(others[place % len(others)] for place in spread)]

    def answer(self, case: Case, switch_before: int = 0) -> tuple[Outcome, int]:
        """The answer, and how many statements it took."""
        return self.counted(self.outcome(self._routes, case), switch_before)

    def counted(self, work: Coroutine[Any, Any, T], switch_before: int) -> tuple[T, int]:
        self._statements, self._switch_before = 0, switch_before
        outcome = self.run(work)
        return outcome, self._statements

    @staticmethod
    async def outcome(routes: dict[str, Route], case: Case) -> Outcome:
        plain = routes[case.row.path].plain[case.row.verb]
        values, query = target(case)
        try:
            result = await plain.call(plain.bind(values, query))
        except IcefallError as error:
            return error.status, str(error).encode()
        if case.row.path == "/ext/metrics":  # the rest is about processes
            return 200, "".join(re.findall(r"^icefall_chain_.*\n", result, re.MULTILINE)).encode()
        return 200, msgspec.json.encode(result)

    async def events(self, query: str) -> list[bytes]:
        """What a stream that begins with this request sends first: the news of one block, and the ID after it."""
        plain = self._routes[STREAM.path].plain["GET"]
        sent: list[bytes] = []
        async with aclosing((await plain.call(plain.bind((), query))).pieces()) as pieces:
            async for piece in pieces:
                sent.append(piece)
                if piece.startswith((b"id:", b":")):  # or there was nothing new, and the stream is kept open
                    break
        return sent

    def close(self) -> None:
        self.chain.reader.close()
        self._access.close()
        self._store.close()
        self._outside.shutdown()
        self._runner.close()


def target(case: Case) -> tuple[tuple[str, ...], str]:
    """The values in the path and the query of a request."""
    row, own = case.row, VALUES | case.own
    if row.params is NoParams:
        return (), ""
    for part, contract in OF_TOKENS.items():
        own |= {"address": f"0x{contract.hex()}"} if part in row.path else {}
    binder = binding(row).__self__  # type: ignore[attr-defined]
    known = {param.name: own.get(param.name, row.examples.get(param.name, param.type.example)) for param in binder.all}
    names = [part.strip("{}").partition("}")[0] for part in row.path.split("/") if is_parameter(part.partition(":")[0])]
    wanted = {"pageSize", *case.own}
    asked = [param.name for param in binder.all if not param.in_path and (param.required or param.name in wanted)]
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
    tx.run(AUDIT_SQL.put_checkpoint, {"block": last, "credit": 0, "dropped_from": None})
    counts = dict.fromkeys(COUNTED, last)
    status = ChainStatus(NOW, True, NOW, progress_at=NOW - last, head=last, audited_to=last, counts=counts)
    tx.run(WRITES_SQL.put_meta, {"name": "status", "value": encode_status(status)})


@pytest.fixture(scope="module", params=ENGINES)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    engine: str = request.param
    url = "" if engine == "sqlite" else server_url() if engine == "postgres" else citus_nodes()[0]
    folder: Path = tmp_path_factory.mktemp("data")
    with (
        pytest.MonkeyPatch.context() as patch,
        closing(Stores(folder, url, new_prefix())) as stores,
        closing(Scene(stores, SWITCHES.get(engine))) as made,
    ):
        for owner, name in ((SqliteReader, "read"), (AsyncSessions, "query"), (VersionSession, "send")):
            patch.setattr(owner, name, noted(getattr(owner, name), made.statement))
        for module in (chains, service, transactions):
            patch.setattr(module, "time", FixedTime)
        patch.setattr(stream, "POLL_S", 0)
        patch.setattr(stream, "KEEP_ALIVE_S", 0)
        yield made


def noted(method: Callable[..., Any], note: Callable[[], None]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        note()
        return method(*args)

    return run


Answers = dict[str, tuple[set[Outcome], int]]  # by the label of a request: those of both histories, and statements


@pytest.fixture(scope="module")
def answers(scene: Scene) -> Answers:
    """The answers of each history, and the most statements that one takes."""
    found: Answers = {case.label: (set(), 0) for case in CASES}
    for _ in HISTORIES:
        for case in CASES:
            first, _ = scene.answer(case)  # opens the store, or learns of the switch
            outcome, count = scene.answer(case)
            assert first == outcome
            outcomes, most = found[case.label]
            found[case.label] = outcomes | {outcome}, max(count, most)
        scene.switch()
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_answers_are_of_one_history(scene: Scene, answers: Answers, case: Case) -> None:
    outcomes, statements = answers[case.label]
    assert {status for status, _ in outcomes} <= {200, 404, 503}  # 503: raw logs, which only an upstream has
    assert not any(b"rolled back" in body for _, body in outcomes)
    for before in scene.switches(statements, turn=CASES.index(case)):
        found, _ = scene.answer(case, switch_before=before)
        assert found in outcomes


def test_most_answers_differ_between_the_histories(answers: Answers) -> None:
    """Else the test above would show nothing."""
    assert sum(len(outcomes) == len(HISTORIES) for outcomes, _ in answers.values()) >= 0.6 * len(CASES)


@pytest.mark.parametrize(
    "address", ["", f"&address=0x{ANN.hex()}&types=blocks,transactions,transfers"], ids=["all", "of an address"]
)
def test_the_news_of_a_stream_are_of_one_history(scene: Scene, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins at the newest block, behind a block that both histories have, or behind one that only one has. No
    stream is given the newest block that another has read: the histories change faster than that."""
    monkeypatch.setattr(live, "TIP_AGE_S", -1.0)
    ids = []
    for _ in HISTORIES:
        scene.switch()
        (found,) = re.findall(rb"^id: ?(.*)", scene.run(scene.events(f"chainId={ID}"))[-1])
        ids.append(found.decode())
    common = f"{ID}:1:{COMMON[1].block.block_hash.hex()[:8]}"
    queries = [f"chainId={ID}{address}&lastEventId={begin}" for begin in ("", common, *ids)]
    outcomes: list[list[list[bytes]]] = [[] for _ in queries]
    most = [0 for _ in queries]
    for _ in HISTORIES:
        for at, query in enumerate(queries):
            scene.run(scene.events(query))
            sent, count = scene.counted(scene.events(query), 0)
            outcomes[at].append(sent)
            most[at] = max(count, most[at])
        scene.switch()
    for turn, (query, expected, statements) in enumerate(zip(queries, outcomes, most, strict=True)):
        assert expected[0] != expected[1]
        for before in scene.switches(statements, turn):
            sent, _ = scene.counted(scene.events(query), before)
            assert sent in expected


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
