"""X, the atomic side of C and the memory that the chains share, on recorded networks: every value against a second
implementation that reads the containers."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.networks_naive import Made, Moved, NaiveNetwork, is_touched
from tests.api.networks_scene import NetworkScene, network_scene
from tests.api.test_networks import RICH, walked
from tests.pchain.recorded import recorded_containers

from icefall.api.networks.handlers import c_chain, outputs, x_chain
from icefall.wire.avm.codec import unpack_utxo
from icefall.wire.avm.types import CreateAssetTx
from icefall.wire.container.platform import block_in_container
from icefall.wire.ids import id_from_text, id_text, input_id
from icefall.wire.pvm.codec import unpack_block as unpack_platform_block
from icefall.wire.pvm.types import PlatformImportTx
from icefall.wire.text import checksum_hex

CHAINS = {"X": "/blockchains/x-chain", "C": "/blockchains/c-chain"}
HRPS = {"p-forks-1": "custom", "p-local-1": "local"}


@pytest.fixture(scope="module", params=list(RICH))
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkScene]:
    with network_scene(request.param, tmp_path_factory.mktemp("network")) as found:
        yield found


@pytest.fixture(scope="module")
def naive(scene: NetworkScene) -> NaiveNetwork:
    return NaiveNetwork(scene.playback.recording)


def plain(amounts: list[Any]) -> dict[str, str]:
    return {one["assetId"]: one["amount"] for one in amounts}


def added(rows: list[tuple[str, int]]) -> dict[str, str]:
    sums: dict[str, int] = {}
    for asset, amount in rows:
        sums[asset] = sums.get(asset, 0) + amount
    return {asset: str(amount) for asset, amount in sums.items() if amount}


def check_utxo(shown: dict[str, Any], made: Made, naive: NaiveNetwork, hrp: str) -> None:
    """Compare every value of an output."""
    assert shown["utxoId"] == id_text(input_id(id_from_text(made.txid), made.index))
    assert (shown["creationTxHash"], shown["outputIndex"]) == (made.txid, str(made.index))
    assert shown["addresses"] == [naive.text(address, hrp) for address in made.owners]
    assert (shown["asset"]["assetId"], shown["asset"]["amount"]) == (made.asset, str(made.amount))
    assert (shown["threshold"], shown["locktime"], shown["timestamp"]) == (made.threshold, made.locktime, made.time)
    assert (shown["createdOnChainId"], shown["consumedOnChainId"]) == (made.source, made.destination)
    assert shown.get("consumingTxHash") == made.spent_by
    assert shown.get("consumingTxTimestamp") == made.spent_time


def check_tx(shown: dict[str, Any], moved: Moved, naive: NaiveNetwork, hrp: str) -> None:
    """Compare every value of a transaction."""
    assert (shown["txHash"], shown["txType"], shown["timestamp"]) == (moved.txid, moved.kind, moved.time)
    assert (shown["blockHeight"], shown["blockHash"]) == (moved.height, moved.block)
    memo = moved.tx.unsigned.memo.hex() if moved.chain == "X" else ""
    assert shown["memo"] == f"0x{memo}"
    for key, rows in (("consumedUtxos", moved.consumed), ("emittedUtxos", moved.made)):
        for utxo, made in zip(shown.get(key, []), rows, strict=True):
            check_utxo(utxo, made, naive, hrp)
    accounts = [(asset, amount) for _, amount, asset in moved.accounts]
    taken, made_here = ([(one.asset, one.amount) for one in rows] for rows in (moved.consumed, moved.made))
    is_import = moved.kind == "ImportTx"
    assert plain(shown["amountUnlocked"]) == added(taken + ([] if is_import else accounts))
    assert plain(shown["amountCreated"]) == added(made_here + (accounts if is_import else []))
    if moved.chain == "C":
        key, address = ("evmOutputs", "toAddress") if is_import else ("evmInputs", "fromAddress")
        assert [(one[address], one["asset"]["amount"], one["asset"]["assetId"]) for one in shown[key]] == [
            (f"0x{account.hex()}", str(amount), asset) for account, amount, asset in moved.accounts
        ]
        peer = id_text(moved.tx.peer_chain)
        ends = (peer, naive.c) if is_import else (naive.c, peer)
        assert (shown["sourceChain"], shown["destinationChain"]) == ends
    else:
        assert shown["chainFormat"] == "linear"
        assert ("assetCreated" in shown) == isinstance(moved.tx.unsigned, CreateAssetTx)
        for key, field in (("sourceChain", "source_chain"), ("destinationChain", "destination_chain")):
            chain_id = getattr(moved.tx.unsigned, field, None)
            assert shown.get(key) == (None if chain_id is None else id_text(chain_id))


@pytest.mark.parametrize("chain", list(CHAINS))
def test_blocks_are_those_of_the_containers(scene: NetworkScene, naive: NaiveNetwork, chain: str) -> None:
    path = CHAINS[chain]
    shown = walked(scene, f"{path}/blocks", "blocks", 2)
    expected = sorted(naive.blocks[chain], reverse=True)
    assert [(int(one["blockNumber"]), one["blockHash"], one["blockTimestamp"]) for one in shown] == expected
    parents = {int(one["blockNumber"]): one["parentHash"] for one in shown}
    for one in shown:
        height = int(one["blockNumber"])
        txids = [tx.txid for tx in naive.txs if tx.chain == chain and tx.height == height and height]
        assert (one["transactions"], one["txCount"]) == (txids, len(txids))
        assert one["blockSizeBytes"] == naive.sizes.get((chain, height), one["blockSizeBytes"])
        if height - 1 in parents:
            assert one["parentHash"] == next(name for at, name, _ in expected if at == height - 1)
        for name in (one["blockNumber"], one["blockHash"]):
            assert scene.result(f"{path}/blocks/{name}") == one
    middle = expected[len(expected) // 2][2]
    for query, inside in (
        (f"startTimestamp={middle}", [one for one in shown if one["blockTimestamp"] >= middle]),
        (f"endTimestamp={middle}", [one for one in shown if one["blockTimestamp"] <= middle]),
    ):
        assert walked(scene, f"{path}/blocks?{query}", "blocks", 1) == inside


@pytest.mark.parametrize("chain", ["P", "X", "C"])
def test_blocks_of_a_node(scene: NetworkScene, naive: NaiveNetwork, chain: str) -> None:
    path = f"/blockchains/{chain}"
    every = {one["blockNumber"]: one for one in walked(scene, f"{path}/blocks", "blocks")}
    nodes = {node: heights for (of, node), heights in naive.proposers.items() if of == chain}
    for node, heights in nodes.items():
        expected = [every[str(height)] for height in sorted(heights, reverse=True)]
        assert walked(scene, f"{path}/nodes/{node}/blocks", "blocks", 5) == expected
        at = expected[len(expected) // 2]["blockTimestamp"]
        inside = [one for one in expected if one["blockTimestamp"] >= at]
        assert walked(scene, f"{path}/nodes/{node}/blocks?startTimestamp={at}", "blocks", 5) == inside
    other = "NodeID-7Xhw2mDxuDS44j42TCB6U5579esbSt3Lg"
    assert other in nodes or scene.result(f"{path}/nodes/{other}/blocks")["blocks"] == []


@pytest.mark.parametrize("chain", list(CHAINS))
def test_transactions_are_those_of_the_blocks(scene: NetworkScene, naive: NaiveNetwork, chain: str) -> None:
    path, hrp = CHAINS[chain], HRPS[scene.playback.recording]
    shown, expected = walked(scene, f"{path}/transactions", "transactions", 2), naive.of_chain(chain)
    for one, moved in zip(shown, expected, strict=True):
        check_tx(one, moved, naive, hrp)
        alone = scene.result(f"{path}/transactions/{moved.txid}")
        assert without_keys(alone) == one
        spenders = [*alone.get("consumedUtxos", []), *alone.get("evmInputs", [])]
        assert all(credential["publicKey"] for utxo in spenders for credential in utxo["credentials"])
    assert walked(scene, f"{path}/transactions?sortOrder=asc", "transactions", 3) == shown[::-1]
    times = sorted(one["timestamp"] for one in shown)
    start, end = times[1], times[-2]
    framed = [one for one in shown if start <= one["timestamp"] <= end]
    for order, rows in (("desc", framed), ("asc", framed[::-1])):
        target = f"{path}/transactions?startTimestamp={start}&endTimestamp={end}&sortOrder={order}"
        assert walked(scene, target, "transactions", 1) == rows


def without_keys(shown: Any) -> Any:
    """A transaction as it is in a list."""
    if isinstance(shown, dict):
        return {key: without_keys(value) for key, value in shown.items() if key != "publicKey"}
    return [without_keys(one) for one in shown] if isinstance(shown, list) else shown


@pytest.mark.parametrize("chain", list(CHAINS))
def test_filters_find_page_by_page(
    scene: NetworkScene, naive: NaiveNetwork, monkeypatch: pytest.MonkeyPatch, chain: str
) -> None:
    """A request reads a bounded number of rows; the token leads on even from an empty page."""
    path, hrp = CHAINS[chain], HRPS[scene.playback.recording]
    whole = {one["txHash"]: one for one in walked(scene, f"{path}/transactions", "transactions")}
    for module in (x_chain, c_chain):
        monkeypatch.setattr(module, "SCAN_MAX", 2)
    for kinds in ("ImportTx", "ExportTx,CreateAssetTx", "OperationTx", "AddValidatorTx"):
        rows = [one for one in whole.values() if one["txType"] in kinds.split(",")]
        assert walked(scene, f"{path}/transactions?txTypes={kinds}", "transactions", 2) == rows
    accounts = {account for one in naive.txs for account, _, _ in one.accounts} if chain == "C" else set()
    for address in (*naive.owners(), *sorted(accounts)):
        text = f"0x{address.hex()}" if address in accounts else naive.text(address, hrp)
        rows = [whole[one.txid] for one in naive.of_chain(chain) if is_touched(one, address)]
        assert walked(scene, f"{path}/transactions?addresses={text}", "transactions", 1) == rows


def test_a_page_with_many_outputs_is_short(scene: NetworkScene, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = walked(scene, "/blockchains/x-chain/transactions", "transactions")
    monkeypatch.setattr(x_chain, "UTXOS_MAX", 3)
    page = scene.result("/blockchains/x-chain/transactions?pageSize=100")
    assert len(page["transactions"]) < len(whole)
    assert walked(scene, "/blockchains/x-chain/transactions", "transactions") == whole


def test_assets(scene: NetworkScene, naive: NaiveNetwork) -> None:
    path = CHAINS["X"]
    whole = {one["txHash"]: one for one in walked(scene, f"{path}/transactions", "transactions")}
    created = [one for one in naive.txs if one.chain == "X" and one.kind == "CreateAssetTx"]
    for one in created:
        unsigned = one.tx.unsigned
        details = scene.result(f"{path}/assets/{one.txid}")
        kinds = [type(output).__name__ for state in unsigned.initial_states for output in state.outputs]
        assert details == {
            "assetId": one.txid,
            "name": unsigned.name,
            "symbol": unsigned.symbol,
            "denomination": unsigned.denomination,
            "type": "nft" if set(kinds) == {"NftMintOutput"} else "secp256k1",
            "createdAtTimestamp": one.time,
            "cap": "variable" if any("Mint" in kind for kind in kinds) else "fixed",
        }
        rows = [
            whole[moved.txid]
            for moved in naive.of_chain("X")
            if one.txid in {output.asset for output in (*moved.consumed, *moved.made)}
        ]
        assert walked(scene, f"{path}/assets/{one.txid}/transactions", "transactions", 1) == rows
        imports = [row for row in rows if row["txType"] == "ImportTx"]
        assert walked(scene, f"{path}/assets/{one.txid}/transactions?txTypes=ImportTx", "transactions") == imports
    not_one = next(one.txid for one in naive.txs if one.kind == "ExportTx")
    assert scene.get(f"/v1/networks/fuji{path}/assets/{not_one}")[0] == 404
    assert scene.get(f"/v1/networks/fuji/blockchains/p-chain/assets/{not_one}")[0] == 400


def imported_by_p(scene: NetworkScene) -> dict[str, Any]:
    """The signatures for what P imported, by the ID of the output."""
    found = {}
    for one in recorded_containers(scene.playback.recording):
        for tx in unpack_platform_block(block_in_container(one.fetched.raw)).txs if one.chain == "P" else ():
            unsigned = tx.unsigned
            if isinstance(unsigned, PlatformImportTx):
                for number, given in enumerate(unsigned.imported_inputs, len(unsigned.inputs)):
                    (signature,) = tx.credentials[number].signatures
                    utxo_id = id_text(input_id(given.txid, given.output_index))
                    found[utxo_id] = [{"signature": base64.b64encode(signature).decode()}]
    return found


@pytest.mark.parametrize("chain", list(CHAINS))
def test_outputs_of_addresses(
    scene: NetworkScene, naive: NaiveNetwork, monkeypatch: pytest.MonkeyPatch, chain: str
) -> None:
    path, hrp = CHAINS[chain], HRPS[scene.playback.recording]
    credentials = {
        utxo["utxoId"]: utxo["credentials"]
        for of in CHAINS.values()
        for tx in walked(scene, f"{of}/transactions", "transactions")
        for utxo in tx.get("consumedUtxos", ())
    }
    credentials |= imported_by_p(scene)
    monkeypatch.setattr(outputs, "SCAN_MAX", 3)
    for address in naive.owners():
        base = f"{path}/utxos?addresses={naive.text(address, hrp)}"
        rows = [one for one in naive.owned(chain, address) if one.threshold == 1]
        rows.sort(key=lambda one: (one.time, input_id(id_from_text(one.txid), one.index)), reverse=True)
        every = walked(scene, f"{base}&includeSpent=true", "utxos", 3)
        for shown, made in zip(every, rows, strict=True):
            check_utxo(shown, made, naive, hrp)
            assert shown.get("credentials") == credentials.get(shown["utxoId"])
            raw = checksum_hex.decode(shown["utxoBytes"])
            assert id_text(unpack_utxo(raw).txid) == made.txid
        assert walked(scene, f"{base}&includeSpent=true&sortOrder=asc", "utxos", 2) == every[::-1]
        left = [one for one in every if "consumingTxHash" not in one]
        assert walked(scene, base, "utxos", 2) == left
        for asset in {one.asset for one in rows}:
            of_asset = [one for one in every if one["asset"]["assetId"] == asset]
            assert walked(scene, f"{base}&includeSpent=true&assetId={asset}", "utxos", 2) == of_asset
        least = sorted(one.amount for one in rows)[len(rows) // 2] if rows else 0
        large = [one for one in left if int(one["asset"]["amount"]) >= least]
        assert walked(scene, f"{base}&minUtxoAmount={least}", "utxos", 2) == large
        by_amount = sorted(every, key=lambda one: (int(one["asset"]["amount"]), id_from_text(one["utxoId"])))
        for order, expected in (("asc", by_amount), ("desc", by_amount[::-1])):
            target = f"{base}&includeSpent=true&sortBy=amount&sortOrder={order}"
            assert walked(scene, target, "utxos", 2) == expected
        posted = scene.post(f"{path}/utxos?includeSpent=true&pageSize=1000", {"addresses": naive.text(address, hrp)})
        assert posted["utxos"] == every


@pytest.mark.parametrize("chain", ["P", *CHAINS])
def test_balances_at_every_time(scene: NetworkScene, naive: NaiveNetwork, chain: str) -> None:
    """Balances now, and at the time of every block of X and C, of each address."""
    hrp = HRPS[scene.playback.recording]
    times = sorted({time for of in ("X", "C") for _, _, time in naive.blocks[of]})
    for address in naive.owners():
        for at in (None, *times):
            query = "" if at is None else f"&blockTimestamp={at}"
            target = f"/blockchains/{chain}/balances?addresses={naive.text(address, hrp)}{query}"
            shown = scene.result(target)["balances"]
            expected = naive.balances(chain, address, 1_900_000_000 if at is None else at)
            found: dict[str, dict[str, tuple[str, int]]] = {}
            for category, amounts in shown.items():
                if chain == "P" and "atomic" not in category:
                    continue
                for one in amounts:
                    key = f"{one['assetId']} {one['sharedWithChainId']}" if "atomic" in category else one["assetId"]
                    amount, count = found.setdefault(category, {}).get(key, ("0", 0))
                    found[category][key] = str(int(amount) + int(one["amount"])), count + one["utxoCount"]
            if chain in ("P", "C"):
                expected = {category: of for category, of in expected.items() if "atomic" in category}
            assert found == expected, (chain, at)


def test_chains_and_last_activity_of_addresses(scene: NetworkScene, naive: NaiveNetwork) -> None:
    hrp = HRPS[scene.playback.recording]
    for address in naive.owners():
        text = naive.text(address, hrp)
        (row,) = scene.result(f"/addresses:listChainIds?addresses={text}")["addresses"]
        assert row["address"] == text
        of_p = bool(walked(scene, f"/blockchains/p-chain/utxos?addresses={text}&includeSpent=true", "utxos"))
        expected = [naive.p] if of_p or naive.owned("P", address) else []
        expected += [id_text(naive.ids[chain]) for chain in ("X", "C") if naive.owned(chain, address)]
        assert row["blockchainIds"] == expected
        for chain, path in {"P": "/blockchains/p-chain", **CHAINS}.items():
            txs = walked(scene, f"{path}/transactions?addresses={text}", "transactions")
            target = f"{path}/lastActivityTimestampByAddresses"
            if not txs and chain != "P":
                assert scene.get(f"/v1/networks/fuji{target}?addresses={text}")[0] == 404
                continue
            moving = [
                one
                for one in txs
                if text in str((one.get("consumedUtxos"), one.get("emittedUtxos"), one.get("evmInputs")))
            ]
            if not moving:
                continue
            shown, newest = scene.result(f"{target}?addresses={text}"), moving[0]
            assert (shown["txHash"], shown["chainName"]) == (newest["txHash"], f"{chain.lower()}-chain")
            assert shown["timestamp"] == newest.get("timestamp", newest.get("blockTimestamp"))
            assert shown["blockNumber"] == str(newest.get("blockHeight", newest.get("blockNumber")))
            key = "consumedUtxos" if shown["isConsumed"] else "emittedUtxos"
            own = [one["utxoId"] for one in newest.get(key, []) if text in one["addresses"]]
            assert not own or shown["utxoId"] == own[-1]
            assert scene.post(target, {"addresses": text}) == shown


def test_there_are_no_vertices(scene: NetworkScene) -> None:
    path = CHAINS["X"]
    some = "11111111111111111111111111111111LpoYY"
    for target in (f"{path}/vertices", f"{path}/vertices:listByHeight?vertexHeight=1"):
        assert scene.result(target)["vertices"] == []
    assert scene.get(f"/v1/networks/fuji{path}/vertices/{some}")[0] == 404


def test_wrong_values_are_refused(scene: NetworkScene) -> None:
    rich = RICH[scene.playback.recording]
    account = "0x" + 40 * "1"
    for target, status, said in (
        ("/blockchains/x-chain/utxos?addresses=" + account, 400, "addresses must be in bech32"),
        ("/blockchains/x-chain/transactions?addresses=" + account, 400, "addresses must be in bech32"),
        (f"/blockchains/x-chain/utxos?addresses={rich}&sortBy=size", 400, "sortBy must be one of"),
        (f"/blockchains/x-chain/balances?addresses={rich}&blockTimestamp=4000000000", 400, "in the future"),
        ("/blockchains/c-chain/blocks/0x12", 400, "blockId must be the height of a block"),
        ("/blockchains/c-chain/blocks/0x" + 64 * "1", 404, "no such block"),
        ("/blockchains/x-chain/blocks/99999", 404, "no such block"),
        ("/blockchains/c-chain/transactions/11111111111111111111111111111111LpoYY", 404, "no such atomic"),
        ("/blockchains/c-chain/vertices", 400, "X-Chain only"),
        ("/blockchains/x-chain/transactions:listStaking", 400, "P-Chain only"),
    ):
        found, answer = scene.get(f"/v1/networks/fuji{target}")
        assert (found, said in answer["message"]) == (status, True), (target, answer)
