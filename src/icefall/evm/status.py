"""The exchange between an indexer and the workers of its chain, besides blocks.

The indexer writes its status to the chain's store, for workers, health checks and counters. A worker on the same
machine can call the indexer over a local socket. Workers import this module, and nothing of evm/indexing.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from icefall.errors import StartRefused
from icefall.ipc.socket import SocketClient, SocketServer, socket_path

if TYPE_CHECKING:
    from icefall.evm.indexing.follower import FollowerLog, FollowerStatus

# -- status ------------------------------------------------------------------------------------------------------

UpstreamWord = Literal["usable", "backing off", "disabled"]


class UpstreamStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of an upstream. `name` is its address without what may be secret, and so is `problem`."""

    name: str
    state: UpstreamWord
    problem: str = ""


class ChainStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """The status of a chain's indexer. `at` is Unix time: an old status is that of an indexer that no longer runs."""

    at: float
    synced: bool
    upstream_seen_at: float = 0.0  # when the upstream last answered; 0: never
    unusable_since: float = 0.0  # since when none of the upstreams can be used; 0: one can
    progress_at: float = 0.0  # when it last stored a block, or saw that it has stored everything; 0: never
    head: int | None = None
    target: int | None = None
    problem: str = ""
    stopped: bool = False
    degraded: tuple[str, ...] = ()
    audited_to: int = -1
    audits_done: bool = False  # up to the newest block, all tokens included
    last_problem: str = ""
    last_problem_at: float = 0.0
    counts: dict[str, int] = {}  # since the index began, across restarts
    blocks_per_s: float = 0.0  # stored over the last half minute
    upstreams: tuple[UpstreamStatus, ...] = ()
    warning: str = ""  # what is wrong with the settings, although the chain is indexed


COUNTED = (
    *("blocks", "txs", "transfers", "skipped_logs", "reorgs", "reorged_blocks", "fetched_bytes", "audits_dropped"),
    "words_dropped",
)


def status_of(
    status: "FollowerStatus",
    before: dict[str, int],
    degraded: list[str],
    now: float,
    clock_now: float,
    *,
    previous: ChainStatus | None = None,
    is_usable: bool = True,
    audited_to: int = -1,
    audits_done: bool = False,
    blocks_per_s: float = 0.0,
    upstreams: tuple[UpstreamStatus, ...] = (),
    warning: str = "",
) -> ChainStatus:
    """Make the status to be stored. `before`: the counts of earlier runs. `clock_now`: `now` on the follower's own
    clock. `previous`: the status that was stored last, maybe by an earlier run. `is_usable`: an upstream can be
    used."""
    counts = {name: before.get(name, 0) + getattr(status, name) for name in COUNTED}
    previous = previous or ChainStatus(now, False)
    seen_at = now - (clock_now - status.upstream_seen_at) if status.upstream_seen_at else previous.upstream_seen_at
    progress_at = previous.progress_at
    if counts["blocks"] > previous.counts.get("blocks", 0):
        progress_at = now
    elif status.synced:
        progress_at = max(progress_at, seen_at)
    return ChainStatus(
        at=now,
        synced=status.synced,
        upstream_seen_at=seen_at,
        unusable_since=0.0 if is_usable else previous.unusable_since or now,
        progress_at=progress_at,
        head=status.head,
        target=status.target,
        problem=status.problem,
        last_problem=status.problem or previous.last_problem,
        last_problem_at=now if status.problem else previous.last_problem_at,
        stopped=status.stopped,
        degraded=tuple(degraded),
        audited_to=audited_to,
        audits_done=audits_done,
        counts=counts,
        blocks_per_s=round(blocks_per_s, 2),
        upstreams=upstreams,
        warning=warning,
    )


def encode_status(status: ChainStatus) -> str:
    return msgspec.json.encode(status).decode()


def decode_status(text: str) -> ChainStatus:
    return msgspec.json.decode(text, type=ChainStatus)


# -- calls -------------------------------------------------------------------------------------------------------


def indexer_socket(data_dir: Path, chain_id: str) -> Path:
    return socket_path(data_dir, f"chain-{chain_id}.sock")


async def serve_indexer_calls(
    data_dir: Path, chain_id: str, commands: Mapping[str, Callable[..., Any]], log: "FollowerLog"
) -> None:
    """Serve calls until cancelled, in the process that holds the lock of the chain's store."""
    server = SocketServer(indexer_socket(data_dir, chain_id), commands, lambda: lambda: None)
    try:
        await server.start()
    except (OSError, StartRefused) as error:  # the chain is indexed all the same
        log.warn("workers cannot call the indexer: no NFT can be reindexed", error=str(error))
        return
    try:
        await asyncio.Event().wait()
    finally:
        await server.stop()


class IndexerCalls:
    """The worker's side of the calls. Unavailable where the chain's indexer does not run on this machine."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._clients: dict[str, SocketClient] = {}

    async def reindex_nft(self, chain_id: str, token: bytes, token_id: bytes) -> None:
        """Have the metadata of an NFT read again. `token_id` is packed as it is stored."""
        client = self._clients.get(chain_id)
        if client is None:
            path = indexer_socket(self._data_dir, chain_id)
            client = self._clients[chain_id] = SocketClient(path, f"the indexer of chain {chain_id}")
        await client.call("reindex_nft", token=token, token_id=token_id)


# -- refolding ---------------------------------------------------------------------------------------------------

REFOLD_META = "refold"


class RefoldProgress(msgspec.Struct):
    """The progress of `icefall index --refold`; stored as JSON."""

    next: int  # the block to go on with
    end: int  # the block before which it ends
    newest: int  # tokens whose layout was found later are not part of it
    failed: list[str] = []  # addresses of tokens that stay as they were
    done: int = 0  # tokens
    corrected: int = 0  # balances
    is_done: bool = False


def decode_refold(text: str) -> RefoldProgress:
    return _REFOLD.decode(text)


_REFOLD = msgspec.json.Decoder(RefoldProgress)
