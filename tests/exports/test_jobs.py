"""Export jobs: their files hold what the lists of the API hold, whatever happens while they are written."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.exports.scene import EXPIRY_S, RUNNER, Scene, most_active
from tests.postgres.server import new_prefix, server_url
from tests.webhooks.scene import blocks

from icefall.compose.stores import Stores
from icefall.errors import NotFound, TooManyRequests
from icefall.evm.model import BlockRows
from icefall.evm.reading.directory import EvmChain
from icefall.evm.reading.model import PageRange
from icefall.evm.standards import STANDARDS
from icefall.exports import histories, merging, running, sources
from icefall.exports.model import CANCELLED, COMPLETED, DAY_S, EVM, FAILED, RUNNING, TRUNCATED, day_of
from icefall.exports.registry import LOST_S, RUNNING_MAX
from icefall.exports.rows import COLUMNS, decimal_text, encoded

MANY = 10_000


def in_scene(tmp_path: Path, test: Callable[[Scene], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        scene = Scene(tmp_path, **options)
        try:
            await test(scene)
        finally:
            scene.close()

    asyncio.run(run())


async def listed(chain: EvmChain, address: bytes) -> dict[str, list[tuple[str, ...]]]:
    """What the lists of the API hold, oldest first: the transaction and the place of each row."""
    span = PageRange()
    txs = await chain.lists.txs_of(address, span, MANY)
    calls = await chain.transfers.internals_of(address, span, MANY)
    found: dict[str, list[tuple[str, ...]]] = {
        "transactions": [(f"0x{tx.location.tx_hash.hex()}", str(tx.value)) for tx in reversed(txs)],
        "internal_transactions": [(f"0x{one.location.tx_hash.hex()}", str(one.frame)) for one in reversed(calls)],
    }
    for standard in STANDARDS:
        rows = await chain.lists.transfers_of(standard.number, address, span, MANY)
        texts: list[tuple[str, ...]] = [
            (f"0x{one.location.tx_hash.hex()}", str(one.log_index)) for one in reversed(rows)
        ]
        found[f"{standard.table}_transfers"] = texts
    return found


PLACES = {"transactions": "value", "internal_transactions": "traceIndex"}


def shown(files: dict[str, list[dict[str, str]]], address: bytes) -> dict[str, list[tuple[str, ...]]]:
    own = f"0x{address.hex()}"
    return {
        kind: [(row["txHash"], row[PLACES.get(kind, "logIndex")]) for row in rows if row["address"].lower() == own]
        for kind, rows in files.items()
    }


def test_files_hold_what_the_lists_hold_in_the_order_of_time(tmp_path: Path) -> None:
    async def run(scene: Scene) -> None:
        await scene.put(blocks())
        addresses = most_active(3)
        job = await scene.order(addresses)
        await scene.drain()
        ended, files = await scene.known(job), await scene.files(job)
        assert (ended.status, ended.message) == (COMPLETED, "")
        assert {kind: tuple(rows[0]) for kind, rows in files.items() if rows} == {
            kind: COLUMNS[kind] for kind, rows in files.items() if rows
        }
        assert ended.rows == sum(map(len, files.values())) > 20
        for address in addresses:
            assert shown(files, address) == await listed(scene.chain, address)
        for rows in files.values():
            assert [row["blockNumber"] for row in rows] == sorted((row["blockNumber"] for row in rows), key=int)

    in_scene(tmp_path, run)


def moved_tokens() -> dict[str, dict[bytes, list[tuple[str, str, str]]]]:
    """The transfers of each token as the blocks have them, by the name of the file: block, log and place in a batch."""
    found: dict[str, dict[bytes, list[tuple[str, str, str]]]] = {}
    for rows in blocks():
        number = str(rows.block.number)
        for kind, moves in (
            ("erc20_transfers", rows.erc20_transfers),
            ("erc721_transfers", rows.erc721_transfers),
            ("erc1155_transfers", rows.erc1155_transfers),
        ):
            for one in moves:
                place = (number, str(one.log_index), str(getattr(one, "position", "")))
                found.setdefault(kind, {}).setdefault(one.token, []).append(place)
    return found


@pytest.mark.parametrize(("engine", "page"), [("sqlite", 1), ("sqlite", 500), ("postgres", 20)])
def test_files_of_tokens_hold_all_their_transfers(
    engine: str, page: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "_PAGE_MAX", page)
    monkeypatch.setattr(merging, "_PAGE_MIN", 1)
    expected = moved_tokens()
    assert len(expected) == len(STANDARDS)
    tokens = sorted({one for by_token in expected.values() for one in by_token})

    async def run(scene: Scene) -> None:
        await scene.put(blocks())
        job = await scene.order_tokens(tokens)
        await scene.drain()
        ended, files = await scene.known(job), await scene.files(job)
        assert (ended.status, ended.message) == (COMPLETED, "")
        assert files["transactions"] == files["internal_transactions"] == []
        for kind, by_token in expected.items():
            shown_rows: dict[str, list[tuple[str, str, str]]] = {}
            for row in files[kind]:
                place = (row["blockNumber"], row["logIndex"], row.get("batchIndex", ""))
                shown_rows.setdefault(row["address"].lower(), []).append(place)
                assert row["tokenAddress"] == row["address"]
                assert row["direction"] == "" or row["address"] in (row["from"], row["to"])
            assert shown_rows == {f"0x{token.hex()}": places for token, places in by_token.items()}

    if engine == "sqlite":
        in_scene(tmp_path, run)
    else:
        with closing(Stores(tmp_path, server_url(), new_prefix())) as stores:
            in_scene(tmp_path, run, stores=stores)


def test_small_pages_and_steps_give_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(scene: Scene) -> None:
        await scene.put(blocks())
        job = await scene.order(most_active(2))
        await scene.drain()
        expected = await scene.files(job)
        monkeypatch.setattr(merging, "_PAGE_MAX", 2)
        monkeypatch.setattr(merging, "_PAGE_MIN", 1)
        monkeypatch.setattr(running, "_WRITTEN", 3)
        again = await scene.order(most_active(2))
        assert again.id != job.id
        await scene.drain()
        assert await scene.files(again) == expected

    in_scene(tmp_path, run)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_job_that_was_killed_goes_on_where_it_was_stored(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the middle of a turn: rows that were written and not stored are cut off."""
    monkeypatch.setattr(running, "_WRITTEN", 1)

    async def run(scene: Scene) -> None:
        await scene.put(blocks())
        addresses = most_active(2)
        job = await scene.order(addresses)
        await scene.drain()
        expected = await scene.files(job)
        second = await scene.order(addresses)
        runner = scene.runner()
        real, calls = histories.READERS["erc20_transfers"], 0

        async def killed(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > 1:
                raise KeyboardInterrupt
            return await real(*args)

        monkeypatch.setitem(histories.READERS, "erc20_transfers", killed)
        with pytest.raises(KeyboardInterrupt):
            await runner.step()
        left = scene.export_dir / second.id / "transactions.csv"
        assert left.stat().st_size > len(encoded([COLUMNS["transactions"]]))
        monkeypatch.setitem(histories.READERS, "erc20_transfers", real)
        await scene.drain()
        assert await scene.files(second) == expected

    if engine == "sqlite":
        in_scene(tmp_path, run)
        return
    with closing(Stores(tmp_path, server_url(), new_prefix())) as stores:
        in_scene(tmp_path, run, stores=stores)


def test_blocks_that_come_later_are_not_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last block is fixed when a job begins, also where it is stopped and goes on later."""

    async def run(scene: Scene) -> None:
        every = blocks()
        await scene.put(every[:20])
        [address] = most_active(1)
        before = await listed(scene.chain, address)
        job = await scene.order([address])
        runner = scene.runner()
        await runner._registry.next(RUNNER, [EVM], scene.now)
        state = await runner._begin(job, 0)
        await scene.jobs.put_state(job.id, RUNNER, state, scene.now)
        await scene.put(every[20:])
        assert await listed(scene.chain, address) != before
        await scene.drain()
        assert shown(await scene.files(job), address) == before

    in_scene(tmp_path, run)


def test_a_job_whose_last_block_is_rolled_back_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "DISTANCE", 0)

    async def run(scene: Scene) -> None:
        every = blocks()
        await scene.put(every)
        [address] = most_active(1)
        job = await scene.order([address])
        runner = scene.runner()
        state = await runner._begin(job, 0)
        await scene.jobs.next(RUNNER, [EVM], scene.now)
        await scene.jobs.put_state(job.id, RUNNER, state, scene.now)
        await scene.store.roll_back(every[-3].block.number)
        await scene.drain(runner)
        ended = await scene.known(job)
        assert ended.status == COMPLETED
        assert ended.decoded_state is not None
        assert ended.decoded_state.tries == 1
        assert shown(await scene.files(job), address) == await listed(scene.chain, address)

    in_scene(tmp_path, run)


@cache
def over_days() -> tuple[BlockRows, ...]:
    """The recorded blocks as if four of them were made in a day."""
    return tuple(
        msgspec.structs.replace(one, block=msgspec.structs.replace(one.block, time=1_700_000_000 + number * DAY_S // 4))
        for number, one in enumerate(blocks())
    )


def test_too_many_rows_end_at_a_day_and_the_next_export_begins_there(tmp_path: Path) -> None:
    async def run(scene: Scene) -> None:
        await scene.put(over_days())
        [address] = most_active(1)
        whole = await scene.order([address])
        await scene.drain()
        files, total = await scene.files(whole), (await scene.known(whole)).rows
        times = [int(row["blockTimestamp"]) for rows in files.values() for row in rows]
        job = await scene.order([address])
        await scene.drain(scene.runner(rows_max=total - 1))
        ended = await scene.known(job)
        assert (ended.status, f"without {ended.next_date}" in ended.message) == (TRUNCATED, True)
        end = day_of(ended.next_date)
        assert ended.rows == sum(time < end * DAY_S for time in times) < total
        assert ended.rows + sum(time // DAY_S == end for time in times) > total - 1
        rest = await scene.order([address], first_day=end)
        await scene.drain()
        first, second = await scene.files(job), await scene.files(rest)
        assert {kind: first[kind] + second[kind] for kind in files} == files

    in_scene(tmp_path, run)


def test_a_day_that_is_too_large_fails(tmp_path: Path) -> None:
    async def run(scene: Scene) -> None:
        await scene.put(blocks())
        job = await scene.order(most_active(1))
        await scene.drain(scene.runner(rows_max=1))
        ended = await scene.known(job)
        assert (ended.status, ended.file) == (FAILED, "")
        assert "alone has more than 1 rows" in ended.message
        assert not (scene.export_dir / job.id).exists()

    in_scene(tmp_path, run)


def test_days_bound_the_rows_and_the_last_one_is_included(tmp_path: Path) -> None:
    async def run(scene: Scene) -> None:
        await scene.put(over_days())
        [address] = most_active(1)
        txs = await scene.chain.lists.txs_of(address, PageRange(), MANY)
        day = txs[len(txs) // 2].location.time // DAY_S
        days: tuple[dict[str, int], ...] = (
            {"first_day": day, "last_day": day},
            {"last_day": day - 1},
            {"first_day": day + 1},
            {},
        )
        jobs = [await scene.order([address], str(number), **one) for number, one in enumerate(days)]
        await scene.drain()
        only, early, late, whole = [(await scene.files(one))["transactions"] for one in jobs]
        assert {int(row["blockTimestamp"]) // DAY_S for row in only} == {day}
        assert early + only + late == whole
        assert min(map(len, (early, only, late))) > 0

    in_scene(tmp_path, run)


def test_the_same_request_is_the_same_job_while_it_runs_and_owners_have_a_limit(tmp_path: Path) -> None:
    async def run(scene: Scene) -> None:
        await scene.put(blocks()[:3])
        one = await scene.order([b"\x01" * 20], "alice")
        assert (await scene.order([b"\x01" * 20], "alice")).id == one.id
        assert (await scene.order([b"\x01" * 20], "bob")).id != one.id
        for number in range(1, RUNNING_MAX):
            await scene.order([bytes([number + 1]) * 20], "alice")
        with pytest.raises(TooManyRequests):
            await scene.order([b"\x77" * 20], "alice")
        with pytest.raises(NotFound):
            await scene.jobs.owned("bob", one.id)
        await scene.drain()
        assert (await scene.order([b"\x01" * 20], "alice")).id != one.id

    in_scene(tmp_path, run)


def test_a_cancelled_job_ends_and_its_files_are_removed(tmp_path: Path) -> None:
    async def run(scene: Scene) -> None:
        await scene.put(blocks())
        running_one, ended = await scene.order(most_active(1)), await scene.order(most_active(2))
        await scene.jobs.cancel(running_one, scene.now)
        await scene.drain()
        assert (await scene.known(running_one)).status == CANCELLED
        folder = scene.export_dir / ended.id
        assert [path.suffix for path in folder.iterdir()] == [".zip"]
        scene.now += 1
        await scene.jobs.cancel(await scene.known(ended), scene.now)
        await scene.runner().clean()
        assert not folder.exists()
        assert (await scene.known(ended)).file == ""

    in_scene(tmp_path, run)


def test_files_expire(tmp_path: Path) -> None:
    async def run(scene: Scene) -> None:
        await scene.put(blocks())
        job = await scene.order(most_active(1))
        await scene.drain()
        stray = scene.export_dir / "11111111-2222-4333-8444-555555555555"
        stray.mkdir()
        await scene.runner().clean()
        assert (scene.export_dir / job.id).exists()
        assert not stray.exists()
        scene.now += EXPIRY_S + 1
        await scene.runner().clean()
        assert not (scene.export_dir / job.id).exists()
        assert await scene.jobs.used_bytes() == 0

    in_scene(tmp_path, run)


def test_room_is_bounded(tmp_path: Path) -> None:
    async def run(scene: Scene) -> None:
        await scene.put(blocks())
        job = await scene.order(most_active(1))
        await scene.drain()
        assert (await scene.known(job)).status == COMPLETED
        waiting = await scene.order(most_active(2))
        scene.jobs.bytes_max = 1
        with pytest.raises(TooManyRequests):
            await scene.order(most_active(3))
        await scene.drain()
        ended = await scene.known(waiting)
        assert (ended.status, "room for exports" in ended.message) == (FAILED, True)
        assert (await scene.known(job)).file

    in_scene(tmp_path, run)


def test_a_lost_folder_is_written_anew_and_one_of_another_folder_is_taken_over_late(tmp_path: Path) -> None:
    async def run(scene: Scene) -> None:
        await scene.put(blocks())
        job = await scene.order(most_active(1))
        runner = scene.runner()
        taken = await scene.jobs.next("another folder", [EVM], scene.now)
        assert taken is not None
        state = await runner._begin(job, 0)
        await scene.jobs.put_state(
            job.id, "another folder", type(state)(**{**_fields(state), "sizes": {"transactions": 10_000}}), scene.now
        )
        await scene.drain()
        assert (await scene.known(job)).status == RUNNING
        scene.now += LOST_S + 1
        await scene.drain()
        assert (await scene.known(job)).status == COMPLETED

    in_scene(tmp_path, run)


def _fields(state: Any) -> dict[str, Any]:
    return {name: getattr(state, name) for name in state.__struct_fields__}


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [(0, 18, "0"), (1, 18, "0." + "0" * 17 + "1"), (1_500_000, 6, "1.5"), (10**30, 0, str(10**30)), (7, None, "")],
)
def test_amounts_are_exact(value: int, decimals: int | None, text: str) -> None:
    assert decimal_text(value, decimals) == text
