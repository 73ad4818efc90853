"""Every operation of the explorer's endpoints on the store of an EVM chain that is indexed already."""

from typing import Any

from tests.evm.recordings import derived

from icefall.db.engine import Store, Transaction
from icefall.evm.enriching.name_parts import put_name_parts
from icefall.evm.enriching.nft_loop import reindex_nft
from icefall.evm.enriching.reader import EnrichReader
from icefall.evm.model import ERC20, ERC721, ERC1155
from icefall.evm.reading.balances import HistoryReader
from icefall.evm.reading.chain import ChainReader
from icefall.evm.reading.directory import lists_of
from icefall.evm.reading.holders import HolderReader
from icefall.evm.reading.model import AFTER_ALL, PageRange
from icefall.evm.reading.ranking import TokenOrder, TokenRanking
from icefall.evm.reading.raw import SQL, LogRead, RawReader
from icefall.evm.reading.tokens import TokenRead, TokenReader
from icefall.evm.storing.holders import count_some
from icefall.metrics.rollup import SPANS

CURRENCIES = ("usd", "none")


async def explorer_outcomes(store: Store, chain: str, every: int) -> dict[str, Any]:
    parties = {one.address for block in derived(chain) for one in block.rows.participants}
    found: dict[str, Any] = {"tokens": await _tokens(store)}
    for address in sorted(parties)[::every]:
        found[f"history {address.hex()}"] = await _history(store, address)
    history, reader = HistoryReader(store), ChainReader(store)
    for span in SPANS:
        ends = await history.periods(span)
        assert ends is not None
        found[f"span {span}"] = [ends, [await history.last_block(span, ends[0] + by) for by in (-1, 0, 1, 10**9)]]
    times = [block.rows.block.time + by for block in derived(chain)[::9] for by in (-1, 0)]
    found["by time"] = [await reader.at_or_before(time) for time in times]
    found["raw"] = await _raw(store)
    found["many"] = await _pieces(store)
    found["holders"] = await _holders(store, derived(chain)[-1].rows.block.number)
    return found


async def _holders(store: Store, tip: int) -> list[Any]:
    """By address: their order follows interned IDs, which depend on how blocks arrived."""
    while await count_some(store):
        pass
    reader = HolderReader(store)
    listed, _ = await TokenReader(store).tokens(None, 100)
    found: list[Any] = []
    for token in listed:
        found += [await reader.totals(token.address), await reader.trust(token.address)]
        for standard in (ERC20, ERC721, ERC1155):
            first = await reader.by_balance(token.address, standard, None, 1)
            after = [(one.balance, one.ref) for one in first]
            largest = first + (await reader.by_balance(token.address, standard, after[0], 100) if after else [])
            by_id, _ = await reader.by_id(token.address, standard, 0, 100)
            above, _ = await reader.above(token.address, 1, range(3, tip), 0, 100)
            assert [one.balance for one in largest] == sorted((one.balance for one in largest), reverse=True)
            found += [sorted((one.address, one.balance) for one in page) for page in (largest, by_id, above)]
    return [*found, *await _ranked(store)]


async def _ranked(store: Store) -> list[Any]:
    """Return the rankings by address, because tokens with equal counts are in the order of interned IDs."""
    ranking, found = TokenRanking(store), list[Any]()
    orders: tuple[TokenOrder, ...] = ("holders", "transfers", "name", "marketValue")
    for order in orders:
        page, after = await ranking.page(order, None, 2)
        more, _ = await ranking.page(order, after, 100) if after else ([], None)
        totals = await ranking.totals([*page, *more])
        found.append([(one.address, totals.get(one.token_ref)) for one in sorted([*page, *more], key=_address_of)])
    listed, _ = await TokenReader(store).tokens(None, 100)
    namesakes = await ranking.listed_namesakes(listed)
    found.append(sorted((one.address, namesakes[one.token_ref]) for one in listed if one.token_ref in namesakes))
    return [*found, [await TokenReader(store).token(one.address) == one for one in listed]]


def _address_of(token: TokenRead) -> bytes:
    return token.address


