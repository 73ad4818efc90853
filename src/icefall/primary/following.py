"""Following an existing node: the chains as followers move them, and what the rest of the engine asks about it."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from icefall.config.load import Config
from icefall.db.engine import Store, StoreError, Transaction
from icefall.errors import CallFailed, StartRefused, Unavailable
from icefall.node.following.dag import ADVICE, DagEra
from icefall.node.following.follower import POLL_S, ContainerFollower
from icefall.node.following.foreign import ForeignChain, ForeignContainer
from icefall.node.following.imports import ImportWaiter
from icefall.node.following.upstreams import NetworkIdentity, NodeUpstreams
from icefall.node.following.verify import (
    ChainLinks,
    ContainerRejected,
    ImportPending,
    MissingTransaction,
    VerifiedContainer,
)
from icefall.node.health.checks import FollowStats, PeerStats
from icefall.node.index import BLOCKS_OF, X_TX, append
from icefall.node.store import SQL as NODE_SQL
from icefall.observe.log import Log, Logs, quiet
from icefall.primary.network import LearnedNetwork, Network, is_public
from icefall.upstream.client import Client, UpstreamError, UpstreamFailure
from icefall.upstream.node import RANGE_MAX, UpstreamNode
from icefall.wire.avm.codec import unpack_utxo
from icefall.wire.avm.types import Tx
from icefall.wire.container.foreign import Export
from icefall.wire.errors import WireError
from icefall.wire.genesis.network import p_block_0_ids
from icefall.wire.ids import id_from_text
from icefall.xchain import model
from icefall.xchain.chain import PROCESSING
from icefall.xchain.follow import ExportNotSeen, FollowedLedger, ReceivedContainer, UnknownInput
from icefall.xchain.ledger import Ledger
from icefall.xchain.model import NewUtxo, TxEffects, owners_of
from icefall.xchain.store import Checkpoint, put_atomic

_FORWARDED_MAX = 1024
_LOOK_S = 0.25
_LOOKS_A_REPORT = 8  # while bootstrapping, health is brought up to date every so often
_INDEX_ADVICE = "--index-enabled=true"
_GREET_LIMIT_S = 15.0
_GAP = f"what we have from before block 1 is not complete, so a --data-dir of its own is needed too: {ADVICE}"


class XChain:
    """X: executed on our own state. `had_dag`: some of it came before its blocks. `indexed`: that goes into X/tx."""

    name = "X"

    def __init__(self, ledger: Ledger, *, had_dag: bool = False, indexed: bool = False) -> None:
        self._ledger = ledger
        self._followed = FollowedLedger(ledger, had_dag=had_dag)
        self._on_accept_txs = _index_txs if indexed else None

    @property
    def count(self) -> int:
        return self._ledger.height

    @property
    def last_container_id(self) -> bytes:
        return self._ledger.last_container_id

    @property
    def last_block_id(self) -> bytes:
        return self._ledger.tip.block_id

    @property
    def tx_count(self) -> int:
        return self._ledger.txs_before_blocks

    @property
    def last_txid(self) -> bytes:
        return self._ledger.state.txid_at(self._ledger.at.next_seq - 1)

    def has_tx(self, txid: bytes) -> bool:
        return self._ledger.state.has_tx(txid)

    async def accept(self, batch: Sequence[VerifiedContainer]) -> None:
        run = [ReceivedContainer(row.container_id, row.raw, row.inner) for row in batch]
        try:
            await _translated(self._followed.accept(run))
        except MissingTransaction as incomplete:
            raise MissingTransaction(f"{incomplete}: {_GAP}") from incomplete

    async def accept_txs(self, txs: Sequence[Tx]) -> None:
        await _translated(self._followed.accept_before_blocks(txs, self._on_accept_txs))


async def _translated(accepting: Awaitable[None]) -> None:
    try:
        await accepting
    except model.TxRefused as refused:
        raise ContainerRejected(str(refused)) from refused
    except ExportNotSeen as waiting:
        raise ImportPending(str(waiting)) from waiting
    except UnknownInput as unfounded:
        raise MissingTransaction(str(unfounded)) from unfounded


def _index_txs(tx: Transaction, at: Checkpoint, effects: Sequence[TxEffects]) -> None:
    """Transactions that are in no block, as they enter the index."""
    now_ns = time.time_ns()
    append(tx, X_TX, [(row.tx.txid, now_ns, seq, None) for seq, row in enumerate(effects, at.next_seq)])


class OtherChain:
    """P or C: checked by hash and link, its exports put into X's atomic memory."""

    def __init__(self, chain: ForeignChain, x_chain_id: bytes) -> None:
        self.name = chain.name
        self._chain = chain
        self._x_chain_id = x_chain_id

    @property
    def count(self) -> int:
        return self._chain.position.count

    @property
    def last_container_id(self) -> bytes:
        return self._chain.position.container_id

    @property
    def last_block_id(self) -> bytes:
        return self._chain.position.block_id

    async def accept(self, batch: Sequence[VerifiedContainer]) -> None:
        exports = [_received(export) for row in batch for export in row.exports]

        def hand_on(tx: Transaction) -> None:
            put_atomic(tx, self._x_chain_id, self._chain.chain_id, exports)

        rows = [ForeignContainer(row.container_id, row.raw, row.block_id, row.height) for row in batch]
        await self._chain.accept(rows, hand_on)


