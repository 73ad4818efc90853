"""A recorded P-Chain replayed block by block into a real store, and asked in process as the recorded node was."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.wire.platform_vectors import p_rows
from tests.wire.wire_vectors import VECTORS

from icefall.api.http.app import App
from icefall.api.http.asgi import AsgiApp
from icefall.compose.node_setup import configured_network, node_logs
from icefall.compose.worker import build_app
from icefall.config.load import load
from icefall.config.settings import Config
from icefall.db.sqlite import SqliteStore
from icefall.node.identity import ensure_identity
from icefall.node.store import PACKAGE, StartRequest, admit, store_path
from icefall.node.sync.verify import VerifiedContainer
from icefall.observe.log import quiet
from icefall.primary.chains import foreign_chains
from icefall.primary.network import Network
from icefall.primary.platform import executed_chains
from icefall.wire.avm.codec import pack_utxo, unpack_block, unpack_tx
from icefall.wire.avm.types import Tx
from icefall.wire.avm.utxos import exported
from icefall.wire.container.coreth import unpack_coreth_block
from icefall.wire.container.platform import block_in_container, unpack_platform_block
from icefall.wire.ids import PLATFORM_CHAIN, id_from_text, input_id
from icefall.wire.text import checksum_hex
from icefall.xchain.model import NewUtxo, owners_of
from icefall.xchain.store import put_atomic

ARGUMENTS = {
    "p-local-1": ("--network-id=local", "--genesis-file=genesis-local.json"),
    "p-forks-1": ("--network-id=424242", "--genesis-file=genesis.json", "--upgrade-file=upgrade.json"),
}


class Accepted(NamedTuple):
    """A container as the recorded node accepted it. `kind` is `tx` for a transaction of X from before its blocks."""

    chain: str
    kind: str
    number: int
    container_id: bytes
    raw: bytes


def accepted(recording: str) -> list[Accepted]:
    """All containers in the order of acceptance."""
    rows = p_rows(recording, "containers")
    rows.sort(key=lambda row: datetime.fromisoformat(row["timestamp"]))
    return [
        Accepted(
            row["chain"],
            row["kind"],
            int(row["index"]),
            id_from_text(row["id"]),
            checksum_hex.decode(row["bytes"]),
        )
        for row in rows
    ]


def config_of(recording: str, directory: Path, *more: str) -> Config:
    folder = VECTORS / recording
    given = [
        f"{name}={folder / value}" if name.endswith("-file") else argument
        for argument in ARGUMENTS[recording]
        for name, _, value in [argument.partition("=")]
    ]
    arguments = [*given, f"--data-dir={directory}", "--dialect=live", "--index-enabled=true", *more]
    return load("node", arguments, {}, directory).config


class Replay:
    """A data directory to which one recorded container after another is added, and the node that serves it."""

    def __init__(self, recording: str, directory: Path, *more: str) -> None:
        self.config = config_of(recording, directory, *more)
        (directory / "run").mkdir(parents=True)
        self.network: Network = configured_network(self.config, 0)
        node_logs(self.config, "engine", self.network, create=True)
        ensure_identity(directory / "staking")
        changes = directory / "run" / "node-changes"  # as the engine tells workers of commits
        self.store = SqliteStore(store_path(directory), PACKAGE, changes=changes)
        foreign = foreign_chains(self.network, self.store, indexed=True)
        self._chains, platform = executed_chains(self.network, self.store, foreign, quiet(), lambda: 0.0)
        assert platform is not None
        self.platform = platform
        self._containers = iter(accepted(recording))
        self._next: Accepted | None = next(self._containers)

    async def start(self) -> None:
        request = StartRequest(self.config.network_id, False, True, False)
        await self.store.write(lambda tx: admit(tx, request, 0))
        await self.platform.start()

    async def advance(self, height: int) -> None:
        """Accept containers up to the block of P at a height."""
        while self._next is not None and self.platform.height < height:
            await self._accept_next()

    async def advance_others(self) -> None:
        """Accept what X and C accepted before the next block of P."""
        while self._next is not None and self._next.chain != "P":
            await self._accept_next()

    async def finish(self) -> None:
        """Accept all that is left, of X and C too."""
        while self._next is not None:
            await self._accept_next()

    async def _accept_next(self) -> None:
        one = self._next
        assert one is not None
        self._next = next(self._containers, None)
        if one.chain == "X":
            exports = _exports_of_x(one)
            x_id = self.network.genesis.x_chain_id
            await self.store.write(lambda tx: put_atomic(tx, PLATFORM_CHAIN, x_id, exports))
        elif one.kind == "block":
            await self._chains[one.chain].accept([self._verified(one)])

    def _verified(self, one: Accepted) -> VerifiedContainer:
        inner = block_in_container(one.raw)
        block = (unpack_platform_block if one.chain == "P" else unpack_coreth_block)(inner)
        exports = tuple(block.exports_to(self.network.genesis.x_chain_id))
        head = (block.block_id, block.parent_id, block.height, block.time or 0)
        return VerifiedContainer(one.number, one.container_id, one.raw, inner, *head, exports)

    def app(self) -> AsgiApp:
        app: App = build_app("node", self.config, with_engine=True)
        return AsgiApp(app)


def _exports_of_x(one: Accepted) -> list[NewUtxo]:
    if one.kind == "vtx":
        return []
    txs: Sequence[Tx] = [unpack_tx(one.raw)] if one.kind == "tx" else unpack_block(block_in_container(one.raw)).txs
    found = []
    for tx in txs:
        if getattr(tx.unsigned, "destination_chain", None) == PLATFORM_CHAIN:
            for utxo in exported(tx):
                utxo_id = input_id(utxo.txid, utxo.output_index)
                found.append(NewUtxo(utxo_id, utxo, pack_utxo(utxo), owners_of(utxo.output)))
    return found


async def ask(app: AsgiApp, method: str, params: Any) -> tuple[int, str]:
    """Send one call to P."""
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await send(app, json.dumps(call).encode())


async def send(app: AsgiApp, body: bytes, path: str = "/ext/bc/P") -> tuple[int, str]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def reply(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:9650"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    await app(scope, receive, reply)
    return sent[0]["status"], sent[1]["body"].decode()
