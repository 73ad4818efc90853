"""Recorded chains as the chain data interface serves them: indexed and enriched once for all test processes.

Prices and reputations are made up: the native token and the first ERC-20 token of a chain have prices, its second token
is called malicious and its third benign.
"""

import asyncio
import datetime
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

import msgspec
from tests.evm.indexed import MESSENGER, NO_RAW, indexing
from tests.evm.recordings import derived
from tests.made_once import made_once
from tests.postgres.server import server_url
from tests.server import Reply, Server, serving, store_settings
from tests.upstream.evm_recording import recording
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread

from icefall.access.page_tokens import PageTokens
from icefall.access.store import AccessReader, page_token_secret
from icefall.api.data.endpoints import CHAIN_DATA_ENDPOINTS
from icefall.api.describing.openapi import document
from icefall.api.describing.site import Pages
from icefall.api.dialect import INTERFACE, Dialect
from icefall.api.http.app import App
from icefall.api.http.asgi import AsgiApp
from icefall.api.http.assemble import bases_of, counter_labels, routes_of
from icefall.api.http.guards import Hosts, Origins
from icefall.api.http.paging import Paging
from icefall.api.http.routes import Routes
from icefall.api.http.row import DATA, Rest, Rpc
from icefall.api.table import rows_of
from icefall.cli import main
from icefall.compose.stores import Stores
from icefall.db.engine import Reader
from icefall.db.sqlite import SqliteStore
from icefall.evm.enriching.loops import EnrichSettings, rounds_of
from icefall.evm.enriching.nft_loop import NftSettings
from icefall.evm.enriching.nft_outcomes import EnrichCounts
from icefall.evm.enriching.pictures import Pictures
from icefall.evm.enriching.selectors import method_names
from icefall.evm.reading.balances import StateReader
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain, TokenInfo
from icefall.evm.reading.state import RequestState
from icefall.evm.status import IndexerCalls
from icefall.evm.storing.holders import count_some
from icefall.evm.storing.store import PACKAGE, store_path
from icefall.observe.counters import CallCounters
from icefall.observe.log import quiet
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall, FoundLog
from icefall.upstream.meter import Clock
from icefall.wire.evm.block import decode_receipts
from icefall.wire.evm.decode import decode_tx_calls
from icefall.wire.evm.geth_format import GETH
from icefall.wire.evm.types import Calls, Receipt
from icefall.wire.ids import id_text

NATIVE = TokenInfo("Native token", "NATIVE", 18)
CHAINS = ("geth-1", "cchain-1", "anvil-1", "berlin-1")
NATIVE_PRICES = {"usd": "12.5", "eur": "11"}
TOKEN_PRICE = "0.000012345678901234567890"
DAY_PRICE = "9.87654321"


def chain_id(chain: str) -> str:
    """The chain ID of a recording; another chain is named by its ID."""
    return chain if chain.isdigit() else str(recording(chain).meta["chainId"])


PEER = "5RSRQmRgdo1Jng8kQ28rdcsz863ciio9H5o3cgZy5Zj81ANnk"  # a chain that recorded messages go to and come from


def blockchain_id(chain: str) -> str:
    return PEER if chain == "geth-1" else id_text(chain.encode().ljust(32, b"\1"))


def erc20_tokens(chain: str) -> list[bytes]:
    """In the order in which the chain first moves them."""
    return list(dict.fromkeys(move.token for one in derived(chain) for move in one.rows.erc20_transfers))