def _received(export: Export) -> NewUtxo:
    utxo = unpack_utxo(export.utxo_raw)
    return NewUtxo(export.utxo_id, utxo, export.utxo_raw, owners_of(utxo.output))


def upstream_nodes(config: Config) -> list[UpstreamNode]:
    try:
        return [UpstreamNode(Client(url)) for url in config.upstream]
    except ValueError as error:
        raise StartRefused(f"--upstream: {error}") from error


async def learn(config: Config) -> LearnedNetwork:
    """What a network of its own is, as its first upstream that answers tells it; its genesis proves itself by hashing
    to the chain's ID."""
    troubles = []
    for node in upstream_nodes(config):
        try:
            async with asyncio.timeout(_GREET_LIMIT_S):
                first = await node.first_asset()
            if first.network_id != config.network_id:
                raise StartRefused(_other_network(node.name, first.network_id))
            return LearnedNetwork(first.genesis, await node.blockchain_id("C"))
        except TimeoutError:
            troubles.append(f"{node.name} does not answer")
        except UpstreamFailure as failure:
            troubles.append(f"{node.name}: {failure}")
        finally:
            await node.client.close()
    raise StartRefused(f"what network to follow cannot be learnt from any upstream: {'; '.join(troubles)}")


def _other_network(name: str, network_id: int) -> str:
    return f"{name} is of network {network_id}: follow it with --network-id={network_id} and a --data-dir of its own"


def identity_of(network: Network) -> NetworkIdentity:
    genesis = network.genesis
    return NetworkIdentity(genesis.network_id, {"X": genesis.x_chain_id, "C": genesis.c_chain_id})


async def greet(config: Config, network: Network) -> None:
    """Refuse what no waiting will cure: another network, an index that is off. One that is down may come back."""
    upstreams = NodeUpstreams(upstream_nodes(config), identity_of(network), quiet())
    against: dict[str, str] = {}
    try:
        async with asyncio.timeout(_GREET_LIMIT_S):
            against = await upstreams.greet()
    except TimeoutError:
        return
    finally:
        await upstreams.close()
    hopeless = {**upstreams.lies(), **{name: text for name, text in against.items() if _INDEX_ADVICE in text}}
    if len(hopeless) == len(upstreams.nodes):
        raise StartRefused("; ".join(hopeless.values()))


