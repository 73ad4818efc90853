"""Every operation on the store of an EVM chain: a recorded chain indexed, enriched, rolled back, read and verified."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from tests.api.data_scene import erc20_tokens
from tests.evm.indexed import ALL_RAW, NO_RAW, Indexing, InlineBlockDecoder, indexing_of, messenger_of
from tests.evm.reading_scene import RecordedStateReader
from tests.evm.recordings import LOCAL_AVAX, derived
from tests.store.conformance.explorer_operations import explorer_outcomes
from tests.store.conformance.message_operations import history_outcomes, message_outcomes
from tests.store.conformance.webhook_operations import outbox_outcomes
from tests.upstream.evm_recording import recorded_blocks, recorded_state
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.evm_scene import upstream_of

from icefall.db.engine import Reader, Store, Transaction
from icefall.evm.auditing.audit import finish_audits
from icefall.evm.auditing.due import SQL as AUDIT_SQL
from icefall.evm.auditing.verify import Verification, stored_blocks
from icefall.evm.auditing.verify_state import StateVerification
from icefall.evm.encoding import pack_uint, position_of, unpack_uint
from icefall.evm.enriching.loops import EnrichSettings, rounds_of
from icefall.evm.enriching.nft_loop import NftSettings
from icefall.evm.enriching.nft_outcomes import EnrichCounts
from icefall.evm.enriching.reader import SQL as ENRICH_SQL
from icefall.evm.enriching.reader import EnrichReader, TokenDetails
from icefall.evm.indexing.filling import RawFilling
from icefall.evm.indexing.follower import BlockRange
from icefall.evm.model import ERC20, ERC721, ERC1155
from icefall.evm.reading.balances import SQL as BALANCES_SQL
from icefall.evm.reading.balances import BalanceReader
from icefall.evm.reading.chain import ChainReader
from icefall.evm.reading.directory import lists_of
from icefall.evm.reading.holdings import SQL as HOLDINGS_SQL
from icefall.evm.reading.lists.cached import CachedLists
from icefall.evm.reading.lists.joined import JoinedLists
from icefall.evm.reading.lists.per_table import ListsPerTable
from icefall.evm.reading.lists.rows import AddressLists
from icefall.evm.reading.model import PageRange, TransferRead
from icefall.evm.reading.nft_ranges import SQL as RANGES_SQL
from icefall.evm.reading.one_history import CheckedReader, in_one_history
from icefall.evm.reading.tokens import TokenReader
from icefall.evm.reading.transfers import TransferReader
from icefall.evm.standards import BY_ID
from icefall.evm.storing.folding import NO_ID
from icefall.evm.storing.holders import count_some
from icefall.evm.storing.raw import drop_marks, drop_some
from icefall.evm.storing.rollback import SQL as ROLLBACK_SQL
from icefall.evm.storing.rollback import add_to_journal
from icefall.evm.storing.store import ChainStore
from icefall.evm.storing.writing import SQL as WRITES_SQL
from icefall.exports.evm_tables import SQL as EXPORT_SQL
from icefall.exports.evm_tables import TABLES
from icefall.exports.tables import Kept
from icefall.metrics.catalogue import METRICS
from icefall.metrics.reader import MetricsReader
from icefall.metrics.store import SQL as METRICS_SQL
from icefall.metrics.store import RollupWriter
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.upstream.meter import Clock

CHAIN = "berlin-1"
Outcomes = dict[str, Any]


def comparable(value: Any) -> Any:
    """Without interned IDs, which depend on how blocks arrived."""
    if isinstance(value, msgspec.Struct):
        fields = [name for name in value.__struct_fields__ if not name.endswith("_ref")]
        return type(value).__name__, [comparable(getattr(value, name)) for name in fields]
    if isinstance(value, dict):
        return {key: comparable(one) for key, one in value.items()}
    return [comparable(one) for one in value] if isinstance(value, list | tuple) else value


async def _filled(store: Store, upstream: EvmUpstream) -> int:
    """Logs and calls dropped, as when they are no longer to be stored, and stored again. The number of steps."""
    await store.write(partial(drop_marks, kinds=NO_RAW))
    while await store.write(partial(drop_some, kinds=NO_RAW)):
        pass
    filling, steps = RawFilling(store, upstream, InlineBlockDecoder(), ALL_RAW, verify_roots=False), 0
    while await filling.step():
        steps += 1
    return steps


async def _index(chain: ChainStore, upstream: EvmUpstream, replay: EvmReplay, last: int) -> Indexing:
    """Audited afterwards: beside the follower audits would ask for the newest block again and again."""
    scene = indexing_of(chain, upstream, BlockRange(last=last), messenger=messenger_of(replay))
    scene.follower.is_audited = False
    await scene.follower.run()
    await finish_audits(scene.follower.auditor, chain)
    return scene


async def evm_outcomes(store: Store, folder: Path, every: int) -> Outcomes:
    """`every`: 1 reads all addresses, 8 an eighth of them."""
    replay = EvmReplay(CHAIN)
    found: Outcomes = {}
    chain = ChainStore(store, [RollupWriter(lambda: 0.0)])
    async with upstream_of(replay) as upstream:
        await _index(chain, upstream, replay, 5)
        await chain.start_anew({})
        found["anew"] = chain.tip()
        scene = await _index(chain, upstream, replay, replay.head)
        for name, one in rounds_of(
            store, upstream, _lists(folder), scene.log, counts=EnrichCounts(), clock=Clock(), wall=lambda: 1e9
        ).items():
            while await one():
                found[f"enriched {name}"] = True
        found["not held"] = _not_held(chain)
        found["parents"] = [chain.hash_at(number) for number in (-1, 0, 5)]
        while await count_some(store):
            pass
        await chain.roll_back(replay.head // 2)  # and indexed again
        found["rolled back"] = chain.tip()
        await _index(chain, upstream, replay, replay.head)
        found["lowest"], found["meta"] = chain.lowest(), chain.meta("chain_id")
        found["newest with transactions"] = chain.newest_busy_block()
        found["filled"] = await _filled(store, upstream)
        found["messages"] = await message_outcomes(store, upstream, messenger_of(replay))
        block_hash = chain.block_hash(replay.head)
        assert block_hash is not None
        verification = Verification(chain, upstream, (messenger_of(replay),), LOCAL_AVAX, verify_roots=False)
        found["verified"] = await verification.run(stored_blocks(chain, None, None), lambda _: None)
        found["state"] = await StateVerification(chain, upstream, replay.head, block_hash).run(everything=True)
    found |= await _read(store, every)
    found["exported"] = _exported(store, replay.head)
    addresses = [row[0] for row in store.read("select address from address order by address")]
    found["histories"] = await history_outcomes(store, addresses[::40])
    found |= await _metrics(store)
    found |= await explorer_outcomes(store, CHAIN, every)
    found["outbox"] = await outbox_outcomes(store)
    found["rare"] = await store.write(_rare)
    found["restated"] = await store.write(_restated)
    found["slots"] = await store.write(partial(_slots, is_embedded=store.is_embedded))
    found["ranges"] = await store.write(_ranges)
    return found


def _exported(store: Store, last: int) -> list[Any]:
    """Every row of every table of `icefall export`, and what the division into files asks."""
    ((end,),) = store.read(EXPORT_SQL.addresses_end)
    where = {
        Kept.BY_BLOCK: {"low": 0, "high": position_of(last + 1, 0)},
        Kept.WHOLE: {"low": 0, "high": end, "first": 0, "last": last},
    }
    day = {"after": 0, "last": last, "time": 1}
    return [
        store.read(EXPORT_SQL.lowest),
        store.read(EXPORT_SQL.tip),
        store.read(EXPORT_SQL.block, {"number": last}),
        store.read(EXPORT_SQL.first_block_since, day),
        store.read(EXPORT_SQL.meta, {"name": "rollbacks"}),
        *([table.values(row) for row in store.read(table.statement, where[table.kept])] for table in TABLES),
    ]


def _not_held(chain: ChainStore) -> list[Any]:
    """Of holders of each standard, and of others."""
    erc20 = chain.read("select h.token_address, a.address from erc20_holding h join address a on a.id = h.holder")
    erc1155 = chain.read(
        "select h.token_address, a.address, h.token_id from erc1155_holding h join address a on a.id = h.holder"
    )
    held = [*((*key, NO_ID) for key in erc20), *((*key, unpack_uint(token_id)) for *key, token_id in erc1155)]
    assert {token_id == NO_ID for _, _, token_id in held} == {True, False}
    unknown = [(token, b"\5" * 20, token_id) for token, _, token_id in held[:1] + held[-1:]]
    assert chain.not_held([*held, *unknown]) == unknown
    owned = chain.read("select a.address, n.token_id from nft_owner n join address a on a.id = n.token")
    nfts = [(token, bytes(20), unpack_uint(token_id)) for token, token_id in owned]
    assert chain.not_named([*nfts, *unknown]) == unknown
    return sorted(held)


def _ranges(tx: Transaction) -> list[Any]:
    """A range of NFTs, written and read with the statements that no recorded chain needs."""
    ((token, address),) = tx.rows("select t.token, a.address from token t join address a on a.id = t.token limit 1")
    first, inside, last, log_at = pack_uint(2), pack_uint(300), pack_uint(2**255), 5 << 24
    tx.run_many(WRITES_SQL.put_nft_range, [(token, first, log_at, last, token, address, 0)])
    tx.run_many(WRITES_SQL.add_moved, [(3, token, first, log_at)])
    tx.run_many(ROLLBACK_SQL.drop_nfts_of_range, [(token, inside, last, log_at >> 24)])
    return [
        [row[0] == token for row in tx.rows_of_each(WRITES_SQL.ranged_tokens, [(token,)])],
        [row[:3] for row in tx.rows(WRITES_SQL.range_before, (token, inside))],
        tx.rows(WRITES_SQL.owner_between, (token, pack_uint(2**200), last)),
        tx.rows(RANGES_SQL.any_range_of_nft, {"token": address, "token_id": inside}),
        tx.rows(HOLDINGS_SQL.moves, {"address": address, "after": -1, "limit": 5}),
        tx.rows_of_each(RANGES_SQL.own_owner, [(token, pack_uint(2**200))]),
        tx.run("delete from nft_range"),
    ]


def _restated(tx: Transaction) -> list[Any]:
    """A native balance that state contradicts, where there is a row and where there is none."""
    ((address, block),) = tx.rows(
        "select min(address), max(block) from native_balance where address = (select min(address) from native_balance)"
    )
    stored = tx.rows_of_each(WRITES_SQL.stored_native, [(address, block), (address, block + 1)])
    tx.run_many(WRITES_SQL.restate_native, [(b"\x01\x4d", address, block)])
    add_to_journal(tx, {block: [address]})
    return [
        tx.rows("select touched from block where number = ?", (block,)),
        stored == [(address, block)],
        tx.rows("select balance from native_balance where address = ? and block = ?", (address, block)),
    ]


def _slots(tx: Transaction, *, is_embedded: bool) -> list[Any]:
    """Statements about storage layouts, which the recorded chain has no reason to run."""
    ((token,),) = tx.rows("select min(token) from token")
    ((address,),) = tx.rows("select address from address where id = ?", (token,))
    tx.run(WRITES_SQL.put_layout, {"layout": b"\1", "since": 5, "token": token, "standard": 1})
    tx.run(WRITES_SQL.put_earlier_layout, {"token": token, "block": 9})
    ended = tx.rows(ROLLBACK_SQL.ended_layouts, {"ancestor": 8})
    tx.run(WRITES_SQL.put_layout, {"layout": b"", "since": None, "token": token, "standard": None})
    tx.run_many(ROLLBACK_SQL.restore_layout, ended)
    tx.run(ROLLBACK_SQL.drop_earlier_layout, {"ancestor": 8})
    tx.run_many(WRITES_SQL.put_slot, [(token, b"claimed", token, b"")])
    tx.run_many(WRITES_SQL.put_slot_change, [(5, token, token, b"", b"\3")])
    tx.run_many(WRITES_SQL.put_unclaimed_start, [(token, b"unclaimed", 4, b"\6")])
    tx.run_many(WRITES_SQL.put_unclaimed_slot, [(token, b"unclaimed", 5, b"\7")])
    tx.run_many(WRITES_SQL.put_unclaimed_start, [(token, b"unclaimed", 3, b"\5")])  # there are words: not stored
    checkpoint = {"block": 1 << 40}
    tx.run(AUDIT_SQL.put_checkpoint, {**checkpoint, "credit": 7, "dropped_from": 9})
    tx.run(AUDIT_SQL.mark_differing, {"token": token, "block": 7})
    found = [
        tx.rows_of_each(WRITES_SQL.slot_holders, [(token, b"claimed"), (token, b"none")]),
        tx.rows_of_each(WRITES_SQL.slot_keys, [(token, b"claimed"), (token, b"none")]),
        tx.rows_of_each(WRITES_SQL.tokens_with_unclaimed, [(token,)]),
        tx.rows_of_each(WRITES_SQL.layouts_since, [(token,)]),
        tx.rows_of_each(WRITES_SQL.unclaimed_words, [(token, b"unclaimed")]),
        tx.rows(WRITES_SQL.unclaimed_count, {"token": token, "most": 3}),
        tx.rows(WRITES_SQL.unclaimed_words_of, {"address": address, "most": 3}),
        tx.rows("select * from slot_change"),
        tx.rows("select layout, layout_since, layout_standard from token where token = ?", (token,)),
        tx.rows(AUDIT_SQL.left_out, {"after": 8}),
        tx.rows(AUDIT_SQL.audited_to),
        [row[:-1] for row in ended],
        tx.rows("select count(*) from earlier_layout"),
    ]
    tx.run_many(ROLLBACK_SQL.drop_slot, [(token, b"claimed")])
    tx.run(WRITES_SQL.put_words_dropped, {"token": token, "block": 7})
    found += [
        tx.rows("select words_dropped_since from token where token = ?", (token,)),
        tx.rows(WRITES_SQL.unclaimed_words_of, {"address": address, "most": 3}),
    ]
    tx.run(AUDIT_SQL.put_left_out, {**checkpoint, "dropped_from": None})
    tx.run(AUDIT_SQL.mark_differing, {"token": token, "block": 6})
    found += [
        tx.rows(AUDIT_SQL.audited_to),
        tx.rows("select differed_at, is_untrusted from token join token_trust using (token) where token = ?", (token,)),
    ]
    tx.run("update token set words_dropped_since = null, differed_at = null where token = ?", (token,))
    tx.run(ROLLBACK_SQL.drop_slot_history, {"token": token, "holder": token, "key": b"unclaimed"})
    tx.run("delete from audit where block = :block", checkpoint)
    tx.run_many(ROLLBACK_SQL.drop_erc1155_history, [(-1, token, b"")])
    tx.run_many(WRITES_SQL.reread_token_later, [(-1,)])
    if is_embedded:  # elsewhere balances are columns of transfers, or in slot_change
        tx.run_many(ROLLBACK_SQL.drop_erc20_history, [(-1, token)])
    return [*found, tx.rows("select count(*) from slot"), tx.rows("select count(*) from slot_change")]


def _rare(tx: Transaction) -> list[Any]:
    """What the recorded chain gives no reason to do, with rows that it has; how many rows each changes or finds."""
    ((token, address),) = tx.rows(
        "select t.token, a.address from token t join address a on a.id = t.token order by 1 limit 1"
    )
    ((nft_token, nft_address, token_id),) = tx.rows(
        "select n.token, a.address, n.token_id from nft n join address a on a.id = n.token order by 1, 3 limit 1"
    )
    nft = {"token": nft_token, "address": nft_address, "token_id": token_id, "retry_at": 5, "failures": 2}
    owner = {"owner": b"\5" * 20, "token_address": address, "token_id": token_id, "token": token, "block": 9}
    between = {"first": 0, "end": 1 << 60, "creation": 2}
    seen = [name for name in METRICS_SQL.names() if name.startswith(("senders_of", "recipients_of"))]
    return [
        *(len(tx.rows(METRICS_SQL.named(name), between)) for name in seen),
        len(tx.rows(METRICS_SQL.creators_between, between)), tx.rows(BALANCES_SQL.tip),
        tx.run(AUDIT_SQL.put_state_owner, owner), tx.run(AUDIT_SQL.put_state_owner, owner),
        tx.run(AUDIT_SQL.drop_older_state_owners, {"token_address": address, "token_id": token_id, "block": 1 << 40}),
        tx.run(AUDIT_SQL.reread_token, (token,)),
        tx.run(WRITES_SQL.put_words_dropped, {"token": nft_token, "block": 1 << 40}),
        tx.run(WRITES_SQL.put_words_dropped, {"token": nft_token, "block": (1 << 40) + 1}),
        tx.rows(WRITES_SQL.unclaimed_words_of, {"address": nft_address, "most": 5}),
        tx.run(ENRICH_SQL.postpone_token, {"token": token, "address": address, "retry_at": 7}),
        tx.run(ENRICH_SQL.make_nft_due, (nft_token, token_id)),
        tx.run(ENRICH_SQL.claim_nft, nft | {"retry_at": 0}), tx.run(ENRICH_SQL.postpone_nft, nft),
        tx.run(ENRICH_SQL.drop_price, (address, "usd", -1)), tx.run(ENRICH_SQL.drop_reputation, (address,)),
        tx.run(ENRICH_SQL.drop_listed_token, (address,)),
        tx.run(WRITES_SQL.restart_token, (token,)), tx.run(WRITES_SQL.put_standards_since, (3, token)),
    ]  # fmt: skip


def _lists(folder: Path) -> EnrichSettings:
    """Made-up prices, reputations and listed details of the first tokens, in place of others that are dropped."""
    first, second, third = (f"0x{token.hex()}" for token in erc20_tokens(CHAIN)[:3])
    prices, words = folder / "prices.json", folder / "words.json"
    prices.write_text(json.dumps({"currencies": {"usd": {"native": {"current": "1.5"}, first: {"current": "2"}}}}))
    words.write_text(json.dumps({"Malicious": [second], "Benign": [third]}))
    listed = folder / "tokens.json"
    fields = {"chainId": 7, "name": "Listed", "symbol": "LST", "decimals": 3, "logoURI": "https://e.example/l.png"}
    listed.write_text(json.dumps({"tokens": [fields | {"address": token} for token in (first, second)]}))
    return EnrichSettings(
        NftSettings(web=False), prices=str(prices), reputation=str(words), token_list=str(listed), chain_id=7
    )


def _addresses() -> list[bytes]:
    seen: dict[bytes, None] = {bytes(20): None, b"\x77" * 20: None}
    for one in derived(CHAIN):
        for participant in one.rows.participants:
            seen[participant.address] = None
        for made in one.rows.deployments:
            seen[made.address] = seen[made.creator] = None
        for token in one.rows.erc20_deltas:
            seen[token.token] = None
    return list(seen)


def _read_addresses(every: int) -> list[bytes]:
    """Return some of the addresses, and always two that received a batch of ERC-1155 in the middle of which a page may
    end."""
    batches = (one for block in derived(CHAIN) for one in block.rows.erc1155_transfers if one.position >= 3)
    receivers = list(dict.fromkeys(one.to for one in batches))
    return list(dict.fromkeys((*_addresses()[::every], *receivers[-2:])))


def _spans(rows: Sequence[Any]) -> Iterator[PageRange]:
    yield PageRange()
    yield PageRange(3, 30)
    yield from (PageRange(before=row.cursor) for row in rows[2:3])


async def _read(store: Store, every: int) -> Outcomes:
    chain, transfers, tokens, lists = ChainReader(store), TransferReader(store), TokenReader(store), lists_of(store)
    enriched = EnrichReader(store, lists.token_details)
    numbers = {bytes.fromhex(block.hash[2:]): block.number for block in recorded_blocks(CHAIN).values()}
    balances = BalanceReader(store, RecordedStateReader(recorded_state(CHAIN), numbers))
    tip = await chain.tip()
    assert tip is not None
    found: Outcomes = {"tip": tip, "lowest block": await chain.lowest(), "blocks": await chain.page(None, 7)}
    found["by hash"], found["by number"] = await chain.block(tip.block_hash), await chain.block(3)
    found["hashes"] = await chain.hashes_of([0, 3, tip.number, tip.number + 1])
    found["of one history"] = await in_one_history(ChainReader(CheckedReader(store)).lowest)
    newest, _ = await chain.newest_txs(None, 40, None)
    found["newest"] = newest
    found["failed"] = [await chain.newest_txs(None, 10, status) for status in (0, 1)]
    for tx in newest:
        at, key = tx.tx_at, f"tx {tx.tx_at}"
        found[key] = [
            await chain.tx(tx.location.tx_hash), await chain.full_tx_at(at), await transfers.parts_of_tx(at),
            await transfers.message(at), await chain.txs_of_block(tx.location.block_number, None, 5),
            await transfers.internals_of_tx(at, 0, 3),
        ]  # fmt: skip
    for address in _read_addresses(every):
        await check_forms(store, address)
        found[f"address {address.hex()}"] = await _of_address(
            address, tip.number, chain, lists, transfers, tokens, balances, enriched
        )
    return found


async def check_forms(reader: Reader, address: bytes) -> None:
    """Lists read table by table, or of an embedded store completed from a cache, are those that one statement with
    joins returns."""
    transfers, joined, per_table = TransferReader(reader), JoinedLists(reader), ListsPerTable(reader)
    cached = CachedLists(reader) if reader.is_embedded else joined
    for span in (PageRange(), PageRange(3, 30)):
        txs = await joined.txs_of(address, span, 4)
        assert await per_table.txs_of(address, span, 4) == await cached.txs_of(address, span, 4) == txs
        for ascending in (False, True):
            txs = await joined.touched_txs(address, span, 4, ascending=ascending)
            assert await cached.touched_txs(address, span, 4, ascending=ascending) == txs
            parts = await transfers.parts_of_page(joined, address, txs)
            assert await transfers.parts_of_page(cached, address, txs) == parts
    for standard in (ERC20, ERC721, ERC1155):
        first = await joined.transfers_of(standard, address, PageRange(), 5)
        for span in _spans(first):
            page = await joined.transfers_of(standard, address, span, 3)
            assert await per_table.transfers_of(standard, address, span, 3) == page
            assert await cached.transfers_of(standard, address, span, 3) == page
            if standard == ERC20:
                found, tokens = await joined.erc20_with_tokens(address, span, 3, "usd")
                assert found == page
                assert tokens is not None
                await _check_tokens(EnrichReader(reader, joined.token_details), page, tokens.details)
                assert await per_table.erc20_with_tokens(address, span, 3, "usd") == (page, None)
        refs = [ref for row in first for ref in (row.token_ref, row.to_ref)]
        assert await per_table.token_details(refs, "usd") == await joined.token_details(refs, "usd")


async def _check_tokens(
    enriched: EnrichReader, page: Sequence[TransferRead], details: Mapping[int, TokenDetails | None]
) -> None:
    """Those of all addresses of the page, with prices of the tokens that were transferred: no others are shown."""
    transferred = {row.token_ref for row in page}
    parties = {ref for row in page for ref in (row.sender_ref, row.to_ref)}
    wanted = (await enriched.answer_tokens(transferred | parties, "usd")).details
    assert details == {
        ref: one if one is None or ref in transferred else replace(one, price=None) for ref, one in wanted.items()
    }


async def _of_address(
    address: bytes,
    last: int,
    chain: ChainReader,
    lists: AddressLists,
    transfers: TransferReader,
    tokens: TokenReader,
    balances: BalanceReader,
    enriched: EnrichReader,
) -> list[Any]:
    found: list[Any] = [await chain.is_known(address), await tokens.contract(address)]
    found += [await lists.txs_of(address, span, 4) for span in _spans(())]
    for ascending in (True, False):
        txs = await lists.touched_txs(address, PageRange(), 5, ascending=ascending)
        found += [txs, await transfers.parts_of_page(lists, address, txs)]
    for standard in (ERC20, ERC721, ERC1155):
        first = await lists.transfers_of(standard, address, PageRange(), 5)
        found += [await lists.transfers_of(standard, address, span, 3) for span in _spans(first)]
        details = await enriched.nft_metadata([(row.token_ref, row.token_id) for row in first])
        found.append([details[row.token_ref, row.token_id] for row in first])
    found += [await transfers.in_token(address, PageRange(), 6), await transfers.internals_of(address, PageRange(), 4)]
    found += [await transfers.deployment(address), await transfers.deployed_by(address, None, 4)]
    held, _ = await balances.erc20(address, last, None, 5)
    priced = await enriched.priced_tokens([one.token_ref for one in held], "usd")
    found += [held, [priced.get(one.token_ref) for one in held]]
    found.append(sorted(await enriched.malicious_of(one.token for one in held)))
    found += [await balances.erc20(address, last // 2, None, 5), await balances.native(address, last)]
    found.append(await balances.erc20(address, last, None, 5, erc20_tokens(CHAIN)[:3]))
    many, _ = await balances.of_ids(BY_ID[0], address, last, None, 5)
    nfts, _ = await balances.nfts(address, None, 5)
    found += [many, nfts, await balances.owners([(one.token, one.token_id) for one in nfts])]
    prices = enriched.native_price("usd"), enriched.historic_price(address, "usd", 0)
    return [*found, *[await one for one in prices]]


async def _metrics(store: Store) -> Outcomes:
    reader, last = MetricsReader(store), derived(CHAIN)[-1].rows.block.time
    found: Outcomes = {"last run": await reader.last_run()}
    for metric in METRICS:
        for span in metric.spans:
            found[f"{metric.name} {span}"] = await reader.series(metric, span, None, None, None, 20)
        if metric.has_rolling:
            for now in (last, last - 7):
                found[f"{metric.name} rolling {now}"] = await reader.rolling(metric, now)
    return found