def _lists(chain: str, folder: Path) -> EnrichSettings:
    first, second, third = (f"0x{token.hex()}" for token in erc20_tokens(chain)[:3])
    days = {one.rows.block.time // 86400 for one in derived(chain)}
    epoch = datetime.date(1970, 1, 1)
    daily = {str(epoch + datetime.timedelta(days=day)): DAY_PRICE for day in days if 0 < day < 100_000}
    usd = {"native": {"current": NATIVE_PRICES["usd"], "daily": daily}, first: {"current": TOKEN_PRICE}}
    prices = {"currencies": {"usd": usd, "eur": {"native": {"current": NATIVE_PRICES["eur"]}}}}
    (folder / f"{chain}.prices.json").write_text(json.dumps(prices))
    (folder / f"{chain}.words.json").write_text(json.dumps({"Malicious": [second], "Benign": [third]}))
    return EnrichSettings(
        nfts=NftSettings(web=False),
        prices=str(folder / f"{chain}.prices.json"),
        reputation=str(folder / f"{chain}.words.json"),
    )


async def _index(chain: str, path: Path) -> None:
    replay, counts = EvmReplay(chain), EnrichCounts()
    async with indexing(path, replay, kept=NO_RAW) as scene:
        await scene.follower.run()
        store = SqliteStore(path, PACKAGE)
        settings = _lists(chain, path.parent)
        rounds = rounds_of(store, scene.upstream, settings, scene.log, counts=counts, clock=Clock())
        for one in rounds.values():
            while await one():
                pass
        while await count_some(store):
            pass
        store.close()


def indexed(chain: str) -> Path:
    """The file of a chain."""
    return made_once(f"{chain}-enriched.sqlite", lambda path: asyncio.run(_index(chain, path)))


class Served(NamedTuple):
    """The program and the upstreams it asks."""

    server: Server
    replays: dict[str, EvmReplay]

    def get(self, target: str) -> Reply:
        return self.server.ask("GET", target, listener="data")

    def result(self, target: str) -> Any:
        reply = self.get(target)
        assert reply.status == 200, (target, reply)
        return reply.json()


def _described(chain: str, url: str) -> str:
    """A [[chain]] of the config file. One has everything that can be configured, the others nothing."""
    shown = f'[[chain]]\nid = "{chain_id(chain)}"\nrpc = "{url}"\n'
    if chain == "geth-1":
        shown += f"""name = "Geth"
aliases = ["geth", "dev-chain"]
description = "A recorded chain."
blockchain_id = "{blockchain_id(chain)}"
subnet_id = "{blockchain_id("subnet")}"
vm_id = "{blockchain_id("vm")}"
token = {{ name = "Ether", symbol = "ETH", decimals = 18, logo_uri = "https://e.example/l", description = "Gas." }}
explorer_url = "https://explorer.example"
public_rpc_url = "https://rpc.example"
ws_url = "wss://ws.example"
logo = "https://e.example/logo.png"
testnet = true
private = true
features = ["nftIndexing", "teleporter"]
multicall = "0xca11bde05977b3631167028862be2a173976ca11"
teleporter = "0x{MESSENGER.hex()}"
"""
    return shown


def put_chains(directory: Path, urls: Mapping[str, str]) -> None:
    """A data directory with these chains in it, and the file that tells of them."""
    directory.mkdir(parents=True, exist_ok=True)
    for chain in urls:
        path = store_path(directory / "data", chain_id(chain))
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(indexed(chain), path)
    (directory / "icefall.toml").write_text("\n".join(_described(*one) for one in urls.items()))


def loaded(chain: str) -> EvmReplay:
    """An upstream that has read its recording already: that may take longer than a request waits for an answer."""
    replay = EvmReplay(chain)
    assert replay.blocks
    assert replay.state
    return replay


@contextmanager
def data_server(directory: Path, *settings: str, chains: tuple[str, ...] = CHAINS, store: str = "") -> Iterator[Served]:
    """The real program, with an upstream for each chain. `store`: "postgres" copies the chains there first."""
    with ExitStack() as stack:
        replays = {chain: stack.enter_context(in_thread(loaded(chain))) for chain in chains}
        put_chains(directory, {chain: replay.url for chain, replay in replays.items()})
        file = f"--config-file={directory / 'icefall.toml'}"
        if store:
            _, prefix = store_settings(directory / "data")
            assert main(["copy", str(directory / "data"), server_url(), prefix]) == 0
            shutil.rmtree(directory / "data")
        yield Served(stack.enter_context(serving("data", directory, file, *settings, store=store)), replays)


class Zeros:
    """A state without any balances and owners."""

    async def balances(self, addresses: Sequence[bytes], _: At) -> list[int]:
        return [0 for _ in addresses]

    async def answers(self, calls: Sequence[ContractCall], _: At) -> list[bytes | Reverted]:
        return [bytes(32) for _ in calls]


class RecordedRaw:
    """Logs and calls as they were recorded, without a server."""

    def __init__(self, chain: str) -> None:
        self._chain = chain

    @cached_property
    def _replay(self) -> EvmReplay:
        return EvmReplay(self._chain)

    async def receipt(self, tx_hash: bytes, _: At) -> Receipt:
        raw = self._replay.result("eth_getTransactionReceipt", [f"0x{tx_hash.hex()}"])
        (found,) = decode_receipts(b"[" + raw + b"]") or ()
        return found

    async def calls(self, tx_hash: bytes, block_hash: bytes) -> Calls:
        wanted = [f"0x{tx_hash.hex()}", {"tracer": "callTracer"}]
        return decode_tx_calls(self._replay.result("debug_traceTransaction", wanted), GETH)

    async def logs(self, *_: object) -> list[FoundLog]:
        return []

    async def transaction(self, *_: object) -> None:
        return None


class InProcess:
    """The app of a worker in this process, on a loop of its own, called like the program.

    A chain whose upstream is "" reads its state from `state`, else from one that knows of nothing but zeros."""

    def __init__(
        self,
        directory: Path,
        urls: Mapping[str, str],
        dialect: Dialect = INTERFACE,
        state: StateReader | None = None,
        stores: Stores | None = None,
    ) -> None:
        """`stores`: those of the chains, where they are not in the directory."""
        Stores(directory / "data").access_writer().ensure()
        self._access = Stores(directory / "data").access_reader()
        self._states = {chain: RequestState([url], int(chain_id(chain))) for chain, url in urls.items() if url}
        infos = {chain: ChainInfo(chain_id(chain), chain, NATIVE, aliases=(chain,)) for chain in urls}
        folder, names = directory / "data", method_names()
        self._chains = [
            EvmChain(
                info,
                (stores or Stores(folder)).chain_reader(info.id),
                self._states.get(chain, state or Zeros()),
                names,
                self._states.get(chain, RecordedRaw(chain)),
            )
            for chain, info in infos.items()
        ]
        rows: list[Rest | Rpc] = [*CHAIN_DATA_ENDPOINTS, *(row for row in rows_of(DATA) if row.path == "/openapi.json")]
        self.document = document(DATA, rows, "0")
        self.paging = Paging(PageTokens(page_token_secret(self._access)))
        services: dict[type, Any] = {
            AccessReader: AccessReader(self._access),
            IndexerCalls: IndexerCalls(directory / "data"),
            ChainDirectory: ChainDirectory(self._chains),
            Dialect: dialect,
            Pages: Pages(msgspec.json.encode(self.document), ""),
            Paging: self.paging,
            Pictures: Pictures(directory / "pictures", 0, ""),
        }
        meters = CallCounters(counter_labels(rows), None)
        paths = routes_of(rows, lambda _: True, services, dialect, meters)
        routes = Routes(paths, bases_of(paths), None, full=True)
        app = App(DATA, routes, dialect, Hosts(["*"]), Origins(["*"], ()), meters, quiet(), [], 5.0)
        self.app = AsgiApp(app)
        self._runner = asyncio.Runner()
        self.run = self._runner.run

    def __enter__(self) -> "InProcess":
        return self

    def __exit__(self, *_: object) -> None:
        for state in self._states.values():
            self.run(state.close())
        for chain in self._chains:
            chain.reader.close()
        self._access.close()
        self._runner.close()

    async def ask(self, target: str, verb: str = "GET") -> Reply:
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": verb,
            "path": unquote(path, errors="replace"),
            "query_string": query.encode("utf-8"),
            "headers": [(b"host", b"127.0.0.1")],
            "client": ("127.0.0.1", 1234),
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        start, body = sent
        shown = [(name.decode(), value.decode("latin-1")) for name, value in start["headers"]]
        return Reply(start["status"], shown, body["body"])

    @property
    def reader(self) -> Reader:
        """Of the first chain's store."""
        return self._chains[0].reader

    def get(self, target: str, verb: str = "GET") -> Reply:
        return self.run(self.ask(target, verb))

    def result(self, target: str) -> Any:
        reply = self.get(target)
        assert reply.status == 200, (target, reply)
        return reply.json()


class Asked(Protocol):
    def result(self, target: str) -> Any: ...


def walked(served: Asked, target: str, key: str, size: int = 100) -> list[Any]:
    """All pages of a list."""
    found: list[Any] = []
    ask = f"{target}{'&' if '?' in target else '?'}pageSize={size}"
    token = ""
    while True:
        page = served.result(ask + (f"&pageToken={token}" if token else ""))
        assert len(page[key]) <= size
        found += page[key]
        token = page.get("nextPageToken", "")
        if not token:
            return found
