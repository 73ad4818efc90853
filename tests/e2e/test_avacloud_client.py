"""The official client of the hosted service, in the live dialect: it checks every answer against its own schemas."""

import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from tests.api.data_naive import KINDS, address_text, naive
from tests.api.data_scene import data_server
from tests.counterparts import npm_project, program
from tests.upstream.threaded import in_thread
from tests.waiting import LIMIT_S

from icefall.api.data.endpoints import CHAIN_DATA_ENDPOINTS
from icefall.db.sqlite import SqliteStore
from icefall.evm.enriching.nft_loop import reindex_nft
from icefall.evm.status import indexer_socket
from icefall.evm.storing.store import PACKAGE, store_path
from icefall.ipc.socket import SocketServer

HERE = Path(__file__).parent / "avacloud"
CHAIN, ID = "anvil-1", "31337"  # all token kinds, messages between chains, failed creations
# The client's method for every operation, and how a call of it is filled in.
METHODS = {
    "supportedChains": "data.evm.chains.list",
    "getChainInfo": "data.evm.chains.get",
    "listAddressChains": "data.evm.address.chains.list",
    "getLatestBlocks": "data.evm.blocks.listLatest",
    "getBlock": "data.evm.blocks.get",
    "getTransactionsForBlock": "data.evm.blocks.listTransactions",
    "listLatestTransactions": "data.evm.transactions.listLatest",
    "getTransaction": "data.evm.transactions.get",
    "listTransactions": "data.evm.address.transactions.list",
    "listNativeTransactions": "data.evm.address.transactions.listNative",
    "listErc20Transactions": "data.evm.address.transactions.listErc20",
    "listErc721Transactions": "data.evm.address.transactions.listErc721",
    "listErc1155Transactions": "data.evm.address.transactions.listErc1155",
    "listInternalTransactions": "data.evm.address.transactions.listInternal",
    "listTransfers": "data.evm.contracts.listTransfers",
    "getDeploymentTransaction": "data.evm.contracts.getDeploymentTransaction",
    "listContractDeployments": "data.evm.address.contracts.listDeployments",
    "getContractMetadata": "data.evm.contracts.getMetadata",
    "getNativeBalance": "data.evm.address.balances.getNative",
    "listErc20Balances": "data.evm.address.balances.listErc20",
    "listErc721Balances": "data.evm.address.balances.listErc721",
    "listErc1155Balances": "data.evm.address.balances.listErc1155",
    "listCollectibleBalances": "data.evm.address.balances.listCollectibles",
    "data-health-check": "data.healthCheck",
    "getAddressChains": "data.evm.chains.getAddressChains",
    "listAllLatestBlocks": "data.evm.chains.listAllLatestBlocks",
    "listAllLatestTransactions": "data.evm.chains.listAllLatestTransactions",
    "listLatestBlocksAllChains": "data.evm.blocks.listLatestAllChains",
    "listLatestTransactionsAllChains": "data.evm.transactions.listLatestAllChains",
    "listTokens": "data.nfts.list",
    "getTokenDetails": "data.nfts.get",
    "reindexNft": "data.nfts.reindex",
}


def test_every_row_has_a_method() -> None:
    """Except for those that are not in the hosted service."""
    assert {row.operation for row in CHAIN_DATA_ENDPOINTS if not row.ours} == set(METHODS)


def busy() -> list[str]:
    """Addresses that together have done everything."""
    expected = naive(CHAIN)
    found: dict[str, None] = {}
    for kind in ("native", *KINDS):
        order = sorted(expected.addresses(4), key=lambda one: len(expected.of_address(kind, one)))
        found |= dict.fromkeys(address_text(one) for one in order[-2:])
    return list(found)


ALL_CHAINS = [name for name in METHODS if "AllChains" in name or name.startswith("listAllLatest")]


def nfts() -> list[dict[str, str]]:
    """Two of each standard."""
    moved = [one.rows for one in naive(CHAIN).blocks]
    some = ([move for rows in moved for move in rows.erc721_transfers][-2:],
            [move for rows in moved for move in rows.erc1155_transfers][-2:])  # fmt: skip
    return [{"address": address_text(move.token), "tokenId": str(move.token_id)} for moves in some for move in moves]


