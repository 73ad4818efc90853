"""Lists of addresses by what they held: equal to a naive walk over a random history of a token and a collection."""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.api.made_chain import ID, TOKEN, ZERO_ADDRESS, block, erc20, erc721
from tests.metrics.synthetic import address
from tests.postgres.server import new_prefix, server_url

from icefall.access.page_tokens import PageTokens
from icefall.api.http.paging import Paging
from icefall.api.http.structs import NoParams, address_text
from icefall.api.metrics import address_lists
from icefall.api.metrics.address_schema import CompositeQuery
from icefall.compose.stores import Stores
from icefall.errors import BadRequest
from icefall.evm.deriving.packing import packed
from icefall.evm.model import BlockRows, Erc1155TransferRow, IdDelta
from icefall.evm.packed import ResolvedBlock
from icefall.evm.reading import holdings
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain, TokenInfo
from icefall.evm.storing.holders import count_all
from icefall.evm.storing.store import ChainStore

COIN, ITEMS, BLOCKS, DAY = address(4321), address(4322), 60, 86_400
START = 1_700_006_400  # midnight
STEP = DAY // 8
PEOPLE = [address(number) for number in range(10, 16)]
CHAIN = ChainInfo(ID, "made", TokenInfo("Coin", "COIN", 18))


