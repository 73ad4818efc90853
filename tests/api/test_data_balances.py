"""Balances over HTTP equal the recorded state of the chain: a sample of addresses and blocks, all token kinds."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.api.data_naive import Naive, address_text, naive
from tests.api.data_scene import (
    CHAINS,
    NATIVE_PRICES,
    TOKEN_PRICE,
    Served,
    Zeros,
    chain_id,
    data_server,
    erc20_tokens,
    walked,
)
from tests.api.made_chain import ANN, BEN, TOKEN, ZERO_ADDRESS, erc20, put
from tests.api.made_chain import of as of_made
from tests.api.made_chain import served as served_here
from tests.evm.recordings import meta
from tests.upstream.evm_recording import recorded_state
from tests.upstream.evm_replay import EvmFault

from icefall.evm.model import NativeRow
from icefall.evm.reading.balances import BalanceReader
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall

UNTRUSTED = ("tollSilent",)  # takes a fee without a log: whoever gets it is named by none


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with data_server(tmp_path_factory.mktemp("balances")) as program:
        yield program


@pytest.fixture(params=CHAINS)
def recorded(request: pytest.FixtureRequest) -> Naive:
    return naive(request.param)


def of(chain: str, address: bytes) -> str:
    return f"/v1/chains/{chain_id(chain)}/addresses/{address_text(address)}/balances"


def hexed(address: bytes) -> str:
    return "0x" + address.hex()


def holders(recorded: Naive) -> list[bytes]:
    """Not those whose balance the recorder changed by hand, nor the zero address, which logs burn to."""
    cheated = {one["address"].lower() for one in meta(recorded.chain)["hiddenNativeChanges"]}
    return [one for one in recorded.addresses(3) if hexed(one) not in cheated and any(one) and one != b"\x77" * 20]


def blocks(recorded: Naive) -> list[int | None]:
    last = recorded.blocks[-1].rows.block.number
    return [None, last, last // 2, last // 5, 1]


def at(block: int | None) -> str:
    return "" if block is None else f"?blockNumber={block}"


def test_native_balances(recorded: Naive, served: Served) -> None:
    state, last = recorded_state(recorded.chain), recorded.blocks[-1].rows.block.number
    for address in holders(recorded):
        for block in blocks(recorded):
            found = served.result(f"{of(recorded.chain, address)}:getNative{at(block)}")["nativeTokenBalance"]
            true = state.at(last if block is None else block, "native", hexed(address))
            assert found["balance"] == (true or "0"), (hexed(address), block)
            assert found["chainId"] == recorded.id
            worth = Decimal(found["balance"]) / 10**18 * Decimal(NATIVE_PRICES["usd"])
            assert abs(Decimal(found["balanceValue"]["value"]) - worth) <= Decimal("0.000000005")


def test_erc20_balances(recorded: Naive, served: Served) -> None:
    """Tokens with logs are listed; requested by address, every token is shown with its balance."""
    state, last = recorded_state(recorded.chain), recorded.blocks[-1].rows.block.number
    untrusted = {address.lower() for label, address in meta(recorded.chain)["contracts"].items() if label in UNTRUSTED}
    tokens = sorted({path[1] for path in state.of_token if path[0] == "erc20"})
    seen = 0
    for address in holders(recorded):
        for block in blocks(recorded):
            true = {
                token: int(state.at(last if block is None else block, "erc20", token, hexed(address)) or 0)
                for token in tokens
            }
            target = f"{of(recorded.chain, address)}:listErc20{at(block) or '?'}&filterSpamTokens=false"
            listed = walked(served, target.replace("?&", "?"), "erc20TokenBalances", 500)
            assert [one["address"].lower() for one in listed] == sorted(one["address"].lower() for one in listed)
            found = {one["address"].lower(): int(one["balance"]) for one in listed}
            assert all(found.values())
            assert {token: held for token, held in found.items() if token in true} == {
                token: held for token, held in true.items() if held and (token in found or token not in untrusted)
            }, (hexed(address), block)
            named = f"{target}&contractAddresses={','.join(tokens)}".replace("?&", "?")
            requested = walked(served, named, "erc20TokenBalances", 500)
            assert {one["address"].lower(): int(one["balance"]) for one in requested} == true, (hexed(address), block)
            seen += len(listed)
    assert seen


def test_an_nft_requested_by_address_is_not_an_erc20_token(recorded: Naive, served: Served) -> None:
    """Though it answers balanceOf."""
    state = recorded_state(recorded.chain)
    nfts = sorted({path[1] for path in state.of_token if path[0] in ("erc721", "erc1155")})
    coin = min(path[1] for path in state.of_token if path[0] == "erc20")
    for address in holders(recorded):
        target = f"{of(recorded.chain, address)}:listErc20?filterSpamTokens=false"
        requested = served.result(f"{target}&contractAddresses={','.join([*nfts, coin])}")
        assert [one["address"].lower() for one in requested["erc20TokenBalances"]] == [coin]


class NoContracts(Zeros):
    """A state in which no address has code: every call returns nothing."""

    async def answers(self, calls: Sequence[ContractCall], _: At) -> list[bytes | Reverted]:
        return [b"" for _ in calls]


def test_an_address_that_is_no_erc20_token_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, [erc20(0, ZERO_ADDRESS, ANN, 100), erc20(1, ANN, BEN, 5)], native=[NativeRow(BEN, 0, 1, 7)])
    wanted = f"{of_made(BEN)}/balances:listErc20?contractAddresses={hexed(TOKEN)},{hexed(ANN)},0x{'ab' * 20}"
    with served_here(tmp_path, state=NoContracts()) as app:
        listed = app.result(wanted)["erc20TokenBalances"]
        assert [(one["address"].lower(), one["balance"]) for one in listed] == [(hexed(TOKEN), "5")]
        alone = BalanceReader(app.reader, None)  # without an upstream
        page, _ = app.run(alone.erc20(BEN, 1, None, 10, [TOKEN, ANN]))
        assert [one.token for one in page] == [TOKEN]


def test_erc1155_balances(recorded: Naive, served: Served) -> None:
    state, last = recorded_state(recorded.chain), recorded.blocks[-1].rows.block.number
    seen = 0
    for address in holders(recorded):
        for block in blocks(recorded):
            true = {
                (path[1], int(path[3])): int(state.at(last if block is None else block, *path) or 0)
                for path in state.values
                if path[0] == "erc1155" and path[2] == hexed(address)
            }
            listed = walked(
                served, f"{of(recorded.chain, address)}:listErc1155{at(block)}", "erc1155TokenBalances", 500
            )
            found = {(one["address"].lower(), int(one["tokenId"])): int(one["balance"]) for one in listed}
            assert list(found) == sorted(found)
            tracked = {path[1] for path in state.of_token if path[0] == "erc1155"}
            assert {key: held for key, held in found.items() if key[0] in tracked} == {
                key: held for key, held in true.items() if held
            }, (hexed(address), block)
            seen += len(listed)
    assert seen or recorded.chain == "berlin-1"


def test_erc721_balances_and_collectibles(recorded: Naive, served: Served) -> None:
    state, last = recorded_state(recorded.chain), recorded.blocks[-1].rows.block.number
    tracked = {path[1] for path in state.of_token if path[0] == "erc721"}
    seen = 0
    for address in holders(recorded):
        listed = walked(served, f"{of(recorded.chain, address)}:listErc721", "erc721TokenBalances", 500)
        found = [(one["address"].lower(), int(one["tokenId"])) for one in listed]
        assert found == sorted(found)
        assert {one for one in found if one[0] in tracked} == {
            (path[1], int(path[2]))
            for path in state.values
            if path[0] == "erc721" and state.at(last, *path) == hexed(address)
        }
        assert {one["ownerAddress"] for one in listed} <= {address_text(address)}
        others = walked(served, f"{of(recorded.chain, address)}:listErc1155", "erc1155TokenBalances", 500)
        for size in (1, 3, 500):
            target = f"{of(recorded.chain, address)}:listCollectibles"
            assert walked(served, target, "collectibleBalances", size) == listed + others
        for contract in {one["address"] for one in listed}:
            target = f"{of(recorded.chain, address)}:listErc721?contractAddress={contract}"
            one_only = [one for one in listed if one["address"] == contract]
            assert walked(served, target, "erc721TokenBalances", 2) == one_only
        for contract in {one["address"] for one in others}:
            target = f"{of(recorded.chain, address)}:listErc1155?contractAddress={contract}"
            one_only = [one for one in others if one["address"] == contract]
            assert walked(served, target, "erc1155TokenBalances", 2) == one_only
        seen += len(listed)
    assert seen


def test_block_numbers_out_of_range(recorded: Naive, served: Served) -> None:
    last, address = recorded.blocks[-1].rows.block.number, holders(recorded)[0]
    for name in ("getNative", "listErc20", "listErc1155"):
        reply = served.get(f"{of(recorded.chain, address)}:{name}?blockNumber={last + 1}")
        assert reply.status == 400
        assert reply.json()["message"] == (
            f"blockNumber must be at most {last}, the newest indexed block, got {last + 1}"
        )
    for name in ("listErc721", "listCollectibles"):
        reply = served.get(f"{of(recorded.chain, address)}:{name}?blockNumber=1")
        assert reply.status == 400
        assert "blockNumber must be left out: only balances at the latest block" in reply.json()["message"]


def test_spam_is_left_out_unless_requested(recorded: Naive, served: Served) -> None:
    first, second, third = (address_text(token) for token in erc20_tokens(recorded.chain)[:3])
    words: dict[str, Any] = {}
    for address in holders(recorded):
        target = f"{of(recorded.chain, address)}:listErc20"
        clean = walked(served, target, "erc20TokenBalances", 1)
        every = walked(served, f"{target}?filterSpamTokens=false", "erc20TokenBalances", 3)
        assert clean == walked(served, f"{target}?filterSpamTokens=true", "erc20TokenBalances", 500)
        assert clean == [one for one in every if one["address"] != second]
        words |= {one["address"]: one["tokenReputation"] for one in every}
        for one in every:
            assert ("price" in one, "balanceValue" in one) == ((one["address"] == first),) * 2
    assert words.get(second, "Malicious") == "Malicious"
    assert words.get(third, "Benign") == "Benign"
    assert None in words.values()


def test_transfers_of_spam_are_left_out_of_transactions_if_requested(recorded: Naive, served: Served) -> None:
    spam = address_text(erc20_tokens(recorded.chain)[1])
    left_out = 0
    for address in holders(recorded):
        target = f"/v2/chains/{chain_id(recorded.chain)}/addresses/{address_text(address)}/transactions"
        every = walked(served, target, "transactions", 7)
        assert every == walked(served, f"{target}?filterSpamTokens=false", "transactions", 100)
        for one in every:
            own = [moved for moved in one["erc20Transfers"] if moved["erc20Token"]["address"] != spam]
            left_out += len(one["erc20Transfers"]) - len(own)
            one["erc20Transfers"] = own
        assert every == walked(served, f"{target}?filterSpamTokens=true", "transactions", 100)
    assert left_out > 0


def test_currencies(recorded: Naive, served: Served) -> None:
    address = holders(recorded)[0]
    for currency in ("usd", "eur", "nzd"):
        found = served.result(f"{of(recorded.chain, address)}:getNative?currency={currency}")["nativeTokenBalance"]
        price = NATIVE_PRICES.get(currency)
        assert found.get("price") == (price and {"currencyCode": currency, "value": price})
        assert ("balanceValue" in found) == (price is not None)
    priced = address_text(erc20_tokens(recorded.chain)[0])
    target = f"{of(recorded.chain, address)}:listErc20?contractAddresses={priced}&currency="
    (held,) = served.result(f"{target}usd")["erc20TokenBalances"]
    assert held["price"] == {"currencyCode": "usd", "value": TOKEN_PRICE}
    assert "price" not in served.result(f"{target}eur")["erc20TokenBalances"][0]


def test_what_needs_the_upstream_fails_with_it_and_the_rest_does_not(served: Served) -> None:
    """503 while it is down, 502 while its answers are invalid; stored balances are served all the time."""
    recorded, replay = naive("geth-1"), served.replays["geth-1"]
    stored, unknown = bytes.fromhex(recorded.txs[-1]["native"]["from"]["address"][2:]), b"\x55" * 20
    untrusted = meta("geth-1")["contracts"]["tollSilent"]
    needing = (
        f"{of('geth-1', unknown)}:getNative",
        f"{of('geth-1', stored)}:listErc20?contractAddresses={untrusted}",
    )
    for target in needing:
        assert served.get(target).status == 200
    try:
        replay.evm_faults = [EvmFault(times=1000, body=b"<html>nonsense</html>")]
        assert [served.get(target).status for target in needing] == [502, 502]
        replay.evm_faults = [EvmFault(times=1000, status=500)]
        replies = [served.get(target) for target in needing]
        assert [reply.status for reply in replies] == [503, 503]
        assert replies[0].header("retry-after") == "1"
        assert set(replies[0].json()) == {"message", "statusCode", "error"}
        assert replay.url not in replies[0].body.decode()
        assert served.get(f"{of('geth-1', stored)}:getNative").status == 200
        assert served.get(f"/v1/chains/1337/addresses/{address_text(stored)}/transactions").status == 200
    finally:
        replay.evm_faults = []
    for target in needing:
        assert served.get(target).status == 200
