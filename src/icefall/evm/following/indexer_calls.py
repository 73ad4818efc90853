"""Calls from workers to the indexer of a chain, over a local socket of the chain."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icefall.errors import StartRefused
from icefall.ipc.socket import SocketClient, SocketServer, socket_path

if TYPE_CHECKING:  # workers import this module, and nothing that follows
    from icefall.evm.following.follower import FollowerLog


def indexer_socket(data_dir: Path, chain_id: str) -> Path:
    return socket_path(data_dir, f"chain-{chain_id}.sock")


async def serve_indexer_calls(
    data_dir: Path, chain_id: str, commands: Mapping[str, Callable[..., Any]], log: "FollowerLog"
) -> None:
    """Until cancelled, in the process that holds the lock of the chain's store."""
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
    """A worker's side. Unavailable where the chain's indexer does not run on this machine."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._clients: dict[str, SocketClient] = {}

    async def reindex_nft(self, chain_id: str, token: bytes, token_id: bytes) -> None:
        """`token_id` is packed as it is stored."""
        client = self._clients.get(chain_id)
        if client is None:
            path = indexer_socket(self._data_dir, chain_id)
            client = self._clients[chain_id] = SocketClient(path, f"the indexer of chain {chain_id}")
        await client.call("reindex_nft", token=token, token_id=token_id)