class History:
    """A block every three hours, each with one transfer; and what everyone had after each block."""

    def __init__(self, seed: int) -> None:
        self.blocks: list[BlockRows] = [block(0)]
        self.coins: list[dict[bytes, int]] = [{}]
        self.owners: list[dict[int, bytes]] = [{}]
        self.items: list[dict[tuple[bytes, int], int]] = [{}]
        chance = random.Random(seed)
        for number in range(1, BLOCKS):
            coins, owners = dict(self.coins[-1]), dict(self.owners[-1])
            to = chance.choice(PEOPLE)
            if chance.random() < 0.5:
                holders = [one for one, held in coins.items() if held and one != to]
                sender = chance.choice([ZERO_ADDRESS, *holders])
                value = chance.randrange(1, 20) if sender == ZERO_ADDRESS else chance.randrange(1, coins[sender] + 1)
                rows = erc20(number, sender, to, value, COIN)
                if sender != ZERO_ADDRESS:
                    coins[sender] -= value
                coins[to] = coins.get(to, 0) + value
            else:
                token_id = chance.randrange(4)
                to = chance.choice([to, to, ZERO_ADDRESS]) if token_id in owners else to
                rows = erc721(number, owners.get(token_id, ZERO_ADDRESS), to, token_id)
                owners[token_id] = to
            items, rows = self._with_item(rows, chance)
            self.items.append(items)
            self.blocks.append(rows)
            self.coins.append(coins)
            self.owners.append(owners)
        self.blocks = [
            replace(rows, block=replace(rows.block, time=self.time(rows.block.number))) for rows in self.blocks
        ]

    def _with_item(self, rows: BlockRows, chance: random.Random) -> tuple[dict[tuple[bytes, int], int], BlockRows]:
        """Some of an ID is minted, moved or burned in the block."""
        items = dict(self.items[-1])
        held = [key for key, count in items.items() if count]
        to = chance.choice([*PEOPLE, ZERO_ADDRESS])
        sender, token_id = (
            chance.choice(held) if held and chance.random() < 0.7 else (ZERO_ADDRESS, chance.randrange(3))
        )
        if sender == to:
            return items, rows
        value = items[sender, token_id] if sender != ZERO_ADDRESS else 4
        value = chance.choice((value, max(1, value // 2)))
        moves = [(one, sign) for one, sign in ((sender, -1), (to, 1)) if one != ZERO_ADDRESS]
        for one, sign in moves:
            items[one, token_id] = items.get((one, token_id), 0) + sign * value
        transfer = Erc1155TransferRow(0, 50, 0, ITEMS, sender, to, token_id, value)
        deltas = tuple(IdDelta(ITEMS, one, token_id, sign * value) for one, sign in moves)
        return items, replace(rows, erc1155_transfers=(transfer,), erc1155_deltas=deltas)

    @staticmethod
    def time(number: int) -> int:
        return START + number * STEP

    def states(self, first: int, end: int) -> list[int]:
        """The blocks after which the state is one of the time: that before it, and those in it."""
        inside = [number for number in range(BLOCKS) if first <= self.time(number) < end]
        before = [number for number in range(BLOCKS) if self.time(number) < first]
        return before[-1:] + inside

    def held(self, first: int, end: int, least: int, quantifier: Callable[..., bool]) -> set[bytes]:
        states = self.states(first, end)
        return {one for one in PEOPLE if quantifier(self.coins[at].get(one, 0) >= least for at in states)}

    def owned(self, first: int, end: int, quantifier: Callable[..., bool]) -> set[bytes]:
        states = self.states(first, end)
        return {one for one in PEOPLE if quantifier(one in self.owners[at].values() for at in states)}

    def had_items(self, first: int, end: int, quantifier: Callable[..., bool]) -> set[bytes]:
        states = self.states(first, end)
        return {
            one
            for one in PEOPLE
            if quantifier(any(count for (who, _), count in self.items[at].items() if who == one) for at in states)
        }


def day(number: int) -> str:
    return f"2023-11-{15 + number:02}"


class Asked:
    def __init__(self, stores: Stores, history: History) -> None:
        self._stores = stores
        self._store = stores.chain_store(ID)
        self._chain = EvmChain(CHAIN, stores.chain_reader(ID))
        self._directory = ChainDirectory([self._chain])
        self._paging = Paging(PageTokens(bytes(32)))
        self._history = history

    async def put(self) -> None:
        chain = ChainStore(self._store)
        await chain.commit([ResolvedBlock(packed(rows), (), ()) for rows in self._history.blocks])
        await count_all(self._store)

    async def page(self, *queries: dict[str, Any], **more: Any) -> dict[str, Any]:
        numbered = [{"id": f"q{at}", **one} for at, one in enumerate(queries)]
        body = msgspec.convert({"queries": numbered, "operator": "AND", **more}, CompositeQuery)
        answer = await address_lists.composite_query(NoParams(), body, self._directory, self._paging)
        found: dict[str, Any] = msgspec.to_builtins(answer)
        return found

    async def found(self, *queries: dict[str, Any], **more: Any) -> set[str]:
        """The addresses of all pages."""
        listed: list[str] = []
        token: dict[str, str] = {}
        while True:
            page = await self.page(*queries, **more, **token, pageSize=2)
            listed += page["addresses"]
            if "nextPageToken" not in page:
                break
            token = {"pageToken": page["nextPageToken"]}
        assert len(set(listed)) == len(listed) == page["totalCount"]
        return set(listed)

    def close(self) -> None:
        self._chain.reader.close()
        self._store.close()


@pytest.fixture(params=("sqlite", "postgres"))
def asked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Asked, History]]:
    (tmp_path / "chains").mkdir()
    url = "" if request.param == "sqlite" else server_url()
    history = History(3)
    with closing(Stores(tmp_path, url, new_prefix())) as stores, closing(Asked(stores, history)) as made:
        yield made, history


def query(kind: str, contract: bytes = COIN, **params: Any) -> dict[str, Any]:
    return {"type": kind, "params": {"evmChainId": ID, "contractAddress": address_text(contract), **params}}


def texts(addresses: set[bytes]) -> set[str]:
    return {address_text(one) for one in addresses}


def test_answers_equal_a_naive_walk(asked: tuple[Asked, History], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holdings, "_PIECE", 3)
    scene, history = asked

    async def run() -> None:
        await scene.put()
        sizes, item_sizes = set(), set()
        for first, last in ((0, 0), (1, 2), (0, 7), (3, 5), (9, 9)):
            begin, end = START + first * DAY, START + (last + 1) * DAY
            days: dict[str, Any] = {"firstDate": day(first), "lastDate": day(last)}
            for name, quantifier in (("AllTime", all), ("AnyTime", any)):
                for least in (0, 1, 7):
                    one = query(f"{name}Erc20Balance", minBalance=str(least), **days)
                    expected = texts(history.held(begin, end, max(least, 1), quantifier))
                    assert await scene.found(one) == expected
                    sizes.add(len(expected))
                nfts = texts(history.owned(begin, end, quantifier))
                assert await scene.found(query(f"{name}NftHolders", TOKEN, **days)) == nfts
                times: dict[str, Any] = {"startTs": begin, "endTs": end - 1}
                assert await scene.found(query(f"{name}NftHolders", TOKEN, **times)) == nfts
                sizes.add(len(nfts))
                items = texts(history.had_items(begin, end, quantifier))
                assert await scene.found(query(f"{name}NftHolders", ITEMS, **days)) == items
                item_sizes.add(len(items))
        assert len(sizes) > 4, "the answers differ"
        assert len(item_sizes) > 3

    asyncio.run(run())


def test_answers_are_joined_and_intersected(asked: tuple[Asked, History]) -> None:
    scene, history = asked

    async def run() -> None:
        await scene.put()
        latest = query("LatestBalance", tokenType="ERC20", minBalance="5")
        nfts = query("AnyTimeNftHolders", TOKEN, firstDate=day(0), lastDate=day(1))
        coins = texts({one for one, held in history.coins[-1].items() if held >= 5})
        owners = texts(history.owned(START, START + 2 * DAY, any))
        assert await scene.found(latest, nfts) == coins & owners
        assert await scene.found(latest, nfts, operator="OR") == coins | owners
        page = await scene.page(latest, nfts, operator="OR")
        assert page["subQueryCounts"] == {"q0": len(coins), "q1": len(owners)}
        assert page["addresses"] == sorted(coins | owners, key=str.lower)

    asyncio.run(run())


DAYS: dict[str, Any] = {"firstDate": day(0), "lastDate": day(1), "minBalance": "1"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    (query("AllTimeStarsArenaBalance", **DAYS), "AllTimeStarsArenaBalance is about the shares of one product"),
    (query("Nothing"), "type Nothing is not known: use one of LatestBalance"),
    (query("LatestBalance", tokenType="ERC20"), "minBalance is missing"),
    (query("LatestBalance", tokenType="ERC404", minBalance="1"), "tokenType must be ERC20 or NATIVE"),
    (query("AllTimeErc20Balance", minBalance="1"), "needs firstDate and lastDate"),
    (query("AllTimeErc20Balance", **DAYS | {"firstDate": "2023-13-01"}), "2023-13-01 is not a day"),
    (query("AllTimeErc20Balance", **DAYS | {"firstDate": "2024-01-01"}), "ends before it begins"),
    ({"type": "LatestBalance", "params": {"tokenType": "ERC20"}}, "needs params.evmChainId"),
    ({"type": "AllTimeNftHolders", "params": {"evmChainId": ID}}, "contractAddress is missing"),
]


@pytest.mark.parametrize(("one", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_wrong_questions_are_refused(one: dict[str, Any], text: str, tmp_path: Path) -> None:
    (tmp_path / "chains").mkdir()
    with (
        closing(Stores(tmp_path, "", "")) as stores,
        closing(Asked(stores, History(3))) as scene,
        pytest.raises(BadRequest, match=text),
    ):
        asyncio.run(scene.page(one))


def test_large_questions_are_refused(asked: tuple[Asked, History], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOLDERS_MAX", "OWNERS_MAX", "ADDRESSES_MAX"):
        monkeypatch.setattr(holdings, name, 1)
    monkeypatch.setattr(holdings, "_PIECE", 1)
    scene, _ = asked
    days: dict[str, Any] = {"firstDate": day(0), "lastDate": day(7)}

    async def run() -> None:
        await scene.put()
        for one in (
            query("LatestBalance", tokenType="ERC20", minBalance="1"),
            query("AnyTimeErc20Balance", minBalance="1", **days),
            query("AnyTimeNftHolders", TOKEN, **days),
            query("AnyTimeNftHolders", ITEMS, **days),
        ):
            with pytest.raises(BadRequest, match="more than"):
                await scene.page(one)
        with pytest.raises(BadRequest, match="id of its own"):
            await scene.page({"id": "one", **one}, {"id": "one", **one})

    asyncio.run(run())
