"""Every list of the chain data interface over HTTP, against the recording: addresses of all sorts, all token kinds."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.data_naive import KINDS, Naive, address_text, naive, without_nfts
from tests.api.data_scene import (
    CHAINS,
    DAY_PRICE,
    NATIVE_PRICES,
    PEER,
    Served,
    blockchain_id,
    chain_id,
    data_server,
    walked,
)
from tests.evm.recordings import derived

from icefall.wire.ids import id_text

LISTS = {
    "native": "listNative",
    "erc20": "listErc20",
    "erc721": "listErc721",
    "erc1155": "listErc1155",
    "internals": "listInternals",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with data_server(tmp_path_factory.mktemp("answers")) as program:
        yield program


def of(chain: str, address: bytes) -> str:
    return f"/v1/chains/{chain_id(chain)}/addresses/{address_text(address)}"


@pytest.fixture(params=CHAINS)
def recorded(request: pytest.FixtureRequest) -> Naive:
    return naive(request.param)


@pytest.mark.parametrize("kind", LISTS)
def test_lists_of_addresses(kind: str, recorded: Naive, served: Served) -> None:
    seen = 0
    for address in recorded.addresses(4):
        expected = recorded.of_address(kind, address)
        found = walked(served, f"{of(recorded.chain, address)}/transactions:{LISTS[kind]}", "transactions")
        assert without_nfts(found) == expected
        seen += len(found)
    assert seen


def test_transactions_with_what_concerns_an_address(recorded: Naive, served: Served) -> None:
    for address in recorded.addresses(3):
        expected, target = recorded.touched(address), f"{of(recorded.chain, address)}/transactions"
        assert without_nfts(walked(served, f"{target}?sortOrder=asc", "transactions")) == expected
        assert without_nfts(walked(served, target, "transactions")) == expected[::-1]


def test_block_ranges(recorded: Naive, served: Served) -> None:
    """From startBlock on, up to before endBlock."""
    address = max(recorded.addresses(2), key=lambda one: len(recorded.of_address("erc20", one)))
    for kind, name in LISTS.items():
        every = recorded.of_address(kind, address)
        numbers = sorted({int(item["blockNumber"]) for item in every})
        if not numbers:
            continue
        low, high = numbers[len(numbers) // 3], numbers[-1]
        for query, fits in (
            (f"startBlock={low}", lambda at, low=low: at >= low),
            (f"endBlock={high}", lambda at, high=high: at < high),
            (f"startBlock={low}&endBlock={high}", lambda at, low=low, high=high: low <= at < high),
            (f"startBlock={low}&endBlock={low}", lambda at: False),
            ("endBlock=0", lambda at: False),
            (f"startBlock={2**63 - 1}", lambda at: False),
        ):
            found = walked(served, f"{of(recorded.chain, address)}/transactions:{name}?{query}", "transactions")
            assert without_nfts(found) == [item for item in every if fits(int(item["blockNumber"]))], query


def test_transfers_of_tokens(recorded: Naive, served: Served) -> None:
    kinds: set[str] = set()
    for token in sorted(recorded.tokens):
        found = walked(served, f"/v1/chains/{recorded.id}/tokens/{address_text(token)}/transfers", "transfers")
        assert without_nfts(found) == recorded.of_token(token)
        kinds |= {key for item in found for key in item if key.endswith("Token")}
    assert kinds == {"erc20Token", "erc721Token", "erc1155Token"}
    unknown = served.result(f"/v1/chains/{recorded.id}/tokens/0x{'77' * 20}/transfers")
    assert unknown == {"transfers": []}


def test_blocks_and_their_transactions(recorded: Naive, served: Served) -> None:
    totals, expected = 0, []
    for at, one in enumerate(recorded.blocks):
        totals += len(one.rows.txs)
        expected.append(recorded.block(at, totals))
    assert walked(served, f"/v1/chains/{recorded.id}/blocks", "blocks") == expected[::-1]
    details = [one | recorded.block_details(int(one["blockNumber"])) for one in expected]
    assert walked(served, f"/v1/chains/{recorded.id}/blocks:listDetails", "blocks") == details[::-1]
    for block in (expected[0], expected[-1], max(expected, key=lambda one: one["txCount"])):
        txs = [tx["native"] for tx in recorded.txs if tx["here"]["blockNumber"] == block["blockNumber"]][::-1]
        for name in (block["blockNumber"], block["blockHash"], block["blockHash"].upper().replace("X", "x")):
            target = f"/v1/chains/{recorded.id}/blocks/{name}"
            assert served.result(target) == block
            assert served.result(f"{target}/details") == block | recorded.block_details(int(block["blockNumber"]))
            assert served.result(f"{target}/transactions") == {"transactions": txs}
            assert served.result(f"{target}/transactions?pageSize=0") == {"transactions": txs}
            assert walked(served, f"{target}/transactions", "transactions", 3) == txs


def test_newest_transactions_by_status(recorded: Naive, served: Served) -> None:
    every = [tx["native"] for tx in recorded.txs][::-1]
    target = f"/v1/chains/{recorded.id}/transactions"
    assert walked(served, target, "transactions") == every
    for word, status in (("failed", "0"), ("success", "1")):
        found = walked(served, f"{target}?status={word}", "transactions")
        assert found == [tx for tx in every if tx["txStatus"] == status]


def test_whole_transactions(recorded: Naive, served: Served) -> None:
    """Every 7th, and all in which most happens."""
    busy = sorted(recorded.txs, key=lambda tx: sum(len(tx[kind]) for kind in KINDS))[-20:]
    for tx in recorded.txs[::7] + busy:
        found = served.result(f"/v1/chains/{recorded.id}/transactions/{tx['here']['txHash']}")
        details = found.pop("networkTokenDetails")
        found.pop("teleporterMessageInfo", None)
        assert without_nfts([found]) == [recorded.nested(tx, None)]
        assert details["currentPrice"] == {"currencyCode": "usd", "value": NATIVE_PRICES["usd"]}


def test_deployments(recorded: Naive, served: Served) -> None:
    """Of each address the latest successful creation; of a creator those that are the latest of their address."""
    latest: dict[bytes, tuple[str, Any]] = {}
    by: dict[bytes, list[tuple[bytes, Any]]] = {}
    for one in derived(recorded.chain):
        for made in one.rows.deployments:
            tx = one.rows.txs[made.tx_index]
            latest[made.address] = "0x" + tx.tx_hash.hex(), (made, tx)
            for creator in {made.creator, tx.sender}:
                by.setdefault(creator, []).append((made.address, (made, tx)))
    for address, (tx_hash, (made, tx)) in list(latest.items())[::5] + list(latest.items())[-10:]:
        target = f"/v1/chains/{recorded.id}/contracts/{address_text(address)}/transactions:getDeployment"
        found = served.result(target)
        assert found["nativeTransaction"]["txHash"] == tx_hash
        assert found == served.result(f"/v1/chains/{recorded.id}/transactions/{tx_hash}")
        details = {"txHash": tx_hash, "deployerAddress": address_text(tx.sender)}
        details |= {"deployerContractAddress": address_text(made.creator)} if made.frame else {}
        assert served.result(of(recorded.chain, address))["deploymentDetails"] == details
    again = 0
    for creator, made_by in by.items():
        target = f"/v1/chains/{recorded.id}/contracts/{address_text(creator)}/deployments"
        listed = [(address, tx) for address, (made, tx) in made_by[::-1] if latest[address][1] == (made, tx)]
        again += len(made_by) - len(listed)
        for size in (1, 100):
            found = walked(served, target, "contracts", size)
            assert [one["address"] for one in found] == [address_text(address) for address, _ in listed]
            hashes = [one["deploymentDetails"]["txHash"] for one in found]
            assert hashes == ["0x" + tx.tx_hash.hex() for _, tx in listed]
    assert again, "no address was deployed twice"
    wallet = next(
        address for address in recorded.addresses(3) if address not in latest and address not in recorded.tokens
    )
    target = f"/v1/chains/{recorded.id}/contracts/{address_text(wallet)}/transactions:getDeployment"
    refused = served.get(target)
    assert refused.status == 404
    assert address_text(wallet) in refused.json()["message"]
    assert served.get(f"{target}?currency=eur").status == 404


def test_a_failed_creation_is_no_deployment_but_has_a_recipient(recorded: Naive, served: Served) -> None:
    failed = [
        tx["native"]
        for tx in recorded.txs
        if tx["native"]["method"]["callType"] == "CONTRACT_CREATION" and tx["native"]["txStatus"] == "0"
    ]
    for tx in failed:
        assert len(tx["to"]["address"]) == 42
        assert tx["method"]["methodHash"] == "0x"
        found = walked(
            served, f"/v1/chains/{recorded.id}/addresses/{tx['to']['address']}/transactions:listNative", "transactions"
        )
        assert tx in found
    assert failed or recorded.chain == "berlin-1"


def test_contracts(recorded: Naive, served: Served) -> None:
    kinds: set[str] = set()
    for token in sorted(recorded.tokens):
        found = served.result(of(recorded.chain, token))
        known = recorded.known(token)
        if found["ercType"] != "ERC-20":
            known.pop("decimals", None)
        found.pop("deploymentDetails", None)
        assert found == {"address": address_text(token), "ercType": found["ercType"]} | known
        kinds.add(found["ercType"])
    assert kinds == {"ERC-20", "ERC-721", "ERC-1155"}
    assert served.get(of(recorded.chain, b"\x77" * 20)).status == 404


def test_chains_and_their_names(served: Served) -> None:
    """UNAVAILABLE, because no indexer follows them: see test_data_status.py."""
    chains = {one["chainId"]: one for one in served.result("/v1/chains")["chains"]}
    assert list(chains) == [chain_id(chain) for chain in CHAINS]
    replay = served.replays["berlin-1"]
    assert chains[chain_id("berlin-1")] == {
        "chainId": chain_id("berlin-1"), "status": "UNAVAILABLE", "chainName": f"Chain {chain_id('berlin-1')}",
        "description": "", "vmName": "EVM", "rpcUrl": replay.url, "isTestnet": False, "private": False,
        "networkToken": {"name": "Native token", "symbol": "NATIVE", "decimals": 18}, "enabledFeatures": [],
    }  # fmt: skip
    assert chains[chain_id("geth-1")] == {
        "chainId": "1337", "status": "UNAVAILABLE", "chainName": "Geth", "description": "A recorded chain.",
        "platformChainId": blockchain_id("geth-1"), "subnetId": blockchain_id("subnet"), "vmId": blockchain_id("vm"),
        "vmName": "EVM", "explorerUrl": "https://explorer.example", "rpcUrl": "https://rpc.example",
        "wsUrl": "wss://ws.example", "isTestnet": True, "private": True, "chainLogoUri": "https://e.example/logo.png",
        "utilityAddresses": {"multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"},
        "networkToken": {"name": "Ether", "symbol": "ETH", "decimals": 18, "logoUri": "https://e.example/l",
                         "description": "Gas."},
        "enabledFeatures": ["nftIndexing", "teleporter"],
    }  # fmt: skip
    for name in ("1337", blockchain_id("geth-1"), "geth", "GETH", "dev%2Dchain"):
        assert served.result(f"/v1/chains/{name}") == chains["1337"]
    for query, found in (
        ("network=mainnet", {"43112", "31337", "31338"}), ("network=fuji", {"1337"}), ("network=testnet", {"1337"}),
        ("feature=nftIndexing", {"1337"}), ("feature=webhooks", set()), ("network=mainnet&feature=teleporter", set()),
    ):  # fmt: skip
        assert {one["chainId"] for one in served.result(f"/v1/chains?{query}")["chains"]} == found


def test_chains_of_an_address(served: Served) -> None:
    wallets = {chain: naive(chain).txs[-1]["native"]["from"]["address"] for chain in CHAINS}
    for chain, wallet in wallets.items():
        recorded = served.result(f"/v1/address/{wallet}/chains")
        assert recorded["unindexedChains"] == []
        assert chain_id(chain) in {one["chainId"] for one in recorded["indexedChains"]}
    assert served.result(f"/v1/address/0x{'77' * 20}/chains") == {"indexedChains": [], "unindexedChains": []}


def test_messages_between_chains(served: Served) -> None:
    """The first of a transaction. The other chain goes by its EVM chain ID if it is one of ours, else by its own."""
    seen: set[tuple[str, str]] = set()
    for one in derived("anvil-1"):
        for message in one.rows.messages:
            tx_hash = one.rows.txs[message.tx_index].tx_hash.hex()
            info = served.result(f"/v1/chains/31337/transactions/0x{tx_hash}")["teleporterMessageInfo"]
            peer = id_text(message.peer_blockchain_id)
            assert info == {
                "teleporterMessageId": "0x" + message.message_id.hex(),
                "direction": "SOURCE_TRANSACTION" if message.is_source else "DESTINATION_TRANSACTION",
                "destinationChainId" if message.is_source else "sourceChainId": "1337" if peer == PEER else peer,
                "sourceChainId" if message.is_source else "destinationChainId": "31337",
            }
            seen.add((info["direction"], "1337" if peer == PEER else "other"))
    assert len(seen) >= 3


def test_historic_prices_are_of_the_day_and_only_of_old_transactions(recorded: Naive, served: Served) -> None:
    for tx in (recorded.txs[0], recorded.txs[-1]):
        details = served.result(f"/v1/chains/{recorded.id}/transactions/{tx['here']['txHash']}")["networkTokenDetails"]
        is_old = time.time() - tx["here"]["blockTimestamp"] > 24 * 3600
        expected = {"currencyCode": "usd", "value": DAY_PRICE} if is_old else None
        assert details.get("historicalPrice") == expected