async def _tokens(store: Store) -> list[Any]:
    reader, names = TokenReader(store), list[str]()
    await store.write(_put_names)
    found: list[Any] = [await reader.tokens(None, 3), await reader.tokens((5, 1 << 40), 100, "ERC-20")]
    listed, _ = await reader.tokens(None, 100)
    names += [one.name[:2] for one in listed] + [one.symbol for one in listed]
    searched = sorted({*names, *(name.upper() for name in names), "", "ä", "Ä", "z\0", "z%_"})
    found += [[name, await reader.search(name, 5)] for name in searched]
    found += [[name, await reader.search(name, 5)] for name in ("EBR", "pfel", "ra b", "ra bc", "_")]
    found.append([await reader.addresses_between(b"", b"\xff" * 20, 7)])
    blocks = ChainReader(store)
    found += [
        await blocks.blocks_between(b"", b"\xff" * 32, 4),
        await blocks.txs_between(bytes(32), b"\xff" * 32, 9999),
    ]
    enriched = EnrichReader(store, lists_of(store).token_details)
    for token in listed:
        nfts = await reader.nfts(token.address, b"", 4)
        found += [nfts, [await reader.nft(token.address, one.token_id) for one in nfts]]
        found.append(await reader.nft(token.address, 10**40))
        for currency in CURRENCIES:
            found.append(await reader.prices(token.address, currency, -1, 10**6, 3))
            found.append(await enriched.current_price(token.address, currency))
    found.append(await reader.prices(b"", "usd", -1, 10**6, 3))
    return found


def _put_names(tx: Transaction) -> None:
    """Names whose order differs between collations, for the first tokens."""
    tokens = tx.rows("select token from token where standards <> 0 order by first_block, token")
    for (token,), name in zip(tokens, ("Zebra", "äpfel", "Äpfel", "zebra b", "z_", "ZEBRA"), strict=False):
        values = {"name": name, "symbol": name[:3], "token": token}
        tx.run("update token set name = :name, symbol = :symbol where token = :token", values)
        put_name_parts(tx, token)


async def _history(store: Store, address: bytes) -> list[Any]:
    reader, tokens = HistoryReader(store), TokenReader(store)
    found: list[Any] = [await reader.native(address, 0, AFTER_ALL, 5), await reader.native(address, 3, 9, 2)]
    listed, _ = await tokens.tokens(None, 100)
    for token in listed:
        found.append(await reader.is_untrusted(address, token.address))
        found.append(await reader.erc20(address, token.address, 0, AFTER_ALL, 3))
    return found


async def _raw(store: Store) -> list[Any]:
    """Stored logs and calls."""
    txs, _ = await ChainReader(store).newest_txs(None, 20, None)
    reader = RawReader(store, None)
    found: list[Any] = []
    logs: list[LogRead] = []
    for one in txs:
        logs += await reader.logs_of_tx(one, None, 9)
        found += [await reader.logs_of_tx(one, logs[-1].log_at if logs else None, 9), await reader.calls_of_tx(one)]
    for log in logs[::3]:
        wanted: list[tuple[bytes | None, ...]] = [(), log.topics[:1], (None, *log.topics[1:2]), (bytes(32),)]
        found += [await reader.logs_of(log.address, topics, span, 4) for topics in wanted
                  for span in (PageRange(), PageRange(0, AFTER_ALL >> 24))]  # fmt: skip
    assert logs
    # What the reader asks of blocks when an upstream has the logs.
    return [*found, logs, await store.rows(SQL.tip), await store.rows(SQL.block, {"number": 3})]


async def _pieces(store: Store) -> list[Any]:
    """NFTs that are to be read again; transfers of several tokens in one log, piece by piece."""
    listed, _ = await TokenReader(store).tokens(None, 100)
    found: list[Any] = []
    for token in listed:
        for _, token_id in await store.rows(
            "select n.token, n.token_id from nft n join address a on a.id = n.token where a.address = :address "
            "order by n.token_id limit 2",
            {"address": token.address},
        ):
            await reindex_nft(store, token.address, token_id)
        moved = await lists_of(store).transfers_of(ERC1155, token.address, PageRange(), 3)
        found.append(moved)
    found.append(await store.rows("select count(*) from nft where retry_at = 0 and failures = 0"))
    return found
