"""URIs, metadata and owners of NFTs; prices and index status in both dialects."""

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from tests.api.data_naive import address_text, naive
from tests.api.data_scene import NATIVE_PRICES, TOKEN_PRICE, Served, data_server, erc20_tokens, walked
from tests.evm.recordings import tokens, unhex
from tests.upstream.evm_recording import recorded_state

from icefall.api.dialect import DIALECTS
from icefall.evm.contract_calls import string_of
from icefall.evm.enriching.nft_outcomes import IndexStatus

CHAIN, ID = "cchain-1", "43112"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Served]]:
    interface, live = DIALECTS
    with (
        data_server(tmp_path_factory.mktemp(interface), chains=(CHAIN,)) as one,
        data_server(tmp_path_factory.mktemp(live), f"--dialect={live}", chains=(CHAIN,)) as other,
    ):
        yield {interface: one, live: other}


def nfts(served: Served, kind: str) -> dict[tuple[str, str], Any]:
    """Every token that ever moved, as transfers show it now."""
    found: dict[tuple[str, str], Any] = {}
    for token in sorted(naive(CHAIN).tokens):
        for item in walked(served, f"/v1/chains/{ID}/tokens/{address_text(token)}/transfers", "transfers"):
            if kind in item:
                answered = found.setdefault((item[kind]["address"], item[kind]["tokenId"]), item[kind])
                assert answered == item[kind]
    return found


def document(uri: str) -> Any:
    head, _, body = uri.partition(",")
    return json.loads(b64decode(body) if head.endswith(";base64") else unquote_to_bytes(body))


def test_metadata_in_the_uri_itself_is_shown(programs: dict[str, Served]) -> None:
    read = 0
    for kind in ("erc721Token", "erc1155Token"):
        for answered in nfts(programs["interface"], kind).values():
            metadata = answered["metadata"]
            if metadata["indexStatus"] != "indexed":
                assert set(metadata) <= {"indexStatus", "metadataLastUpdatedTimestamp"}
                continue
            read += 1
            metadata_json = document(answered["tokenUri"])
            assert metadata["name"] == metadata_json["name"]
            assert isinstance(metadata["metadataLastUpdatedTimestamp"], int)
            if "attributes" in metadata_json and kind == "erc721Token":
                assert json.loads(metadata["attributes"]) == metadata_json["attributes"]
            assert ("attributes" in metadata, "properties" in metadata, "decimals" in metadata) == (
                kind == "erc721Token" and "attributes" in metadata_json,
                kind == "erc1155Token" and "properties" in metadata_json,
                kind == "erc1155Token" and "decimals" in metadata_json,
            )
    assert read > 5


def test_uris_are_those_of_the_contracts(programs: dict[str, Served]) -> None:
    found, compared = nfts(programs["interface"], "erc721Token"), 0
    for (address, token_id), answered in found.items():
        recorded = tokens(CHAIN).get(unhex(address.lower()), {"answers": {}})["answers"].get("tokenURI", {})
        answer = recorded.get(token_id) if isinstance(recorded, dict) else None
        raw = string_of(unhex(answer)) if isinstance(answer, str) else None
        if raw and answered["tokenUri"]:
            assert answered["tokenUri"] == raw.decode()
            compared += 1
    assert found
    assert compared or not any("tokenURI" in token["answers"] for token in tokens(CHAIN).values())


def test_owners_are_those_of_now_and_burned_tokens_have_none(programs: dict[str, Served]) -> None:
    state, last = recorded_state(CHAIN), naive(CHAIN).blocks[-1].rows.block.number
    owned = burned = 0
    for (address, token_id), answered in nfts(programs["interface"], "erc721Token").items():
        if ("erc721", address.lower()) not in state.of_token:
            continue  # logs that only look like an NFT's
        owner = state.at(last, "erc721", address.lower(), token_id)
        assert answered.get("ownerAddress", "").lower() == (owner or "")
        owned, burned = owned + bool(owner), burned + (not owner)
    assert owned
    assert burned


def test_index_status_by_dialect(programs: dict[str, Served]) -> None:
    """The same word, in small letters or capitals."""
    words = {status.name for status in IndexStatus}
    for kind in ("erc721Token", "erc1155Token"):
        plain, live = (nfts(programs[name], kind) for name in DIALECTS)
        assert list(plain) == list(live)
        for key, answered in plain.items():
            assert answered["metadata"]["indexStatus"].upper() == live[key]["metadata"]["indexStatus"]
            assert answered["metadata"]["indexStatus"].islower()
            assert live[key]["metadata"]["indexStatus"] in words


def test_prices_by_dialect(programs: dict[str, Served]) -> None:
    """Strings as the provider wrote them, or numbers."""
    answered = naive(CHAIN)
    priced = erc20_tokens(CHAIN)[0]
    holder = answered.txs[-1]["native"]["from"]["address"]
    tx = next(tx for tx in answered.txs if any(token == priced for _, token, _ in tx["erc20"]))
    mover = next(item["to"]["address"] for _, token, item in tx["erc20"] if token == priced)
    of = f"/v1/chains/{ID}/addresses"
    for name, shown in (("interface", str), ("live", float)):
        served = programs[name]
        native = served.result(f"{of}/{holder}/balances:getNative")["nativeTokenBalance"]
        assert native["price"] == {"currencyCode": "usd", "value": shown(NATIVE_PRICES["usd"])}
        assert type(native["balanceValue"]["value"]) is shown
        (held,) = served.result(f"{of}/{holder}/balances:listErc20?contractAddresses={address_text(priced)}")[
            "erc20TokenBalances"
        ]
        assert held["price"] == {"currencyCode": "usd", "value": shown(TOKEN_PRICE)}
        assert isinstance(held["balanceValue"]["value"], str if shown is str else float)
        whole = served.result(f"/v1/chains/{ID}/transactions/{tx['here']['txHash']}")
        assert type(whole["networkTokenDetails"]["currentPrice"]["value"]) is shown
        prices = [
            item["erc20Token"]["price"]["value"] for item in whole["erc20Transfers"] if "price" in item["erc20Token"]
        ]
        assert prices[0] == shown(TOKEN_PRICE)
        moved = walked(served, f"{of}/{mover}/transactions:listErc20", "transactions")
        assert {one["erc20Token"]["price"]["value"] for one in moved if "price" in one["erc20Token"]} == {
            shown(TOKEN_PRICE)
        }
