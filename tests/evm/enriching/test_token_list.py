"""Import of token lists: which of their tokens are stored, and what is refused."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evm.enriching.enrich_scene import Scene, enriched
from tests.evm.enriching.test_feeds import ADDRESS, TOKEN, on, rounds, write
from tests.evm.enriching.web import Web

from icefall.evm.enriching.lists import FeedError
from icefall.evm.enriching.reader import ListedToken, TokenDetails
from icefall.evm.enriching.token_list import TOKENS_MAX, listed_tokens_of

LOGO = "https://e.example/gold.png"
GOLD = {"chainId": 7, "address": TOKEN, "name": "Gold", "symbol": "GLD", "decimals": 9, "logoURI": LOGO}


def document(*tokens: dict[str, Any]) -> dict[str, Any]:
    """A list with the other fields that the format has."""
    version = {"major": 1, "minor": 0, "patch": 0}
    return {"name": "L", "timestamp": "2026-11-18T00:00:00Z", "version": version, "tags": {}, "tokens": list(tokens)}


def parsed(*tokens: dict[str, Any]) -> dict[bytes, ListedToken]:
    return listed_tokens_of(7, json.dumps(document(*tokens)).encode())


def test_a_list_gives_logos_and_what_contracts_do_not_return(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"

    async def work(scene: Scene) -> None:
        write(path, document(GOLD), 1)
        one, reader = rounds(scene, token_list=str(path), chain_id=7)["token_list"], enriched(scene.store)
        await scene.add_tokens([ADDRESS, b"\1" * 20])
        assert await one()
        assert not await one()
        listed = TokenDetails("Gold", "GLD", 9, None, LOGO, is_read=True, is_listed=True)
        assert await reader.priced_tokens([1, 2], "usd") == {1: listed, 2: TokenDetails()}
        await scene.run("update token set name = 'Own', decimals = 0 where token = 1")
        named = msgspec.structs.replace(listed, name="Own", decimals=0)
        assert (await reader.priced_tokens([1], "usd"))[1] == named
        write(path, document(GOLD | {"decimals": -1}), 2)
        assert not await one()  # the previous list stays
        assert (await reader.priced_tokens([1], "usd"))[1].logo_uri == LOGO
        write(path, document(), 3)
        assert await one()
        assert (await reader.priced_tokens([1], "usd"))[1] == TokenDetails("Own", "", 0, is_read=True)
        assert scene.counts.lists_loaded["token_list"] == 2
        assert scene.counts.failures["token_list"] == 1

    on(tmp_path, work)


def test_a_list_from_a_server_is_fetched_once_an_interval(tmp_path: Path) -> None:
    async def work(scene: Scene) -> None:
        async with Web() as web:
            web.page("/t", json.dumps(document(GOLD)))
            settings = {"token_list": f"{web.url}/t?key=secret", "token_list_every_s": 600.0, "chain_id": 7}
            one = rounds(scene, **settings)["token_list"]
            assert await one()
            scene.clock.time += 599
            assert not await one()
            assert len(web.requests) == 1
            web.page("/t", "", 500)
            scene.clock.time += 1
            assert not await one()
            assert scene.rows("select count(*) from listed_token") == [(1,)]
            assert "secret" not in str(scene.log.lines)
            web.page("/t", json.dumps(document()))
            scene.clock.time += 60  # sooner after a failure
            assert await one()
            assert scene.rows("select count(*) from listed_token") == [(0,)]

    on(tmp_path, work)


def test_without_a_list_the_table_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"

    async def work(scene: Scene) -> None:
        write(path, document(GOLD), 1)
        assert await rounds(scene, token_list=str(path), chain_id=7)["token_list"]()
        assert not await rounds(scene)["token_list"]()
        assert scene.rows("select count(*) from listed_token") == [(0,)]

    on(tmp_path, work)


def test_tokens_of_other_chains_are_left_out_whatever_they_are() -> None:
    other = {"chainId": 101, "address": "So11111111111111111111111111111111111111112", "decimals": "x"}
    assert parsed(other, GOLD, {"chainId": 8}, GOLD) == {ADDRESS: ListedToken("Gold", "GLD", 9, LOGO)}


LONG, DATA = "https://a/" + "x" * 2048, "data:text/html;base64,AA"


@pytest.mark.parametrize(
    "logo", ["", None, 5, "javascript:alert(1)", DATA, "logo.png", "https://", "https://a b", LONG]
)
def test_a_bad_logo_is_left_out_and_the_token_stays(logo: object) -> None:
    assert parsed(GOLD | {"logoURI": logo}) == {ADDRESS: ListedToken("Gold", "GLD", 9)}


def test_names_are_as_printable_as_those_of_contracts() -> None:
    (token,) = parsed(GOLD | {"name": "G\u202eo\0ld" + "x" * 300, "logoURI": "ipfs://Qm"}).values()
    assert token == ListedToken("Gold" + "x" * 252, "GLD", 9, "ipfs://Qm")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([{}], "chainId"),
        ([GOLD | {"chainId": "7"}], "not a token list"),
        ([GOLD, GOLD | {"address": "0x12"}], r"tokens\[1\].address: '0x12' is not an address"),
        ([GOLD | {"decimals": 256}], r"tokens\[0\].decimals: 256 is not between 0 and 255"),
        ([GOLD | {"decimals": "9"}], r"tokens\[0\].decimals: Expected `int`"),
        ([GOLD | {"symbol": None}], r"tokens\[0\].symbol: Expected `str`"),
        ([{"chainId": 7, "address": TOKEN, "decimals": 9}], r"tokens\[0\].name is missing"),
        ([GOLD, GOLD | {"address": TOKEN.lower(), "name": "Lead"}], r"tokens\[1\].*listed before"),
    ],
)
def test_invalid_lists(tokens: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(FeedError, match=message):
        parsed(*tokens)


def test_a_list_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert TOKENS_MAX == 100_000
    monkeypatch.setattr("icefall.evm.enriching.token_list.TOKENS_MAX", 1)
    with pytest.raises(FeedError, match="more than 1 tokens of chain 7"):
        parsed(GOLD, GOLD | {"address": "0x" + "01" * 20})


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(FeedError):
        listed_tokens_of(7, b"x" + raw)