def calls(addresses: list[str]) -> list[tuple[str, Any]]:
    expected = naive(CHAIN)
    tokens = [address_text(token) for token in sorted(expected.tokens)]
    txs = sorted(expected.txs, key=lambda tx: sum(len(tx[kind]) for kind in KINDS))
    hashes = [tx["here"]["txHash"] for tx in (*txs[:3], *txs[-12:])]
    messages = [one.rows.txs[m.tx_index].tx_hash.hex() for one in expected.blocks for m in one.rows.messages]
    made = [address_text(one.address) for block in expected.blocks for one in block.rows.deployments]
    chain = {"chainId": ID}
    requests: list[tuple[str, Any]] = [
        ("supportedChains", {}), ("supportedChains", {"network": "mainnet", "feature": "nftIndexing"}),
        ("getChainInfo", chain), ("getLatestBlocks", chain | {"pageSize": 100}), ("getBlock", chain | {"blockId": "1"}),
        ("getBlock", chain | {"blockId": expected.blocks[-1].line["block"]["hash"]}),
        ("listLatestTransactions", chain | {"pageSize": 100}), ("data-health-check", None),
        ("listLatestTransactions", chain | {"pageSize": 100, "status": "failed"}),
        *(("getTransaction", chain | {"txHash": one}) for one in (*hashes, *(f"0x{one}" for one in messages[:4]))),
        *(("getTransactionsForBlock", chain | {"blockId": tx["here"]["blockNumber"]}) for tx in txs[-5:]),
        *(("getDeploymentTransaction", chain | {"address": one, "currency": "usd"}) for one in made[-5:]),
        *(("getContractMetadata", chain | {"address": one}) for one in (*tokens, *made[-5:])),
        *(("listTransfers", chain | {"address": one, "pageSize": 100}) for one in tokens),
        *((name, {"pageSize": 100, "network": "mainnet"}) for name in ALL_CHAINS),
        ("listLatestTransactionsAllChains", {"pageSize": 100, "status": "failed"}),
        *(("listTokens", chain | {"address": one, "pageSize": 5}) for one in tokens),
        *((name, chain | one) for one in nfts() for name in ("getTokenDetails", "reindexNft")),
    ]  # fmt: skip
    others = ("listLatestTransactions", "listTransfers", "listAddressChains", "listTokens", *ALL_CHAINS)
    lists = [name for name in METHODS if name.startswith("list") and name not in others]
    for address in addresses:
        of = chain | {"address": address}
        requests += [(name, {"address": address}) for name in ("listAddressChains", "getAddressChains")]
        requests += [(name, of | {"pageSize": 3 if name.endswith("Balances") else 40}) for name in lists]
        requests += [("listTransactions", of | {"sortOrder": "asc", "startBlock": 10, "endBlock": 900, "pageSize": 50})]
        requests += [("getNativeBalance", of | {"currency": one}) for one in ("usd", "eur")]
        some = {"blockNumber": "500", "filterSpamTokens": False, "pageSize": 500, "currency": "usd"}
        requests += [("listErc20Balances", of | some | {"contractAddresses": ",".join(tokens[:3])})]
    return requests


class IndexerSocket:
    """The part of an indexer that workers call, over the store that is served."""

    def __init__(self, data_dir: Path) -> None:
        self._store = SqliteStore(store_path(data_dir, ID), PACKAGE)
        commands = {"reindex_nft": partial(reindex_nft, self._store)}
        self._server = SocketServer(indexer_socket(data_dir, ID), commands, lambda: lambda: None)

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop()
        self._store.close()


def test_the_real_client_takes_every_answer(tmp_path: Path) -> None:
    folder = npm_project(HERE)
    requests = calls(busy())
    assert {name for name, _ in requests} == set(METHODS)
    with (
        data_server(tmp_path, "--dialect=live", chains=(CHAIN,)) as served,
        in_thread(IndexerSocket(tmp_path / "data")),
    ):
        wanted = json.dumps([(METHODS[name], request) for name, request in requests])
        command = [program("node"), str(folder / "drive.js"), served.server.url("data"), wanted]
        done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    expected = json.loads(done.stdout)
    wrong = [(one, said["error"]) for one, said in zip(requests, expected, strict=True) if "error" in said]
    assert wrong == []
    items: dict[str, int] = {}
    paged: set[str] = set()
    for (name, _), said in zip(requests, expected, strict=True):
        paged |= {name} if len(said["pages"]) > 1 else set()
        for page in filter(None, said["pages"]):
            items[name] = items.get(name, 0) + sum(len(one) for one in page.values() if isinstance(one, list))
    assert [name for name in METHODS if name.startswith("list") and not items[name]] == []
    assert paged >= {name for name in METHODS if name.startswith("list")} - {"listAddressChains"}
    whole = json.dumps(expected)
    assert whole.count('"price": {"currencyCode": "usd"') > 10
    assert whole.count('"indexStatus": "INDEXED"') > 10
    assert "teleporterMessageInfo" in whole
