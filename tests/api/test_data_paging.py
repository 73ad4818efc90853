"""Pages of every list: any size gives the same whole, also while blocks are added and rolled back."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.data_naive import address_text, naive, without_nfts
from tests.api.data_scene import InProcess, indexed, put_chains, walked
from tests.api.made_chain import ANN, block, minted, of, put, roll_back, served
from tests.evm.indexed import indexing, open_store
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread

from icefall.access.page_tokens import PageTokens
from icefall.access.store import page_token_secret
from icefall.api.data.handlers import blocks
from icefall.api.data.schema.transfers import AddressPage
from icefall.api.http.paging import Paging
from icefall.compose.stores import Stores
from icefall.evm.indexing.follower import BlockRange
from icefall.evm.storing.store import store_path

CHAIN, ID = "geth-1", "1337"
NOWHERE = {CHAIN: "http://127.0.0.1:9"}
HOLDER = "{holder}"
LISTS = {
    f"/v1/chains/{ID}/blocks": "blocks",
    f"/v1/chains/{ID}/blocks/{{block}}/transactions": "transactions",
    f"/v1/chains/{ID}/transactions": "transactions",
    f"/v1/chains/{ID}/transactions?status=failed": "transactions",
    f"/v1/chains/{ID}/addresses/{HOLDER}/transactions": "transactions",
    f"/v1/chains/{ID}/addresses/{HOLDER}/transactions?sortOrder=asc": "transactions",
    f"/v1/chains/{ID}/addresses/{HOLDER}/transactions?startBlock=50&endBlock=300&sortOrder=asc": "transactions",
    f"/v1/chains/{ID}/addresses/{HOLDER}/transactions:listNative": "transactions",
    f"/v1/chains/{ID}/addresses/{HOLDER}/transactions:listErc20": "transactions",
    f"/v1/chains/{ID}/addresses/{HOLDER}/transactions:listErc20?startBlock=50&endBlock=300": "transactions",
    f"/v1/chains/{ID}/addresses/{HOLDER}/transactions:listErc721": "transactions",
    f"/v1/chains/{ID}/addresses/{HOLDER}/transactions:listErc1155": "transactions",
    f"/v1/chains/{ID}/addresses/{HOLDER}/transactions:listInternals": "transactions",
    f"/v1/chains/{ID}/tokens/{{erc20}}/transfers": "transfers",
    f"/v1/chains/{ID}/tokens/{{erc721}}/transfers": "transfers",
    f"/v1/chains/{ID}/tokens/{{erc1155}}/transfers": "transfers",
    f"/v1/chains/{ID}/contracts/{{maker}}/deployments": "contracts",
    f"/v1/chains/{ID}/addresses/{HOLDER}/balances:listErc20": "erc20TokenBalances",
    f"/v1/chains/{ID}/addresses/{HOLDER}/balances:listErc20?blockNumber=100": "erc20TokenBalances",
    f"/v1/chains/{ID}/addresses/{HOLDER}/balances:listErc20?contractAddresses={{two}}": "erc20TokenBalances",
    f"/v1/chains/{ID}/addresses/{HOLDER}/balances:listErc721": "erc721TokenBalances",
    f"/v1/chains/{ID}/addresses/{HOLDER}/balances:listErc1155": "erc1155TokenBalances",
    f"/v1/chains/{ID}/addresses/{HOLDER}/balances:listCollectibles": "collectibleBalances",
}


def places() -> dict[str, str]:
    """A holder with something of every kind, a token of each kind, a block and a deployer."""
    shown = naive(CHAIN)

    def busiest(kind: str, part: int) -> bytes:
        count: dict[bytes, int] = {}
        for tx in shown.txs:
            for item in tx[kind]:
                for one in item[0] if part == 0 else [item[1]]:
                    count[one] = count.get(one, 0) + (one != bytes(20))
        return max(count, key=lambda one: count[one])

    counts: dict[bytes, dict[str, int]] = {}
    for kind in ("erc20", "erc721", "erc1155", "internals"):
        for tx in shown.txs:
            for item in tx[kind]:
                for one in item[0] - {bytes(20), b""}:
                    of_kinds = counts.setdefault(one, {})
                    of_kinds[kind] = of_kinds.get(kind, 0) + 1
    scores = {one: min(of_kinds.values()) for one, of_kinds in counts.items() if len(of_kinds) == 4}
    blocks: dict[str, int] = {}
    for tx in shown.txs:
        blocks[tx["here"]["blockNumber"]] = blocks.get(tx["here"]["blockNumber"], 0) + 1
    makers = [made.creator for one in shown.blocks for made in one.rows.deployments]
    coins = sorted({item[1] for tx in shown.txs for item in tx["erc20"]})
    two = f"{address_text(coins[0])},{address_text(coins[-1])}"
    return {
        "two": two,
        "holder": address_text(max(scores, key=lambda one: scores[one])),
        "erc20": address_text(busiest("erc20", 1)),
        "erc721": address_text(busiest("erc721", 1)),
        "erc1155": address_text(busiest("erc1155", 1)),
        "block": max(blocks, key=lambda one: blocks[one]),
        "maker": address_text(max(set(makers), key=makers.count)),
    }


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("paging")
    with in_thread(EvmReplay(CHAIN)) as replay:
        put_chains(folder, {CHAIN: replay.url})
        yield folder, replay.url


@pytest.fixture(scope="module")
def app(scene: tuple[Path, str]) -> Iterator[InProcess]:
    with InProcess(scene[0], {CHAIN: scene[1]}) as requested:
        yield requested


@pytest.fixture(scope="module")
def named() -> dict[str, str]:
    return places()


async def pages(app: InProcess, target: str, key: str, size: int) -> list[Any]:
    found: list[Any] = []
    ask = f"{target}{'&' if '?' in target else '?'}pageSize={size}"
    token = ""
    while True:
        reply = await app.ask(ask + (f"&pageToken={token}" if token else ""))
        assert reply.status == 200, (ask, reply)
        page = reply.json()
        assert 1 <= len(page[key]) <= size
        found += page[key]
        token = page.get("nextPageToken", "")
        if not token:
            return found


@pytest.mark.parametrize("target", LISTS)
def test_any_size_gives_the_same_whole(target: str, app: InProcess, named: dict[str, str]) -> None:
    requested = target.format(**named)
    large = 500 if "balances:" in target else 100

    async def compared() -> None:
        whole = await pages(app, requested, LISTS[target], large)
        for size in (1, 7, 100):
            assert await pages(app, requested, LISTS[target], size) == whole
        if "?" not in target and "balances" not in target:
            assert len(whole) > 7

    app.run(compared())


def test_a_whole_block_is_read_in_pieces(
    app: InProcess, named: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = f"/v1/chains/{ID}/blocks/{named['block']}/transactions"
    whole = app.result(target)
    for piece in (1, 2, len(whole["transactions"]), 10_000):
        monkeypatch.setattr(blocks, "PIECE", piece)
        assert app.result(target) == whole
        begun = app.result(f"{target}?pageSize=3")
        rest = app.result(f"{target}?pageSize=0&pageToken={begun['nextPageToken']}")
        assert rest == {"transactions": whole["transactions"][3:]}


# -- tokens --------------------------------------------------------------------------------------------------------


def first(app: InProcess, target: str) -> str:
    return str(app.result(f"{target}{'&' if '?' in target else '?'}pageSize=1")["nextPageToken"])


@pytest.mark.parametrize("target", [one for one in LISTS if "?" not in one])
def test_tokens_are_good_for_their_query_alone(target: str, app: InProcess, named: dict[str, str]) -> None:
    requested = target.format(**named)
    token = first(app, requested)
    other = requested.replace(ID, CHAIN, 1)  # the same chain by another name is another query
    beside = [one.format(**named) for one in LISTS if "?" not in one and one != target]
    for elsewhere in (other, *beside):
        reply = app.get(f"{elsewhere}?pageToken={token}")
        assert reply.status == 400
        assert reply.json()["message"].startswith("pageToken belongs to another query")
    for altered in (
        token[:-2] + ("AA" if token[-2:] != "AA" else "BB"),
        "A" + token,
        token[:20],
        "x",
        token.swapcase(),
    ):
        reply = app.get(f"{requested}?pageToken={altered}")
        assert reply.status == 400
        assert reply.json()["message"].startswith("pageToken")
    assert app.get(f"{requested}?pageToken={token}&pageSize=3&whatever=1").status == 200


def test_tokens_expire_after_a_day(app: InProcess, scene: tuple[Path, str], named: dict[str, str]) -> None:
    reader = Stores(scene[0] / "data").access_reader()
    tokens = PageTokens(page_token_secret(reader))
    reader.close()
    ask = AddressPage(chain_id=ID, address=bytes.fromhex(named["holder"][2:]))
    target = f"/v1/chains/{ID}/addresses/{named['holder']}/transactions:listErc20"
    cursor = (1 << 40).to_bytes(8, "big")
    for age_s, status in ((23 * 3600, 200), (25 * 3600, 400)):
        paging = Paging(tokens, lambda age_s=age_s: time.time() - age_s)  # type: ignore[misc]
        reply = app.get(f"{target}?pageToken={paging.token('listErc20', ask, cursor)}")
        assert reply.status == status, reply
        if status == 400:
            assert reply.json()["message"].startswith("pageToken has expired")


# -- while the chain moves -----------------------------------------------------------------------------------------


async def _follow(path: Path, replay: EvmReplay, last: int) -> None:
    async with indexing(path, replay, blocks=BlockRange(last=last)) as scene:
        await scene.follower.run()


async def _roll_back(path: Path, ancestor: int) -> None:
    store = open_store(path)
    await store.roll_back(ancestor)
    store.close()


def test_lists_hold_still_while_blocks_come_and_go(tmp_path: Path, named: dict[str, str]) -> None:
    """Half of a list is read, then blocks arrive, then some are taken back: the other half is as it was."""
    middle, holder = 200, named["holder"]
    put_chains(tmp_path, NOWHERE)
    path = store_path(tmp_path / "data", ID)
    path.unlink()
    asyncio.run(_follow(path, EvmReplay(CHAIN), middle))
    with in_thread(EvmReplay(CHAIN)) as replay, InProcess(tmp_path, {CHAIN: replay.url}) as app:
        _hold_still(app, path, middle, holder)


def _hold_still(app: InProcess, path: Path, middle: int, holder: str) -> None:
    kinds = {"listNative": "native", "listErc20": "erc20", "listErc721": "erc721", "listErc1155": "erc1155"}
    begun = {}
    for name, kind in kinds.items():
        target = f"/v1/chains/{ID}/addresses/{holder}/transactions:{name}"
        page = app.result(f"{target}?pageSize=5")
        every = naive(CHAIN).of_address(kind, bytes.fromhex(holder[2:]))
        then = [item for item in every if int(item["blockNumber"]) <= middle]
        assert _bare(page["transactions"]) == _bare(then[:5])
        begun[target] = page["nextPageToken"], then
    balances = f"/v1/chains/{ID}/addresses/{holder}/balances:listErc1155"
    pinned = app.result(f"{balances}?pageSize=1")
    assert pinned["nativeTokenBalance"] == app.result(f"{balances}?blockNumber={middle}")["nativeTokenBalance"]
    rest = app.result(f"{balances}?pageSize=500&pageToken={pinned['nextPageToken']}")

    asyncio.run(_follow(path, EvmReplay(CHAIN), middle + 100))
    for target, (token, then) in begun.items():
        found = app.result(f"{target}?pageSize=100&pageToken={token}")["transactions"]
        assert _bare(found) == _bare(then[5:105])
    assert app.result(f"{balances}?pageSize=500&pageToken={pinned['nextPageToken']}") == rest
    assert app.result(f"{balances}?pageSize=500")["nativeTokenBalance"] != pinned["nativeTokenBalance"]

    ancestor = middle - 30
    asyncio.run(_roll_back(path, ancestor))
    for target, (token, then) in begun.items():
        found = app.result(f"{target}?pageSize=100&pageToken={token}")["transactions"]
        staying = [item for item in then[5:] if int(item["blockNumber"]) <= ancestor]
        assert _bare(found) == _bare(staying[:100])
    reply = app.get(f"{balances}?pageToken={pinned['nextPageToken']}")
    assert reply.status == 400
    assert reply.json()["message"].endswith("a reorganisation has removed: start again without pageToken")


@pytest.mark.parametrize(
    "name",
    [
        "listErc20?",
        "listErc20?blockNumber=1&",
        "listErc721?",
        "listErc1155?",
        "listErc1155?blockNumber=1&",
        "listCollectibles?",
    ],
)
def test_a_list_at_a_block_that_another_has_replaced(name: str, tmp_path: Path) -> None:
    """It is not continued with the balances of the new block."""
    put(tmp_path, [block(0), minted(block(1), ANN, 5)])
    target = of(ANN, f"/balances:{name}pageSize=2")
    with served(tmp_path) as app:
        following = f"{target}&pageToken={app.result(target)['nextPageToken']}"
        put(tmp_path, [block(2)])
        assert app.get(following).status == 200
        roll_back(tmp_path, 0)
        put(tmp_path, [minted(block(1, branch=1), ANN, 7), block(2, branch=1, parent_branch=1)])
        reply = app.get(following)
        assert reply.status == 400
        old = block(1).block.block_hash.hex()
        assert reply.json()["message"] == (
            f"pageToken belongs to a list at block 1 (0x{old}), which a reorganisation has removed: "
            "start again without pageToken"
        )
        assert app.get(target).status == 200


def _bare(items: list[Any]) -> list[Any]:
    """Names are read later, by enrichment, which does not run here."""
    places = ("blockNumber", "txHash", "logIndex", "blockIndex", "value")
    ids = ("erc721Token", "erc1155Token")
    return [
        {key: item[key] for key in places if key in item} | {key: item[key]["tokenId"] for key in ids if key in item}
        for item in without_nfts(items)
    ]


def test_an_index_that_begins_later(tmp_path: Path) -> None:
    """Before the first indexed block nothing is made up."""
    put_chains(tmp_path, NOWHERE)
    path = store_path(tmp_path / "data", ID)
    path.unlink()

    async def follow() -> None:
        async with indexing(path, EvmReplay(CHAIN), blocks=BlockRange(first=380, last=390)) as scene:
            await scene.follower.run()

    asyncio.run(follow())
    with InProcess(tmp_path, NOWHERE) as app:
        _begins_later(app)


def _begins_later(app: InProcess) -> None:
    holder = naive(CHAIN).txs[-1]["native"]["from"]["address"]
    for name in ("getNative", "listErc20", "listErc1155"):
        reply = app.get(f"/v1/chains/{ID}/addresses/{holder}/balances:{name}?blockNumber=379")
        assert reply.status == 400
        assert reply.json()["message"] == "blockNumber must be at least 380, the first indexed block, got 379"
    assert [one["blockNumber"] for one in walked(app, f"/v1/chains/{ID}/blocks", "blocks", 4)][-1] == "380"


def test_a_chain_that_is_not_indexed_yet(tmp_path: Path) -> None:
    put_chains(tmp_path, NOWHERE)
    store_path(tmp_path / "data", ID).unlink()
    with InProcess(tmp_path, NOWHERE) as app:
        _not_yet(app, tmp_path, indexed(CHAIN))


def _not_yet(app: InProcess, folder: Path, file: Path) -> None:
    assert [one["status"] for one in app.result("/v1/chains")["chains"]] == ["UNAVAILABLE"]
    assert app.result(f"/v1/address/0x{'77' * 20}/chains")["indexedChains"] == []
    for path in ("blocks", "blocks/1", "transactions", f"addresses/0x{'77' * 20}/balances:getNative"):
        assert app.get(f"/v1/chains/{ID}/{path}").status == 503
    store_path(folder / "data", ID).write_bytes(file.read_bytes())
    assert app.result(f"/v1/chains/{ID}/blocks?pageSize=1")["blocks"]
