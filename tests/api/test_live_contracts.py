"""Code, proxies, functions that read and pending transactions, against a real geth that is followed meanwhile."""

from collections.abc import Iterator

import pytest
from tests.api.data_naive import address_text
from tests.api.live_chain import Live, live_chain
from tests.evm.adversarial.nodes import ADDRESSES
from tests.evm.adversarial.scenario import Tx
from tests.waiting import until

from icefall.wire.evm.rlp import keccak256


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live_chain(tmp_path_factory.mktemp("live")) as made:
        yield made


@pytest.mark.parametrize("name", ["plain", "EIP-1967", "EIP-1167", "EIP-897"])
def test_code_and_implementation(name: str, live: Live) -> None:
    address = address_text(live.contracts[name])
    found = live.get(f"/contracts/{address}/code")
    assert found["code"] == live.node.call("eth_getCode", address, "latest") != "0x"
    proxy = live.get(f"/contracts/{address}/proxy")
    assert proxy["isProxy"] == (name != "plain")
    if name == "plain":
        assert [one["name"] for one in found["readFunctions"]] == ["totalSupply"]
    else:
        assert (proxy["proxyKind"], proxy["implementation"]) == (name, address_text(live.contracts["plain"]))


@pytest.mark.parametrize("name", ["plain", "EIP-1967", "EIP-1167", "EIP-897"])
def test_functions_are_read_through_the_proxy(name: str, live: Live) -> None:
    """A function is read at the newest block, and at the block that is asked for."""
    newest = live.node.newest()
    for query, block in (("", newest), (f"?blockNumber={newest - 1}", newest - 1)):
        found = live.read(name, "totalSupply()", query)
        assert (found["isReverted"], found["blockNumber"]) == (False, str(block))
        assert [one["value"] for one in found["outputs"]] == [str(block)]
    assert live.read(name, "decimals()")["isReverted"]


def test_a_block_has_the_details_that_geth_gives(live: Live) -> None:
    block = live.node.call("eth_getBlockByNumber", "0x2", False)
    found = live.get("/blocks/2/details")
    assert found["feeRecipient"].lower() == block["miner"]
    assert found["size"] == int(block["size"], 16)
    assert found["feesBurned"] == str(int(block["baseFeePerGas"], 16) * int(block["gasUsed"], 16))


def test_a_transaction_is_pending_until_a_block_holds_it(live: Live) -> None:
    """It waits for the one before it, which is sent afterwards."""
    first = live.node._signed(Tx(1, ADDRESSES[2], b"", 5))
    second = live.node._signed(Tx(1, live.contracts["plain"], bytes.fromhex("18160ddd")))
    tx_hash = "0x" + keccak256(second).hex()
    assert live.get(f"/transactions/{tx_hash}/pending")["txState"] == "unknown"
    live.node.call("eth_sendRawTransaction", "0x" + second.hex())
    found = live.get(f"/transactions/{tx_hash}/pending")
    assert (found["txState"], found["nonce"], found["value"]) == ("pending", "1", "0")
    assert (found["from"], found["to"]) == (address_text(ADDRESSES[1]), address_text(live.contracts["plain"]))
    assert found["methodName"] == "totalSupply()"
    assert live.get(f"/transactions/{tx_hash}") == {"status": 404}
    live.node.call("eth_sendRawTransaction", "0x" + first.hex())
    until(lambda: live.get(f"/transactions/{tx_hash}/pending")["txState"] == "indexed", "the transaction is indexed")
    assert live.get(f"/transactions/{tx_hash}")["nativeTransaction"]["txHash"] == tx_hash