class NodeFollowing:
    """All that follows. X waits for P and C where it imports from them. Of `had_dag`, whether X had a DAG before its
    blocks, nobody needs to tell but who follows a network made up for the purpose."""

    def __init__(
        self,
        config: Config,
        network: Network,
        store: Store,
        ledger: Ledger,
        logs: Logs,
        run_max: int = RANGE_MAX,
        *,
        had_dag: bool | None = None,
    ) -> None:
        self._store = store
        self._log: Log = logs["main"]
        x_id = network.genesis.x_chain_id
        self._upstreams = NodeUpstreams(upstream_nodes(config), identity_of(network), logs["main"])
        self.foreign = {
            chain.name: ForeignChain(
                store,
                chain.name,
                chain.chain_id,
                chain.genesis_block_id,
                BLOCKS_OF[chain.name] if config.index_enabled else None,
            )
            for chain in network.chains
            if chain.name in ("P", "C")
        }
        self._followers: dict[str, ContainerFollower] = {}
        for name, chain in self.foreign.items():
            links = ChainLinks(name, x_id, _genesis_of(name, network))
            self._followers[name] = ContainerFollower(
                OtherChain(chain, x_id), links, self._upstreams, logs[name], run_max=run_max
            )
        had_dag = is_public(config.network_id) if had_dag is None else had_dag
        x, links = XChain(ledger, had_dag=had_dag, indexed=config.index_enabled), ChainLinks("X", x_id)
        others = list(self._followers.values())
        imports = ImportWaiter(others, self._upstreams, POLL_S)
        self._dag = DagEra(x, links, self._upstreams, imports, logs["X"], run_max=run_max) if had_dag else None
        self._followers["X"] = ContainerFollower(
            x, links, self._upstreams, logs["X"], run_max=run_max, imports_from=others, before=self._dag
        )
        self._forwarded: OrderedDict[bytes, None] = OrderedDict()
        self.on_progress: Callable[[], None] = lambda: None

    def tasks(self) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(follower.run()) for follower in self._followers.values()]

    async def tell_progress(self) -> None:
        """Keep the store informed which chains are bootstrapping; workers ask it. Runs for ever."""
        told: list[str] | None = None
        looks = 0
        while True:
            now = self.bootstrapping()
            looks += 1
            if now != told or (now and looks % _LOOKS_A_REPORT == 0):
                self.on_progress()
            if now != told:
                try:
                    await self._store.write(partial(_put_bootstrapping, msgspec.json.encode(now).decode()))
                    told = now
                except StoreError as error:  # a full disk: said again at the next look
                    self._log.error("progress could not be stored", error=str(error))
            await asyncio.sleep(_LOOK_S)

    def bootstrapping(self) -> list[str]:
        return sorted(name for name, follower in self._followers.items() if not follower.bootstrapped)

    async def close(self) -> None:
        await self._upstreams.close()

    # -- what workers ask ------------------------------------------------------------------------------------------

    async def issue(self, tx: str, encoding: str) -> bytes:
        """Handed to the upstream; what it says of a transaction is what we say."""
        try:
            txid = id_from_text(await self._upstreams.issue_tx(tx, encoding))
        except UpstreamError as error:
            raise CallFailed(str(error)) from error
        except (UpstreamFailure, WireError) as failure:
            raise Unavailable(str(failure)) from failure
        self._forwarded[txid] = None
        while len(self._forwarded) > _FORWARDED_MAX:
            self._forwarded.popitem(last=False)
        return txid

    def state_of(self, txid: bytes) -> str:
        """What we handed on is being voted on, for all we know."""
        return PROCESSING if txid in self._forwarded else ""

    # -- what health asks ------------------------------------------------------------------------------------------

    def peers(self) -> PeerStats:
        traffic = self._upstreams.traffic()
        return PeerStats(
            connected=traffic.reachable,
            fail_rate=round(traffic.failed_share, 4),
            since_received_ns=_ns(traffic.since_received_s),
            since_sent_ns=_ns(traffic.since_sent_s),
            in_flight=traffic.in_flight,
            longest_ns=int(traffic.longest_s * 1e9),
        )

    def figures(self, name: str) -> FollowStats:
        follower = self._followers[name]
        dag = self._dag if name == "X" and self._dag is not None and not self._dag.over else None
        progress = dag.progress if dag else follower.progress
        of = None if progress.of is None else max(progress.of, progress.done)
        counted = "transactionsBeforeBlocks" if dag else "containers"
        told: dict[str, Any] = {"state": follower.state, counted: progress.done, "of": of}
        if dag and dag.unfit:
            told["unfitUpstreams"] = {node.name: why for node, why in dag.unfit.items()}
        if follower.state == "bootstrapping":
            told |= {"perSecond": round(progress.per_second, 1), "etaSeconds": _rounded(progress.eta_s)}
        if follower.waiting:
            told["waiting"] = follower.waiting
        lies = self._upstreams.lies()
        if lies:
            told["droppedUpstreams"] = lies
        return FollowStats(follower.bootstrapped, follower.why, told, connected=self._upstreams.traffic().reachable > 0)


def _put_bootstrapping(names: str, tx: Transaction) -> None:
    tx.run(NODE_SQL.put_fact, {"name": "bootstrapping", "value": names})


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1e9)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _genesis_of(name: str, network: Network) -> Callable[[bytes], bool] | None:
    """What a chain's first container may hang on, where our own genesis does not decide it."""
    if network.learned:
        return lambda parent_id: True  # a network of its own: X proves itself, P and C begin where its index does
    if name == "P" and network.genesis_config:
        known = p_block_0_ids(network.genesis_config, network.genesis.network_id)
        return lambda parent_id: parent_id in known
    return None
