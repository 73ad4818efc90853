"""What explorers need: single NFTs and collections, search, tokens, prices and balances over time.

Compared with the recordings: their state, their contracts' answers and the prices that the scene makes up.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.data_naive import Naive, address_text, naive
from tests.api.data_scene import (
    DAY_PRICE,
    NATIVE_PRICES,
    TOKEN_PRICE,
    Served,
    chain_id,
    data_server,
    erc20_tokens,
    walked,
)
from tests.api.test_data_balances import hexed, holders
from tests.upstream.evm_recording import recorded_state

from icefall.metrics.rollup import SPAN_NAMES, period_of, start_of

CHAINS = ("cchain-1", "anvil-1")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with data_server(tmp_path_factory.mktemp("explorer"), chains=CHAINS) as program:
        yield program


@pytest.fixture(params=CHAINS)
def recorded(request: pytest.FixtureRequest) -> Naive:
    return naive(request.param)


def base(recorded: Naive) -> str:
    return f"/v1/chains/{recorded.id}"


# -- NFTs ------------------------------------------------------------------------------------------------------------


def moved_nfts(recorded: Naive) -> dict[bytes, dict[int, str]]:
    """By contract: every token ID that ever moved, and its standard."""
    found: dict[bytes, dict[int, str]] = {}
    for one in recorded.blocks:
        for standard, moves in (("ERC-721", one.rows.erc721_transfers), ("ERC-1155", one.rows.erc1155_transfers)):
            for move in moves:
                found.setdefault(move.token, {})[move.token_id] = standard
    return found


def test_the_tokens_of_a_collection(recorded: Naive, served: Served) -> None:
    state, last, owners = recorded_state(recorded.chain), recorded.blocks[-1].rows.block.number, 0
    collections = moved_nfts(recorded)
    assert len(collections) > 1
    for contract, ids in collections.items():
        path = f"{base(recorded)}/nfts/collections/{address_text(contract)}/tokens"
        listed = walked(served, path, "tokens", 3)
        assert [(int(one["tokenId"]), one["ercType"]) for one in listed] == sorted(ids.items())
        for one in listed[:10]:
            assert served.result(f"{path}/{one['tokenId']}") == one
            owner = state.at(last, "erc721", hexed(contract), one["tokenId"])
            if owner is not None:
                owned = int(owner, 16) != 0
                assert one.get("ownerAddress", "").lower() == (owner.lower() if owned else "")
                owners += owned
            assert one["address"] == address_text(contract)
    assert owners


def test_an_nft_that_does_not_exist(recorded: Naive, served: Served) -> None:
    contract = address_text(min(moved_nfts(recorded)))
    missing = served.get(f"{base(recorded)}/nfts/collections/{contract}/tokens/{2**255}")
    assert missing.status == 404
    assert missing.json()["message"] == f"chain {recorded.id} has no indexed NFT {2**255} of contract {contract}"
    coin = address_text(erc20_tokens(recorded.chain)[0])
    assert served.result(f"{base(recorded)}/nfts/collections/{coin}/tokens") == {"tokens": []}
    wrong = served.get(f"{base(recorded)}/nfts/collections/{contract}/tokens/{2**256}")
    assert wrong.status == 400


def test_reindexing_needs_an_indexer_and_a_known_caller(recorded: Naive, served: Served) -> None:
    contract, ids = min(moved_nfts(recorded).items())
    path = f"{base(recorded)}/nfts/collections/{address_text(contract)}/tokens/{min(ids)}:reindex"

    def post(target: str, **headers: str) -> Any:
        return served.server.ask("POST", target, headers=headers, listener="data")

    away = post(path)  # only a listener runs here
    assert away.status == 503
    assert f"the indexer of chain {recorded.id} cannot be reached" in away.json()["message"]
    assert post(path, Origin="https://other.example").status == 401  # a website that uses the caller's browser
    assert post(path, Origin=served.server.url("data")).status == 503
    assert post(path.replace(f"/{min(ids)}:", f"/{2**255}:")).status == 404
    assert served.get(path).status == 405


# -- search ----------------------------------------------------------------------------------------------------------


def found(served: Served, text: str, **more: Any) -> list[Any]:
    asked = "".join(f"&{key}={value}" for key, value in more.items())
    return list(served.result(f"/v1/search?query={text}{asked}")["results"])


def test_search_by_hash_and_number(recorded: Naive, served: Served) -> None:
    tx = recorded.txs[len(recorded.txs) // 2]["here"]
    here = {"chainId": recorded.id, "chainName": f"Chain {recorded.id}"}
    shown = {"blockNumber": tx["blockNumber"], "blockTimestamp": tx["blockTimestamp"]}
    assert found(served, tx["txHash"]) == [{"type": "transaction", "txHash": tx["txHash"], **here, **shown}]
    block = {"type": "block", "blockHash": tx["blockHash"], **here, **shown}
    assert found(served, tx["blockHash"]) == [block]
    assert block in found(served, tx["blockNumber"])
    assert found(served, "0x" + "11" * 32) == []


def test_search_by_address(recorded: Naive, served: Served) -> None:
    chain = {"chainId": recorded.id, "chainName": f"Chain {recorded.id}"}
    sender = recorded.txs[0]["native"]["from"]["address"]
    expected = {"type": "address", "address": sender, "isContract": False, **chain}
    assert expected in found(served, sender.lower())
    token = erc20_tokens(recorded.chain)[0]
    expected = {"type": "token", "address": address_text(token), "ercType": "ERC-20", **recorded.known(token), **chain}
    assert expected in found(served, hexed(token))
    assert found(served, "0x" + "77" * 20) == []


def test_search_by_name_and_symbol(recorded: Naive, served: Served) -> None:
    """Any part of either is enough, in any case."""
    named = {token: recorded.facts(token) for token in recorded.tokens}
    for name, symbol, _ in named.values():
        for text in (name[:3], symbol, name[-3:], name[1:4]):
            if not text.isascii() or not text.isalnum():
                continue
            results = found(served, text.swapcase(), pageSize=50)
            here = {one["address"] for one in results if one["chainId"] == recorded.id and one["type"] == "token"}
            low = text.lower()
            assert here == {
                address_text(token)
                for token, (its_name, its_symbol, _) in named.items()
                if low in its_name.lower() or low in its_symbol.lower()
            }, text


def test_search_by_the_beginning_of_a_hash_or_an_address(recorded: Naive, served: Served) -> None:
    """Six digits are enough, with and without 0x, in any case; fewer are not looked for."""
    tx, sender = recorded.txs[-1]["here"], recorded.txs[0]["native"]["from"]["address"]
    for whole, key in ((tx["txHash"], "txHash"), (tx["blockHash"], "blockHash"), (sender, "address")):
        [exact] = [one for one in found(served, whole) if one["chainId"] == recorded.id]
        assert exact[key] == whole
        assert exact in found(served, whole[2:].upper())
        for digits in (6, 7, 9, len(whole) - 3):
            begun = found(served, whole[: 2 + digits], pageSize=50)
            assert exact in begun
            assert exact in found(served, whole[2 : 2 + digits].upper(), pageSize=50)
            shown = [one.get("txHash") or one.get("blockHash") or one.get("address") for one in begun]
            assert all(one.lower().startswith(whole[: 2 + digits].lower()) for one in shown)
        assert exact not in found(served, whole[:7], pageSize=50)


def test_search_by_number_in_other_notations(recorded: Naive, served: Served) -> None:
    number = max(int(one["here"]["blockNumber"]) for one in recorded.txs)
    [block] = [one for one in found(served, str(number)) if one["chainId"] == recorded.id and one["type"] == "block"]
    assert block in found(served, hex(number))
    assert block in found(served, f"{number:,}")
    assert found(served, "1,9,68") == found(served, "1,96") == []


def test_search_by_the_name_of_a_chain(recorded: Naive, served: Served) -> None:
    chain = {"type": "chain", "chainId": recorded.id, "chainName": f"Chain {recorded.id}"}
    for text in (recorded.id, f"AIN%20{recorded.id}"):
        [first] = [one for one in found(served, text) if one["chainId"] == recorded.id and one["type"] == "chain"]
        assert {key: first[key] for key in chain} == chain
    assert first in found(served, first["symbol"].lower(), pageSize=50)


@pytest.mark.parametrize(
    "query", ["", "query=", "query=%20", "query=a%0ab", f"query={'x' * 101}", "query=a&pageSize=51"]
)
def test_what_cannot_be_searched(query: str, served: Served) -> None:
    assert served.get(f"/v1/search?{query}").status == 400


def test_a_search_for_wildcards_is_literal(served: Served) -> None:
    assert found(served, "%25") == found(served, "_") == []


# -- tokens and prices -----------------------------------------------------------------------------------------------


def test_the_tokens_of_a_chain(recorded: Naive, served: Served) -> None:
    listed = walked(served, f"{base(recorded)}/tokens", "tokens", 4)
    moved = {move.token for one in recorded.blocks for move in recorded._moves(one)}
    assert {one["address"] for one in listed} >= {address_text(token) for token in moved}
    assert len({one["address"] for one in listed}) == len(listed)
    first_blocks = [int(one["firstBlock"]) for one in listed]
    assert first_blocks == sorted(first_blocks, reverse=True)
    for one in listed:
        token = bytes.fromhex(one["address"][2:])
        assert {key: one[key] for key in ("name", "symbol", "decimals") if key in one} == recorded.known(token)
        assert one.get("price") == ({"currencyCode": "usd", "value": TOKEN_PRICE} if token == recorded.priced else None)
    for standard in ("ERC-20", "ERC-721", "ERC-1155"):
        of_standard = walked(served, f"{base(recorded)}/tokens?ercType={standard}", "tokens", 2)
        assert of_standard == [one for one in listed if one["ercType"] == standard]


def test_prices_by_day(recorded: Naive, served: Served) -> None:
    days = sorted({one.rows.block.time // 86400 for one in recorded.blocks if one.rows.block.time >= 86400})
    expected: list[Any] = [{"timestamp": day * 86400, "value": DAY_PRICE} for day in reversed(days)]
    page = served.result(f"{base(recorded)}/tokens/native/prices")
    assert (page["currencyCode"], page["currentPrice"]) == ("usd", NATIVE_PRICES["usd"])
    assert walked(served, f"{base(recorded)}/tokens/native/prices", "prices", 7) == expected
    frame = f"startTimestamp={days[0] * 86400}&endTimestamp={days[-1] * 86400}"
    inside = walked(served, f"{base(recorded)}/tokens/native/prices?{frame}", "prices", 7)
    assert inside == [one for one in expected if one["timestamp"] < days[-1] * 86400]
    coin = address_text(recorded.priced)
    assert served.result(f"{base(recorded)}/tokens/{coin}/prices") == {
        "currencyCode": "usd",
        "currentPrice": TOKEN_PRICE,
        "prices": [],
    }
    euros = served.result(f"{base(recorded)}/tokens/native/prices?currency=eur")
    assert euros == {"currencyCode": "eur", "currentPrice": NATIVE_PRICES["eur"], "prices": []}


# -- balances over time ----------------------------------------------------------------------------------------------


def history_of(recorded: Naive, address: bytes) -> str:
    return f"{base(recorded)}/addresses/{address_text(address)}/balances:listHistory"


def test_native_balance_at_every_change(recorded: Naive, served: Served) -> None:
    state = recorded_state(recorded.chain)
    times = {one.rows.block.number: one.rows.block.time for one in recorded.blocks}
    for address in holders(recorded)[:6]:
        listed = walked(served, history_of(recorded, address), "history", 20)
        numbers = [int(one["blockNumber"]) for one in listed]
        assert numbers == sorted(numbers, reverse=True)
        for one in listed:
            number = int(one["blockNumber"])
            assert one["timestamp"] == times[number]
            assert one["balance"] == (state.at(number, "native", hexed(address)) or "0")
        after = [(one.rows.block.number, it.address) for one in recorded.blocks for it in one.rows.native_after]
        assert {number for number, changed in after if changed == address} <= set(numbers)


@pytest.mark.parametrize("interval", SPAN_NAMES)
def test_balances_by_period(interval: str, recorded: Naive, served: Served) -> None:
    state, span = recorded_state(recorded.chain), SPAN_NAMES.index(interval)
    blocks = [one.rows.block for one in recorded.blocks[1:]]  # block 0 belongs to no period
    periods = range(period_of(span, blocks[0].time), period_of(span, blocks[-1].time) + 1)[-40:]
    coin = erc20_tokens(recorded.chain)[0]
    for address in holders(recorded)[:3]:
        for asked, path in (("", ["native"]), (f"&contractAddress={hexed(coin)}", ["erc20", hexed(coin)])):
            target = (
                f"{history_of(recorded, address)}?timeInterval={interval}&startTimestamp={start_of(span, periods[0])}"
            )
            listed = walked(served, target + asked, "history", 9)
            held = [state.at(block.number, *path, hexed(address)) or "0" for block in blocks]
            if asked and not listed:
                assert set(held) == {"0"}
                continue
            assert [one["timestamp"] for one in listed] == [start_of(span, period) for period in reversed(periods)]
            for one in listed:
                last = max(
                    index for index, block in enumerate(blocks)
                    if block.time < start_of(span, period_of(span, one["timestamp"]) + 1)
                )  # fmt: skip
                assert (one["blockNumber"], one["balance"]) == (str(blocks[last].number), held[last])


def test_token_balance_at_every_change(recorded: Naive, served: Served) -> None:
    state, coin, seen = recorded_state(recorded.chain), erc20_tokens(recorded.chain)[0], 0
    for address in holders(recorded):
        listed = walked(served, f"{history_of(recorded, address)}?contractAddress={hexed(coin)}", "history", 7)
        for one in listed:
            assert one["balance"] == (state.at(int(one["blockNumber"]), "erc20", hexed(coin), hexed(address)) or "0")
        seen += len(listed)
    assert seen


def test_a_time_frame_of_changes(recorded: Naive, served: Served) -> None:
    changed = [it.address for one in recorded.blocks for it in one.rows.native_after]
    address = max(holders(recorded), key=changed.count)
    whole = walked(served, history_of(recorded, address), "history", 100)
    start, end = whole[-2]["timestamp"], whole[1]["timestamp"]
    inside = walked(served, f"{history_of(recorded, address)}?startTimestamp={start}&endTimestamp={end}", "history", 9)
    assert inside == [one for one in whole if start <= one["timestamp"] < end]
    assert inside
    turned = served.get(f"{history_of(recorded, address)}?startTimestamp={end}&endTimestamp={start}")
    assert turned.status == 400


# -- the index -------------------------------------------------------------------------------------------------------


def test_how_far_the_index_is(recorded: Naive, served: Served) -> None:
    shown = served.result(f"{base(recorded)}/indexing")
    last = recorded.blocks[-1].rows.block.number
    assert (shown["chainId"], shown["firstBlock"], shown["lastBlock"]) == (chain_id(recorded.chain), "0", str(last))
    assert not shown["isRunning"]  # the scene has indexed it and stopped
    assert shown["problem"]
