"""Import of prices and reputations from files and servers into their tables."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evm.enriching.enrich_scene import Scene, enriched
from tests.evm.enriching.web import Web

from icefall.evm.enriching.lists import FeedError, prices_of, reputations_of
from icefall.evm.enriching.loops import EnrichSettings, rounds_of
from icefall.evm.enriching.reader import CURRENCIES, NATIVE_ADDRESS
from icefall.upstream.evm.upstream import EvmUpstream

TOKEN = "0x" + "aB" * 20
ADDRESS = bytes.fromhex("ab" * 20)
DAY_20000 = 20_000 * 86_400  # 2024-10-04


def document(value: str = "25.10") -> dict[str, Any]:
    return {
        "currencies": {
            "usd": {
                "native": {"current": value, "daily": {"2024-10-03": "24", "2024-10-04": "24.5"}},
                TOKEN: {"current": "0.000000000000000001"},
            },
            "nzd": {"native": {"daily": {"1970-01-01": "0"}}},
        }
    }


def rounds(scene: Scene, **settings: Any) -> dict[str, Callable[[], Awaitable[bool]]]:
    upstream = EvmUpstream(["http://127.0.0.1:9"], 1, scene.log)
    return rounds_of(
        scene.store, upstream, EnrichSettings(**settings), scene.log, counts=scene.counts, clock=scene.clock
    )


def on(tmp_path: Path, work: Callable[[Scene], Awaitable[None]]) -> None:
    async def run() -> None:
        scene = Scene(tmp_path / "c.db")
        with closing(scene.store):
            await work(scene)

    asyncio.run(run())


def write(path: Path, content: Any, second: int) -> None:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    os.utime(path, (second, second))


def test_prices_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"

    async def work(scene: Scene) -> None:
        write(path, document(), 1)
        one, reader = (
            rounds(scene, prices=str(path))["prices"],
            enriched(scene.store),
        )
        assert await one()
        assert not await one()
        assert await reader.native_price("usd") == "25.10"
        await scene.add_tokens([ADDRESS, b"\1" * 20])
        for currency, price in (("usd", "0.000000000000000001"), ("eur", None)):
            details = await reader.priced_tokens([1, 2], currency)
            assert [details[token].price for token in (1, 2)] == [price, None]
        for time, value in ((DAY_20000 - 1, "24"), (DAY_20000, "24.5"), (DAY_20000 + 86_399, "24.5")):
            assert await reader.historic_price(NATIVE_ADDRESS, "usd", time) == value
        assert await reader.historic_price(NATIVE_ADDRESS, "usd", DAY_20000 + 86_400) is None
        assert await reader.historic_price(NATIVE_ADDRESS, "nzd", 5) == "0"
        write(path, document("26"), 2)
        assert await one()
        assert await reader.native_price("usd") == "26"
        write(path, {"currencies": {"eur": {"native": {"current": "1"}}}}, 3)
        assert await one()
        assert scene.rows("select * from price") == [(b"", "eur", -1, "1")]
        assert scene.counts.lists_loaded["prices"] == 3

    on(tmp_path, work)


def test_an_invalid_file_keeps_the_previous_prices_and_is_logged_once(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"

    async def work(scene: Scene) -> None:
        one = rounds(scene, prices=str(path))["prices"]
        for _ in range(3):
            assert not await one()
        assert len(scene.log.lines) == 1  # no such file
        write(path, document(), 1)
        assert await one()
        good = scene.rows("select * from price")
        for second, bad in enumerate(("nonsense", "{", "[]", '{"currencies":{"usd":{"native":{"current":12}}}}'), 2):
            write(path, bad, second)
            for _ in range(3):
                assert not await one()
            assert scene.rows("select * from price") == good
        assert len(scene.log.lines) == 5
        path.unlink()
        assert not await one()
        assert scene.rows("select * from price") == good
        write(path, document(), 1)
        assert await one()
        assert scene.counts.failures["prices"] == 3 + 4 + 1

    on(tmp_path, work)


def test_without_a_source_the_tables_are_empty(tmp_path: Path) -> None:
    path = tmp_path / "list.json"

    async def work(scene: Scene) -> None:
        write(path, document(), 1)
        assert await rounds(scene, prices=str(path))["prices"]()
        write(path, {"Malicious": [TOKEN]}, 2)
        assert await rounds(scene, reputation=str(path))["reputation"]()
        for name in ("prices", "reputation"):
            assert not await rounds(scene)[name]()
        assert scene.rows("select count(*) from price") == scene.rows("select count(*) from reputation") == [(0,)]

    on(tmp_path, work)


def test_prices_from_a_server(tmp_path: Path) -> None:
    async def work(scene: Scene) -> None:
        async with Web() as web:
            web.page("/p", json.dumps(document()))
            one = rounds(scene, prices=f"{web.url}/p?key=secret", prices_every_s=600.0)["prices"]
            assert await one()
            assert not await one()
            scene.clock.time += 599
            assert not await one()
            assert len(web.requests) == 1
            scene.clock.time += 1
            assert not await one()  # fetched, and unchanged
            web.page("/p", json.dumps(document("99")))
            scene.clock.time += 600
            assert await one()
            good = scene.rows("select * from price")
            for body, status in (("", 500), ("{}", 200), ("x" * 100, 200)):
                web.page("/p", body, status)
                scene.clock.time += 600
                assert not await one()
            assert scene.rows("select * from price") == good
            assert len(scene.log.lines) == 3
            assert "secret" not in str(scene.log.lines)
            web.page("/p", "", 500)
            scene.clock.time += 600
            assert not await one()
            web.page("/p", json.dumps(document("100")))
            scene.clock.time += 60  # sooner after a failure
            assert await one()
            assert await enriched(scene.store).native_price("usd") == "100"

    on(tmp_path, work)


def test_reputations(tmp_path: Path) -> None:
    path = tmp_path / "reputation.json"

    async def work(scene: Scene) -> None:
        write(path, {"Malicious": [TOKEN, TOKEN.lower()], "Benign": ["0x" + "01" * 20]}, 1)
        one = rounds(scene, reputation=str(path))["reputation"]
        stored = "select token_address, reputation from reputation"
        assert await one()
        assert dict(scene.rows(stored)) == {ADDRESS: "Malicious", b"\1" * 20: "Benign"}
        write(path, {"Benign": [TOKEN]}, 2)
        assert await one()
        assert dict(scene.rows(stored)) == {ADDRESS: "Benign"}

    on(tmp_path, work)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("", "not a list of prices"),
        ("[]", "not a list of prices"),
        ("{}", "currencies"),
        ('{"currencies":{},"x":1}', "unknown field"),
        ('{"currencies":{"xyz":{}}}', "'xyz' is not one of usd, eur"),
        ('{"currencies":{"USD":{}}}', "'USD' is not one of"),
        ('{"currencies":{"usd":{"0x12":{}}}}', "currencies.usd.0x12: expected native or an address"),
        ('{"currencies":{"usd":{"native":{"curent":"1"}}}}', "unknown field"),
        ('{"currencies":{"usd":{"native":{"daily":{"2024-02-30":"1"}}}}}', "'2024-02-30' is not a day"),
        ('{"currencies":{"usd":{"native":{"daily":{"20240101":"1"}}}}}', "'20240101' is not a day"),
        ('{"currencies":{"usd":{"native":{"daily":{"1969-12-31":"1"}}}}}', "is not a day"),
        (
            '{"currencies":{"usd":{"0x' + "ab" * 20 + '":{"current":"1"},"0x' + "AB" * 20 + '":{"current":"2"}}}}',
            "twice",
        ),
    ]
    + [
        ('{"currencies":{"usd":{"native":{"current":"' + value + '"}}}}', "is not a price")
        for value in (
            "",
            "-1",
            "+1",
            "1.",
            ".5",
            "01",
            "1e5",
            "NaN",
            "Infinity",
            "1,5",
            " 1",
            "1" * 31,
            "0." + "1" * 31,
            "٣",
        )
    ],
)
def test_invalid_prices(raw: str, message: str) -> None:
    with pytest.raises(FeedError) as caught:
        prices_of(raw.encode())
    assert message in str(caught.value)


@pytest.mark.parametrize("raw", ["", "[]", '{"Bad":[]}', '{"Malicious":["0x1"]}', '{"Malicious":"x"}'])
def test_invalid_reputations(raw: str) -> None:
    with pytest.raises(FeedError):
        reputations_of(raw.encode())
    with pytest.raises(FeedError, match="both"):
        reputations_of(json.dumps({"Malicious": [TOKEN], "Benign": [TOKEN.lower()]}).encode())


def test_there_are_14_currencies() -> None:
    assert len(set(CURRENCIES)) == 14


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(raw: bytes) -> None:
    for parse in (prices_of, reputations_of):
        with pytest.raises(FeedError):
            parse(b"x" + raw)
