"""What the chain data interface answers of a store, request by request: two stores of one chain answer the same."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from tests.api.data_scene import InProcess
from tests.evm.adversarial.nodes import CHAIN_ID, Node
from tests.evm.indexed import open_store
from tests.evm.liars.ids import IDS
from tests.store.opened import open_reader

from icefall.db.engine import Reader
from icefall.evm.reading.state import RequestState
from icefall.evm.storing.holders import count_all

NAME = "anvil-1"  # of a recording, for its name alone
PAGE = "pageSize=100"
_OF_ADDRESS = ("getNative", "listErc20", "listErc721", "listErc1155", "listCollectibles")


class _OneStore(NamedTuple):
    """The stores of chains, of which there is one."""

    path: Path

    def chain_reader(self, _: str) -> Reader:
        return open_reader(self.path)


def targets(
    chain: str, tokens: Sequence[bytes], holders: Sequence[bytes], nfts: Sequence[bytes], blocks: Sequence[int]
) -> Iterator[str]:
    """Every request about balances, owners, tokens and holders. `nfts`: the collections among the tokens."""
    at = f"/v1/chains/{chain}"
    yield f"{at}/tokens?{PAGE}"
    for token in (f"0x{one.hex()}" for one in tokens):
        yield f"{at}/tokens/{token}"
        yield f"{at}/tokens/{token}/holders?{PAGE}"
        yield f"{at}/tokens/{token}/transfers?{PAGE}"
        yield f"{at}/addresses/{token}"
    for token in (f"0x{one.hex()}" for one in nfts):
        yield f"{at}/nfts/collections/{token}/tokens?{PAGE}"
        yield from (f"{at}/nfts/collections/{token}/tokens/{token_id}" for token_id in IDS)
    for who in (f"0x{one.hex()}" for one in holders):
        yield from (f"{at}/addresses/{who}/balances:{name}?{PAGE}" for name in _OF_ADDRESS)
        yield from (f"{at}/addresses/{who}/balances:listErc20?{PAGE}&blockNumber={block}" for block in blocks)
        for token in (f"0x{one.hex()}" for one in tokens):
            yield f"{at}/addresses/{who}/balances:listHistory?{PAGE}&contractAddress={token}"


def answers(
    path: Path, node: Node, folder: Path, tokens: Sequence[bytes], holders: Sequence[bytes], nfts: Sequence[bytes]
) -> dict[str, tuple[int, Any]]:
    """Status and body by request. Page tokens are sealed, each time in another way."""
    with closing(open_store(path)) as store:
        asyncio.run(count_all(store._store))
    newest = node.newest()
    stores: Any = _OneStore(path)
    state = RequestState([node.url], CHAIN_ID)
    found = {}
    with InProcess(folder, {NAME: ""}, state=state, stores=stores) as app:
        for target in targets(NAME, tokens, holders, nfts, [newest // 3, newest // 2, newest]):
            reply = app.run(app.ask(target))
            body = json.loads(reply.body)
            body.pop("nextPageToken", None)
            assert reply.status in (200, 404), (target, body)  # 404: no log has named that NFT
            found[target] = reply.status, body
        app.run(state.close())
    return found


def differing(one: dict[str, tuple[int, Any]], other: dict[str, tuple[int, Any]]) -> list[str]:
    return [f"{target}: {answer} {other[target]}"[:600] for target, answer in one.items() if answer != other[target]]
