"""Following existing nodes: a follower per chain, the transactions forwarded to them, and what health checks report."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from icefall.db.engine import Store, StoreError, Transaction
from icefall.errors import CallFailed, StartRefused, Unavailable
from icefall.node.health.checks import FollowStats, PeerStats
from icefall.node.store import SQL as NODE_SQL
from icefall.node.store import read_meta
from icefall.node.sync.dag import DagFollower
from icefall.node.sync.follower import POLL_S, ContainerFollower
from icefall.node.sync.foreign import ImportWaiter
from icefall.node.sync.upstreams import NetworkIdentity, NodeUpstreams
from icefall.node.sync.verify import ChainLinks
from icefall.node.sync.vertices import VertexFollower
from icefall.observe.log import Log, Logs, quiet
from icefall.pchain.parameters import fork_times
from icefall.primary.chains import XChain, foreign_chains
from icefall.primary.network import LearnedNetwork, Network, is_public
from icefall.primary.observing import Observing
from icefall.primary.outbox import PrimaryOutbox
from icefall.primary.platform import PlatformChain, executed_chains
from icefall.primary.vertices import XVertices
from icefall.upstream.client import Client, UpstreamError, UpstreamFailure
from icefall.upstream.node import RANGE_MAX, UpstreamNode
from icefall.upstream.pool import NoUpstreamLeft
from icefall.wire.errors import WireError
from icefall.wire.genesis.network import KNOWN_NETWORKS, p_block_0_ids
from icefall.wire.ids import id_from_text, id_text
from icefall.xchain.chain import PROCESSING
from icefall.xchain.ledger import Ledger

_X_PATH, _P_PATH = "/ext/bc/X", "/ext/bc/P"
_FORWARDED_MAX = 1024
_ROUND_S = 0.25
_ROUNDS_PER_REPORT = 8  # while bootstrapping, health is refreshed every so many rounds
_FORKS = "platform_upgrades"  # what the upstream said of its upgrades, in the meta table
_INDEX_ADVICE = "--index-enabled=true"
_PROBE_LIMIT_S = 15.0


def upstream_nodes(urls: Sequence[str]) -> list[UpstreamNode]:
    try:
        return [UpstreamNode(Client(url)) for url in urls]
    except ValueError as error:
        raise StartRefused(f"--upstream: {error}") from error


async def learn(urls: Sequence[str], network_id: int) -> LearnedNetwork:
    """The genesis and chain IDs of a private network, from the first upstream that answers.

    The genesis is verified: its hash must be the chain's ID.
    """
    failures = []
    for node in upstream_nodes(urls):
        try:
            async with asyncio.timeout(_PROBE_LIMIT_S):
                first = await node.first_asset()
            if first.network_id != network_id:
                raise StartRefused(_other_network(node.name, first.network_id))
            return LearnedNetwork(first.genesis, await node.blockchain_id("C"))
        except TimeoutError:
            failures.append(f"{node.name} does not answer")
        except UpstreamFailure as failure:
            failures.append(f"{node.name}: {failure}")
        finally:
            await node.client.close()
    raise StartRefused(f"no upstream reports which network to follow: {'; '.join(failures)}")


def _other_network(name: str, network_id: int) -> str:
    return f"{name} is of network {network_id}: follow it with --network-id={network_id} and a --data-dir of its own"


def identity_of(network: Network) -> NetworkIdentity:
    genesis = network.genesis
    return NetworkIdentity(genesis.network_id, {"X": genesis.x_chain_id, "C": genesis.c_chain_id})


async def check_upstreams(urls: Sequence[str], network: Network) -> None:
    """StartRefused if no upstream will ever be usable: another network, an index that is off. One that is down may
    come back."""
    upstreams = NodeUpstreams(upstream_nodes(urls), identity_of(network), quiet())
    failures: dict[str, str] = {}
    try:
        async with asyncio.timeout(_PROBE_LIMIT_S):
            failures = await upstreams.probe_all()
    except TimeoutError:
        return
    finally:
        await upstreams.close()
    unusable = {**upstreams.disabled(), **{name: text for name, text in failures.items() if _INDEX_ADVICE in text}}
    if len(unusable) == len(upstreams.members):
        raise StartRefused("; ".join(unusable.values()))


class _Reward(msgspec.Struct, rename={"txid": "txID", "potential_reward": "potentialReward"}):
    txid: str
    potential_reward: str


class _Rewards(msgspec.Struct):
    validators: list[_Reward]


class NodeFollowing:
    """The followers of X, P and C. X waits for P and C where it imports from them.

    `had_dag`: whether X had a DAG before its blocks; None: as the network ID says. Tests of other networks set it.
    """

    def __init__(
        self,
        urls: Sequence[str],
        network: Network,
        store: Store,
        ledger: Ledger,
        logs: Logs,
        run_max: int = RANGE_MAX,
        *,
        indexed: bool,
        had_dag: bool | None = None,
        outbox: PrimaryOutbox | None = None,
    ) -> None:
        self._store = store
        self._log: Log = logs["main"]
        x_id = network.genesis.x_chain_id
        self._upstreams = NodeUpstreams(upstream_nodes(urls), identity_of(network), logs["main"])
        self.foreign = foreign_chains(network, store, indexed=indexed)
        self.observing = Observing(self._upstreams, store, identity_of(network).chain_ids, logs["main"])
        self._followers: dict[str, ContainerFollower] = {}
        self._is_custom = network.genesis.network_id not in KNOWN_NETWORKS
        self._asks_forks = self._is_custom and not network.has_upgrade_file
        now = self._upstreams.clock.now
        chains, self.platform = executed_chains(network, store, self.foreign, logs["P"], now, outbox)
        self._stored_p = chains["P"]
        for name, chain in chains.items():
            links = ChainLinks(name, x_id, _accepts_first_parent(name, network))
            self._followers[name] = ContainerFollower(chain, links, self._upstreams, logs[name], run_max=run_max)
        had_dag = is_public(network.genesis.network_id) if had_dag is None else had_dag
        x, links = XChain(ledger, had_dag=had_dag, indexed=indexed), ChainLinks("X", x_id)
        others = list(self._followers.values())
        imports = ImportWaiter(others, self._upstreams, POLL_S)
        self._dag = DagFollower(x, links, self._upstreams, imports, logs["X"], run_max=run_max) if had_dag else None
        self._vertices = self._vertex_follower(network, self._dag, logs["X"], run_max, indexed=indexed)
        self._followers["X"] = ContainerFollower(
            x, links, self._upstreams, logs["X"], run_max=run_max, imports_from=others, before=self._dag
        )
        self._forwarded: OrderedDict[bytes, None] = OrderedDict()
        self._stored: list[str] | None = None  # the chains whose calls workers refuse
        self.on_progress: Callable[[], None] = lambda: None

    def _vertex_follower(
        self, network: Network, dag: DagFollower | None, log: Log, run_max: int, *, indexed: bool
    ) -> VertexFollower | None:
        """What follows the vertices of a DAG; none where there was no DAG."""
        if dag is None:
            return None
        genesis = network.genesis
        vertices = XVertices(self._store, genesis.x_chain_id, genesis.stop_vertex_id, indexed=indexed)
        return VertexFollower(vertices, lambda: dag.is_complete, self._upstreams, log, run_max=run_max)

    async def start(self) -> None:
        """Load the P-Chain, or begin it with its genesis. It stays stopped if a stored block still cannot be read."""
        unread = await self._stored_p.read_again(self._store)
        if unread is not None:
            self._followers["P"].stop_before_run(unread)
        if self.platform is not None:
            await self._learn_forks(self.platform)
            await self.platform.start()

    async def _execute_stored(self, platform: PlatformChain) -> None:
        """Execute in the background what an older release stored. Runs for ever, as the followers do."""
        await platform.catch_up()
        if self._is_custom:
            await self._compare_reward(platform)
        await asyncio.Event().wait()

    async def _learn_forks(self, platform: PlatformChain) -> None:
        """Fork times of a network of its own, which has no upgrade file here, are what its upstream says. The first
        answer is kept: the chain is executed with it."""
        if not self._asks_forks:
            return
        known = read_meta(self._store, _FORKS)
        if known is None:
            try:
                async with asyncio.timeout(_PROBE_LIMIT_S):
                    known = (await self._upstreams.ask("/ext/info", "info.upgrades", {})).decode()
                forks = fork_times(msgspec.json.decode(known, type=dict[str, Any]))
            except (TimeoutError, UpstreamFailure, WireError, msgspec.DecodeError, NoUpstreamLeft) as failure:
                self._log.warn("no upstream says when its upgrades were; all are from the start", error=str(failure))
                return
            value = {"name": _FORKS, "value": known}
            await self._store.write(lambda tx: tx.run(NODE_SQL.put_meta, value))
        else:
            forks = fork_times(msgspec.json.decode(known, type=dict[str, Any]))
        platform.ledger.parameters = msgspec.structs.replace(platform.ledger.parameters, forks=forks)

    async def _compare_reward(self, platform: PlatformChain) -> None:
        """Stop P if a validator has another potential reward there than here: then our reward parameters are wrong."""
        while not (platform.is_executed and self._followers["P"].bootstrapped):
            if platform.why is not None:
                return
            await self._upstreams.clock.sleep(POLL_S)
        ours = {id_text(one.txid): one.potential_reward for one in platform.ledger.state.current}
        try:
            raw = await self.ask_platform("platform.getCurrentValidators", {})
            rows = msgspec.json.decode(raw, type=_Rewards).validators
        except (CallFailed, Unavailable, msgspec.DecodeError) as failure:
            self._log.warn("rewards cannot be compared with the upstream's", error=str(failure))
            return
        for row in rows:
            if row.txid in ours and int(row.potential_reward) != ours[row.txid]:
                platform.stop(
                    f"the validator {row.txid} has a potential reward of {ours[row.txid]} here and of "
                    f"{row.potential_reward} at the upstream: set --stake-min-consumption-rate and the others as "
                    "there, with a --data-dir of its own"
                )
                return

    def tasks(self) -> list[asyncio.Task[None]]:
        runs = [follower.run() for follower in self._followers.values()]
        if self.platform is not None:
            runs.append(self._execute_stored(self.platform))
        if self._vertices is not None:
            runs.append(self._vertices.run())
        return [asyncio.create_task(run) for run in runs]

    async def report_progress(self) -> None:
        """Keeps in the store which chains are bootstrapping, where workers read it. Runs for ever."""
        rounds = 0
        while True:
            now = self.bootstrapping()
            changed = now != self._stored
            if changed:
                try:
                    await self._store.write(partial(_put_bootstrapping, msgspec.json.encode(now).decode()))
                    self._stored = now
                except StoreError as error:  # a full disk: tried again in the next round
                    self._log.error("progress cannot be stored", error=str(error))
            rounds += 1
            if changed or (now and rounds % _ROUNDS_PER_REPORT == 0):
                self.on_progress()  # after the write: a chain that health calls bootstrapped takes calls
            await asyncio.sleep(_ROUND_S)

    def bootstrapping(self) -> list[str]:
        """The chains that are not at the tip yet; P also while it executes what was stored before."""
        waiting = {name for name, follower in self._followers.items() if not follower.bootstrapped}
        if self.platform is not None and not self.platform.takes_calls:
            waiting.add("P")
        return sorted(waiting)

    async def close(self) -> None:
        await self._upstreams.close()

    # -- for workers ------------------------------------------------------------------------------------------

    async def issue(self, tx: str, encoding: str) -> bytes:
        """Forwards a transaction to an upstream; its answer is ours."""
        txid = await self._issue(tx, encoding, _X_PATH)
        self._forwarded[txid] = None
        while len(self._forwarded) > _FORWARDED_MAX:
            self._forwarded.popitem(last=False)
        return txid

    async def _issue(self, tx: str, encoding: str, path: str) -> bytes:
        try:
            return id_from_text(await self._upstreams.issue_tx(tx, encoding, path=path))
        except UpstreamError as error:
            raise CallFailed(str(error)) from error
        except (UpstreamFailure, WireError) as failure:
            raise Unavailable(str(failure)) from failure

    async def issue_platform(self, tx: str, encoding: str) -> bytes:
        """Forward a transaction of P to an upstream; its answer is ours."""
        return await self._issue(tx, encoding, _P_PATH)

    async def ask_platform(self, method: str, params: dict[str, Any]) -> bytes:
        """The JSON of what an upstream's P-Chain answers."""
        try:
            return await self._upstreams.ask(_P_PATH, method, params)
        except UpstreamError as error:
            raise CallFailed(str(error)) from error
        except UpstreamFailure as failure:
            raise Unavailable(str(failure)) from failure

    def state_of(self, txid: bytes) -> str:
        """A forwarded transaction counts as being voted on."""
        return PROCESSING if txid in self._forwarded else ""

    # -- for health checks ------------------------------------------------------------------------------------------

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

    def stats_of(self, name: str) -> FollowStats:
        follower = self._followers[name]
        dag = self._dag if name == "X" and self._dag is not None and not self._dag.is_complete else None
        progress = dag.progress if dag else follower.progress
        of = None if progress.of is None else max(progress.of, progress.done)
        counted = "transactionsBeforeBlocks" if dag else "containers"
        details: dict[str, Any] = {"state": follower.state, counted: progress.done, "of": of}
        if dag and dag.unfit:
            details["unfitUpstreams"] = {node.name: why for node, why in dag.unfit.items()}
        if follower.state == "bootstrapping":
            details |= {"perSecond": round(progress.per_second, 1), "etaSeconds": _rounded(progress.eta_s)}
        if follower.waiting:
            details["waiting"] = follower.waiting
        failure = follower.why
        if name == "P" and self.platform is not None:
            execution = self.platform.stats()
            failure = failure or execution.why
            if execution.executed < execution.of:
                details |= {"executed": execution.executed, "executedPerSecond": round(execution.per_second, 1)}
        disabled = self._upstreams.disabled()
        if disabled:
            details["droppedUpstreams"] = disabled
        takes_calls = self._stored is not None and name not in self._stored
        connected = self._upstreams.traffic().reachable > 0
        return FollowStats(takes_calls, failure, details, connected=connected)


def _put_bootstrapping(names: str, tx: Transaction) -> None:
    tx.run(NODE_SQL.put_meta, {"name": "bootstrapping", "value": names})


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1e9)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _accepts_first_parent(name: str, network: Network) -> Callable[[bytes], bool] | None:
    """Which parents the first container may have, where our own genesis does not decide it."""
    if network.learned:
        return lambda parent_id: (
            True
        )  # a private network: X is verified by its hash, P and C begin where its index does
    if name == "P" and network.genesis_config:
        known = p_block_0_ids(network.genesis_config, network.genesis.network_id)
        return lambda parent_id: parent_id in known
    return None
