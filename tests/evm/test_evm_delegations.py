"""EIP-7702: who has code, and which calls run it, by whatever a client reports, and on a real client."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from tests.awaited import awaited
from tests.evm.delegations import ADDRESSES, AUTHORITY, BLOCKS, CALLER, CHAIN, Driver, Row, has_code, recorded
from tests.evm.indexed import Indexing, Log, indexing_of, open_store
from tests.evm.live_client import Anvil, anvil
from tests.waiting import LIMIT_S

from icefall.evm.deriving.derive import contract_lookups, derive
from icefall.evm.encoding import CALL_TYPES
from icefall.evm.indexing.follower import BlockRange
from icefall.evm.model import BlockRows, CallType, ContractInfo
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.wire.evm.authorizations import authority_of, signed_delegations
from icefall.wire.evm.decode import decode_full
from icefall.wire.evm.types import Authorization, FullBlock
from icefall.wire.keys import CURVE_ORDER


def by_debug(row: Row) -> FullBlock:
    return decode_full(bytes(row.block), bytes(row.receipts), bytes(row.calls), bytes(row.diffs))


def by_parity(row: Row) -> FullBlock:
    raw = bytes(row.block), bytes(row.receipts), bytes(row.trace_block), bytes(row.trace_replay)
    return decode_full(*raw, "parity", "parity")


def without_nonces(row: Row) -> FullBlock:
    """A client whose diffs do not tell nonces either: then state must be read."""
    replay = msgspec.json.decode(row.trace_replay)
    for account in (account for tx in replay for account in tx["stateDiff"].values()):
        del account["nonce"]
    return by_parity(msgspec.structs.replace(row, trace_replay=msgspec.Raw(msgspec.json.encode(replay))))


def without_diffs(row: Row) -> FullBlock:
    return decode_full(bytes(row.block), bytes(row.receipts), bytes(row.calls), None)


def followed(decode: Callable[[Row], FullBlock]) -> Iterator[tuple[Row, BlockRows, set[bytes]]]:
    """Every recorded block derived, with code as it is known from the blocks before; and what only state could show."""
    code: dict[bytes, bool] = {}
    for row in recorded():
        full = decode(row)
        rows = derive(
            full, ContractInfo({address: code.get(address, False) for address in contract_lookups(full).code})
        )
        state = dict(zip(ADDRESSES, row.has_code, strict=True))
        unknown = {one.address for one in rows.code_changes if one.has_code is None}
        for one in rows.code_changes:
            code[one.address] = state.get(one.address, False) if one.has_code is None else one.has_code
        assert [code.get(address, False) for address in ADDRESSES] == row.has_code, f"after block {row.number}"
        yield row, rows, unknown


@pytest.mark.parametrize("decode", [by_debug, by_parity])
def test_code_and_call_types(decode: Callable[[Row], FullBlock]) -> None:
    for row, rows, _ in followed(decode):
        assert [tx.call_type for tx in rows.txs] == [one.call_type for one in BLOCKS[row.number - 1]], row.number


@pytest.mark.parametrize("decode", [without_nonces, without_diffs])
def test_code_and_call_types_where_nonces_are_not_reported(decode: Callable[[Row], FullBlock]) -> None:
    """Code is right after every block. In the block of an authorization itself, it is taken to apply."""
    for row, rows, _ in followed(decode):
        for tx, sent in zip(rows.txs, BLOCKS[row.number - 1], strict=True):
            is_later = not any(one.auths for one in BLOCKS[row.number - 1][: tx.tx_index + 1])
            if is_later or (decode is without_diffs and not sent.needs_diffs):
                assert tx.call_type is sent.call_type, row.number


def test_state_is_read_only_where_the_client_tells_too_little() -> None:
    assert not any(unknown for _, _, unknown in followed(by_debug))
    for decode in (by_parity, without_nonces, without_diffs):
        assert any(unknown for _, _, unknown in followed(decode))
    changed = [row.number for row, rows, _ in followed(by_debug) if rows.code_changes]
    assert changed == [1, 3, 5, 7, 8, 14, 16, 18, 21]


# -- authorizations ------------------------------------------------------------------------------------------------


def some_authorization() -> Authorization:
    return by_debug(recorded()[0]).block.txs[0].authorizations[0]


def test_the_authority_is_who_signed() -> None:
    one = some_authorization()
    assert authority_of(one) == ADDRESSES[AUTHORITY]
    for changed in ({"chain_id": 1}, {"address": bytes(20)}, {"nonce": 9}, {"y_parity": 1 - one.y_parity}):
        assert authority_of(msgspec.structs.replace(one, **changed)) != ADDRESSES[AUTHORITY]


@pytest.mark.parametrize(
    "changed",
    [
        {"y_parity": 2},
        {"r": 0},
        {"s": 0},
        {"r": CURVE_ORDER},
        {"s": CURVE_ORDER // 2 + 1},
        {"s": 2**256 - 1},
        {"r": 5},  # no point of the curve
        {"chain_id": 7},
        {"nonce": 2**64 - 1},
    ],
)
def test_authorizations_that_cannot_apply_are_left_out(changed: dict[str, int]) -> None:
    tx = by_debug(recorded()[0]).block.txs[0]
    wrong = msgspec.structs.replace(tx.authorizations[0], **changed)
    assert list(signed_delegations(msgspec.structs.replace(tx, authorizations=(wrong,)))) == []
    both = list(signed_delegations(msgspec.structs.replace(tx, authorizations=(wrong, tx.authorizations[0]))))
    assert both == [(ADDRESSES[AUTHORITY], 0, True)]


# -- a real client -------------------------------------------------------------------------------------------------


@awaited
async def test_a_real_client_followed_live_and_indexed_in_one_run(tmp_path: Path) -> None:
    with anvil(CHAIN, "prague") as client:
        driver = Driver(client)
        driver.start()
        async with asyncio.timeout(LIMIT_S):
            await _live(client, driver, tmp_path / "live.sqlite")
            await _whole(client, tmp_path / "whole.sqlite")


async def _live(client: Anvil, driver: Driver, path: Path) -> None:
    """Block by block."""
    store = open_store(path)
    upstream = EvmUpstream([client.url], client.chain_id, Log())
    it = indexing_of(store, upstream, BlockRange(), roots=True, poll_s=0.05)
    running = asyncio.create_task(it.follower.run())
    try:
        for place, block in enumerate(BLOCKS, 1):
            await asyncio.to_thread(driver.mine, block)
            await _stored(it, running, place)
        await _compare(client, store)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await upstream.close()
        store.close()


async def _stored(it: Indexing, running: "asyncio.Task[None]", place: int) -> None:
    while it.follower.status.tip != place:
        assert not running.done(), running.exception()
        await asyncio.sleep(0.01)


async def _whole(client: Anvil, path: Path) -> None:
    store = open_store(path)
    upstream = EvmUpstream([client.url], client.chain_id, Log())
    try:
        await indexing_of(store, upstream, BlockRange(last=len(BLOCKS)), roots=True).follower.run()
        await _compare(client, store)
    finally:
        await upstream.close()
        store.close()


async def _compare(client: Anvil, store: ChainStore) -> None:
    kinds = store.read("select kind from tx order by tx_at", ())
    assert [CALL_TYPES[kind & 3] for (kind,) in kinds] == [sent.call_type for block in BLOCKS for sent in block]
    for place in range(1, len(BLOCKS) + 1):
        state = await asyncio.to_thread(has_code, client, place)
        for address, has in zip(ADDRESSES, state, strict=True):
            rows = store.read(
                "select has_code from code c join address a on a.id = c.address"
                " where a.address = ? and block <= ? order by block desc limit 1",
                (address, place),
            )
            assert bool(rows and rows[0][0]) == has, (place, address.hex())


def test_the_scenario_has_both_types_of_calls() -> None:
    found = {(bool(sent.auths), sent.call_type) for block in BLOCKS for sent in block}
    assert len(found) == 4
    assert {sent.to for block in BLOCKS for sent in block} >= {AUTHORITY, CALLER}
    assert CallType.CONTRACT_CREATION not in {kind for _, kind in found}
