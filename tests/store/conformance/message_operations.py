"""Every operation on the messages between chains of an EVM chain: read, forgotten and filled in again."""

from contextlib import suppress
from typing import Any

from icefall.db.engine import Store, Transaction
from icefall.errors import Unavailable
from icefall.evm.indexing.message_filling import LogSource, MessageFilling
from icefall.evm.reading.balances import BalanceReader
from icefall.evm.reading.holdings import HoldingReader
from icefall.evm.reading.message_counts import MessageCounts
from icefall.evm.reading.messages import EventFilter, MessageReader
from icefall.evm.reading.native_holdings import SQL as NATIVE_SQL
from icefall.evm.reading.native_holdings import NativeHoldingReader, NativeQuestion
from icefall.evm.storing.messages import prepare_messages
from icefall.exports.histories import KINDS, READERS, TOKEN_READERS, HistorySpan

PAGE = 3
_AFTER_ALL = 1 << 62


async def message_outcomes(store: Store, upstream: LogSource, messenger: bytes) -> list[Any]:
    """What is read; the same once everything was filled in from stored and from fetched logs; and a rollback."""
    expected = await _read(store)
    assert expected[0][0], "the recorded chain has messages"
    for with_logs in (True, False):
        await store.write(lambda tx: prepare_messages(tx, []))
        await store.write(lambda tx: prepare_messages(tx, [messenger]))
        filling = MessageFilling(store, upstream, [messenger])
        if not with_logs:
            await store.write(_hide_logs)
        while await filling.step():
            pass
        assert await _read(store) == expected
    await store.write(_show_logs)
    return expected


async def _read(store: Store) -> list[Any]:
    reader = MessageReader(store)
    found: list[Any] = []
    for kind in (1, 2):
        page, _ = await reader.newest([EventFilter(kind)], None, 100)
        found.append(page)
        for one in page[:PAGE]:
            wanted = [
                EventFilter(kind, peer=one.peer),
                EventFilter(kind, sender=one.sender),
                EventFilter(kind, recipient=one.recipient),
            ]
            found += [await reader.newest([each], one.log_at + 1, PAGE) for each in wanted]
        found.append(sorted(await reader.events_of([one.message_id for one in page])))
        found.append(sorted(await reader.token_ids([one.sender for one in page])))
    return found + await _counted(store) + await _held(store)


async def _held(store: Store) -> list[Any]:
    """Who held some tokens, throughout some blocks and at some time in them."""
    reader, blocks = HoldingReader(store), range(1, 1 << 40)
    found: list[Any] = []
    for standard, table in ((1, "erc20_holding"), (2, "nft_held"), (3, "erc1155_holding")):
        tokens = {row[0] for row in await store.rows(f"select token_address from {table}")}
        for token in sorted(tokens)[:PAGE]:
            for throughout in (True, False):
                if standard == 1:
                    found.append(sorted(await reader.of_erc20(token, 1, blocks, throughout=throughout)))
                else:
                    found.append(sorted(await reader.of_nfts(token, blocks, throughout=throughout)))
            found.append(sorted(await reader.now(token, 1)))
    natives = NativeHoldingReader(store, BalanceReader(store, None))
    for throughout in (True, False):
        with suppress(Unavailable):  # a balance that only the upstream knows
            found.append(sorted(await natives.of(NativeQuestion(1, range(1, 3), throughout=throughout))))
    changed = "select n.address from native_balance n group by n.address order by count(*) desc, n.address limit 1"
    ((busiest,),) = await store.rows(changed)
    found.append(await store.rows(NATIVE_SQL.between, {"id": busiest, "low": 0, "high": 1 << 40, "limit": PAGE}))
    return [*found, sorted(await natives.now(1))]


async def _counted(store: Store) -> list[Any]:
    counts = MessageCounts(store)
    newest = await counts.newest_start(3600, _AFTER_ALL)
    assert newest is not None, "the recorded chain has messages"
    return [
        newest,
        await counts.between(86400, 0, newest + 1),
        await counts.since(newest - 3600),
        await counts.of_all_time(),
        await counts.transactions((1, 2)),
    ]


def _hide_logs(tx: Transaction) -> None:
    tx.run("update meta set name = 'hidden_logs_from' where name = 'logs_from'")


def _show_logs(tx: Transaction) -> None:
    tx.run("update meta set name = 'logs_from' where name = 'hidden_logs_from'")


async def history_outcomes(store: Store, addresses: list[bytes]) -> list[Any]:
    """The rows of addresses and of tokens as export jobs read them, page by page."""
    readers = [*(READERS[kind] for kind in KINDS), *TOKEN_READERS.values()]
    return [
        [await read(store, HistorySpan(address, after, _AFTER_ALL), PAGE) for read in readers]
        for address in addresses
        for after in ((-1, -1), (5 << 24, 0))
    ]
