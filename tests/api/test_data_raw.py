"""Raw logs, call trees and revert reasons, from an upstream or from the store: compared with the recordings."""

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.api.data_naive import Naive, address_text, naive, number
from tests.api.data_scene import InProcess, Served, chain_id, data_server, loaded, put_chains, walked
from tests.evm.indexed import fill
from tests.evm.recordings import unhex
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.evm_scene import RecordingLog
from tests.upstream.replay import FOREVER
from tests.upstream.threaded import in_thread

from icefall.evm.encoding import pack_calls, unpack_calls
from icefall.evm.reading import raw
from icefall.evm.storing.store import store_path
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.wire.evm.decode import decode_tx_calls
from icefall.wire.evm.events import reason_of
from icefall.wire.evm.geth_format import GETH
from icefall.wire.evm.rlp import keccak256

CHAINS = ("geth-1", "anvil-1")


RAW_CALLS = {"eth_getTransactionReceipt", "eth_getLogs", "debug_traceTransaction", "trace_transaction"}


@pytest.fixture(scope="module", params=["upstream", "store"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("raw")
    with data_server(folder, chains=CHAINS) as program:
        if request.param == "store":
            for chain, replay in program.replays.items():
                asyncio.run(_fill(store_path(folder / "data", chain_id(chain)), replay))
                replay.off |= RAW_CALLS  # so that what is answered is from the store
        yield program


async def _fill(path: Path, replay: EvmReplay) -> None:
    """While the program reads the same file, as the indexer does it."""
    upstream = EvmUpstream([replay.url], replay.chain_id, RecordingLog())
    try:
        await fill(path, upstream)
    finally:
        await upstream.close()


@pytest.fixture(params=CHAINS)
def recorded(request: pytest.FixtureRequest) -> Naive:
    return naive(request.param)


def logs_of(recorded: Naive) -> list[Any]:
    """Every log of the chain, in its order, as the interface shows it."""
    found = []
    for one in recorded.blocks:
        block = one.line["block"]
        for receipt in one.line["receipts"]:
            for log in receipt["logs"]:
                shown = {
                    "blockNumber": number(block["number"]),
                    "blockTimestamp": int(block["timestamp"], 16),
                    "blockHash": block["hash"],
                    "txHash": receipt["transactionHash"],
                    "logIndex": int(log["logIndex"], 16),
                    "address": address_text(unhex(log["address"].lower())),
                    "topics": log["topics"],
                    "data": log["data"],
                }
                if log["topics"] and log["topics"][0] == TRANSFER:
                    shown["eventSignature"] = "Transfer(address,address,uint256)"
                found.append(shown)
    return found


TRANSFER = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()


def known(log: dict[str, Any]) -> dict[str, Any]:
    """Without the names of other events than transfers, and without what is decoded."""
    is_transfer = log["topics"][:1] == [TRANSFER]
    unknown = {"decodedLog"} if is_transfer else {"decodedLog", "eventSignature"}
    return {key: value for key, value in log.items() if key not in unknown}


def page_size(rows: Sequence[Any]) -> int:
    """A size with which a list has some pages, but no more than six where it is long."""
    return min(100, max(3, len(rows) // 5))


def test_logs_of_a_transaction(recorded: Naive, served: Served) -> None:
    of_tx: dict[str, list[Any]] = {}
    for log in logs_of(recorded):
        of_tx.setdefault(log["txHash"], []).append(log)
    largest = sorted(of_tx, key=lambda txid: -len(of_tx[txid]))
    for txid in (*largest[:5], *largest[-2:]):
        path = f"/v1/chains/{recorded.id}/transactions/{txid}/logs"
        size = page_size(of_tx[txid])  # for each page the upstream sends the receipt anew
        assert [known(one) for one in walked(served, path, "logs", size)] == of_tx[txid]
    without = next(tx["here"]["txHash"] for tx in recorded.txs if tx["here"]["txHash"] not in of_tx)
    assert served.result(f"/v1/chains/{recorded.id}/transactions/{without}/logs") == {"logs": []}


def test_logs_of_a_contract(recorded: Naive, served: Served) -> None:
    every = logs_of(recorded)
    addresses = [one["address"] for one in every]
    address = max(set(addresses), key=addresses.count)
    mine = [one for one in every if one["address"] == address][::-1]
    path = f"/v1/chains/{recorded.id}/addresses/{address}/logs"
    assert [known(one) for one in walked(served, path, "logs", page_size(mine))] == mine
    one = mine[len(mine) // 2]
    for topics in ({0: one["topics"][0]}, {1: one["topics"][1]} if len(one["topics"]) > 1 else {0: "0x" + "11" * 32},
                   dict(enumerate(one["topics"]))):  # fmt: skip
        asked = "&".join(f"topic{index}={topic}" for index, topic in topics.items())
        expected = [log for log in mine if all(log["topics"][at : at + 1] == [it] for at, it in topics.items())]
        assert [known(log) for log in walked(served, f"{path}?{asked}", "logs", page_size(expected))] == expected
    low, high = int(mine[-1]["blockNumber"]) + 1, int(mine[0]["blockNumber"])
    inside = walked(served, f"{path}?startBlock={low}&endBlock={high}", "logs", page_size(mine))
    assert [known(log) for log in inside] == [log for log in mine if low <= int(log["blockNumber"]) < high]


def test_transfers_are_decoded(recorded: Naive, served: Served) -> None:
    transfers = [log for log in logs_of(recorded) if log["topics"][:1] == [TRANSFER] and len(log["topics"]) in (3, 4)]
    for expected in (transfers[0], transfers[-1]):
        path = f"/v1/chains/{recorded.id}/transactions/{expected['txHash']}/logs"
        (shown,) = (log for log in walked(served, path, "logs", 30) if log["logIndex"] == expected["logIndex"])
        topics, is_nft = expected["topics"], len(expected["topics"]) == 4
        last = int(topics[3] if is_nft else expected["data"], 16)
        parameters = [
            {"name": name, "type": "address", "value": address_text(unhex(topic)[12:]), "isIndexed": True}
            for name, topic in zip(("from", "to"), topics[1:3], strict=True)
        ]
        number_at_end: dict[str, Any] = {
            "name": "tokenId" if is_nft else "value",
            "type": "uint256",
            "value": str(last),
        }
        parameters.append(number_at_end | ({"isIndexed": True} if is_nft else {}))
        assert shown["decodedLog"] == {"signature": "Transfer(address,address,uint256)", "parameters": parameters}


def call_tree(frame: dict[str, Any], depth: int, failed: bool, into: list[Any], parent: int | None) -> None:
    failed = failed or "error" in frame
    index = len(into)
    into.append((index, depth, parent, frame["type"], failed, frame))
    for child in frame.get("calls") or ():
        call_tree(child, depth + 1, failed, into, index)


def traced(recorded: Naive) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in recorded.blocks:
        for tx, trace in zip(one.line["block"]["transactions"], one.line["calls"] or (), strict=False):
            call_tree(trace["result"], 0, False, found.setdefault(tx["hash"], []), None)
    return found


@pytest.mark.parametrize("tracer", ["callTracer", "trace_transaction"])
def test_calls_of_a_transaction(tracer: str, recorded: Naive, served: Served) -> None:
    if tracer == "trace_transaction":
        if recorded.chain != "anvil-1" or "eth_getLogs" in served.replays[recorded.chain].off:
            return  # the others do not offer it
        served.replays[recorded.chain].off.add("debug_traceTransaction")
    try:
        found = traced(recorded)
        failed = [txid for txid, calls in found.items() if any(call[4] for call in calls)]
        sample = [*sorted(found, key=lambda txid: -len(found[txid]))[:4], *failed[:4]]
        assert len(sample) > 4
        for txid in sample:
            listed = walked(served, f"/v1/chains/{recorded.id}/transactions/{txid}/calls", "calls", 5)
            assert len(listed) == len(found[txid])
            for shown, (index, depth, parent, kind, reverted, frame) in zip(listed, found[txid], strict=True):
                assert (shown["index"], shown["depth"], shown.get("parentIndex")) == (index, depth, parent)
                assert (shown["callType"], shown["isReverted"]) == (kind, reverted)
                assert shown["from"].lower() == frame["from"].lower()
                assert int(shown["value"]) == int(frame.get("value") or "0x0", 16)
                assert ("error" in shown) == ("error" in frame)
                assert shown["input"] == "0x" + unhex(frame["input"])[:4096].hex()
                if "decodedInput" in shown:
                    assert shown["decodedInput"]["signature"] == shown["methodName"]
                if frame["input"].startswith("0xa9059cbb") and len(frame["input"]) == 138:
                    to, amount = shown["decodedInput"]["parameters"]
                    assert to["value"].lower() == "0x" + frame["input"][34:74].lower()
                    assert int(amount["value"]) == int(frame["input"][74:], 16)
    finally:
        if "eth_getLogs" not in served.replays[recorded.chain].off:
            served.replays[recorded.chain].off.discard("debug_traceTransaction")


def test_call_data_of_a_transaction(recorded: Naive, served: Served) -> None:
    """The call data is stored with the transaction. That of a creation is code, and a plain transfer has none."""
    found = {}
    for tx in recorded.txs:
        txid, method = tx["here"]["txHash"], tx["native"]["method"]
        kind = (method["callType"], method.get("methodName"))
        if kind in found:
            continue
        shown = served.result(f"/v1/chains/{recorded.id}/transactions/{txid}/input")
        whole = served.result(f"/v1/chains/{recorded.id}/transactions/{txid}")["nativeTransaction"]
        assert (shown["txHash"], shown["input"]) == (txid, whole["input"])
        assert shown.get("methodName") == whole["method"].get("methodName")
        found[kind] = shown
        if kind[0] != "CONTRACT_CALL":
            assert not {"methodName", "decodedInput"} & set(shown)
    decoded = [one["decodedInput"] for one in found.values() if "decodedInput" in one]
    assert any(one["signature"] == "transfer(address,uint256)" for one in decoded)
    assert served.get(f"/v1/chains/{recorded.id}/transactions/0x{7:064x}/input").status == 404


def test_revert_reasons(recorded: Naive, served: Served) -> None:
    found, texts = traced(recorded), 0
    for tx in recorded.txs:
        txid = tx["here"]["txHash"]
        path = f"/v1/chains/{recorded.id}/transactions/{txid}/revertReason"
        if tx["native"]["txStatus"] == "1":
            continue
        frame = found[txid][0][5]
        shown = served.result(path)
        assert (shown["txHash"], shown["txStatus"], shown["isReverted"]) == (txid, "0", True)
        assert shown["error"] == frame["error"]
        assert shown.get("revertData") == (frame.get("output") if frame.get("output") not in (None, "0x") else None)
        if (frame.get("output") or "").startswith("0x08c379a0"):
            assert shown["revertReason"] == frame.get("revertReason", shown["revertReason"])
            (message,) = shown["decodedError"]["parameters"]
            assert (message["type"], message["value"]) == ("string", shown["revertReason"])
        texts += "revertReason" in shown
    good = next(tx["here"]["txHash"] for tx in recorded.txs if tx["native"]["txStatus"] == "1")
    shown = served.result(f"/v1/chains/{recorded.id}/transactions/{good}/revertReason")
    assert shown == {"txHash": good, "txStatus": "1", "isReverted": False}
    assert texts


def test_an_upstream_without_tracers_is_a_503(served: Served) -> None:
    recorded, replay = naive("geth-1"), served.replays["geth-1"]
    if "eth_getLogs" in replay.off:
        return  # not asked
    txid = recorded.txs[0]["here"]["txHash"]
    replay.off.add("debug_traceTransaction")
    try:
        reply = served.get(f"/v1/chains/{recorded.id}/transactions/{txid}/calls")
        assert reply.status == 503
        assert "does not offer the call" in reply.json()["message"]
    finally:
        replay.off.discard("debug_traceTransaction")
    replay.evm_faults.append(EvmFault("eth_getTransactionReceipt", result=b'{"transactionHash":1}'))
    assert served.get(f"/v1/chains/{recorded.id}/transactions/{txid}/logs").status == 502
    missing = "0x" + "12" * 32
    for part in ("logs", "calls", "revertReason"):
        assert served.get(f"/v1/chains/{recorded.id}/transactions/{missing}/{part}").status == 404


def test_calls_of_the_transaction_in_another_block_are_a_503(served: Served) -> None:
    """After a reorganisation that is not followed, the upstream has the transaction elsewhere, with other calls."""
    recorded, replay = naive("geth-1"), served.replays["geth-1"]
    if "eth_getLogs" in replay.off:
        return  # not asked
    txid = next(tx["here"]["txHash"] for tx in recorded.txs if tx["native"]["txStatus"] == "0")

    def moved(raw: bytes) -> bytes:
        return re.sub(rb'"blockHash":"0x....', b'"blockHash":"0x7777', raw)

    replay.evm_faults.append(EvmFault("eth_getTransactionReceipt", times=FOREVER, change=moved))
    try:
        for part in ("calls", "revertReason"):
            reply = served.get(f"/v1/chains/{recorded.id}/transactions/{txid}/{part}")
            assert (reply.status, "was reorganised" in reply.json()["message"]) == (503, True), part
    finally:
        replay.evm_faults.clear()
    assert served.get(f"/v1/chains/{recorded.id}/transactions/{txid}/calls").status == 200


def test_a_call_tree_of_any_depth_is_read_and_stored() -> None:
    frame: dict[str, Any] = {"type": "CALL", "from": "0x" + "11" * 20, "to": "0x" + "22" * 20, "gas": "0x1",
                             "gasUsed": "0x1", "input": "0x", "value": hex(2**255)}  # fmt: skip
    text = json.dumps(frame)
    for _ in range(1_023):
        text = json.dumps(frame)[:-1] + ', "calls": [' + text + "]}"
    calls = decode_tx_calls(text.encode(), GETH)
    assert [call.depth for call in calls] == list(range(1_024))
    assert unpack_calls(pack_calls(calls)) == calls


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("08c379a0" + f"{32:064x}{2:064x}" + "6e6f" + "00" * 30, "no"),
        ("4e487b71" + f"{0x11:064x}", "panic 0x11: arithmetic overflow or underflow"),
        ("4e487b71" + f"{0x99:064x}", "panic 0x99: unknown"),
        ("4e487b71" + "ff" * 32, None),
        ("08c379a0" + f"{32:064x}{2**200:064x}", None),
        ("08c379a0" + f"{2**255:064x}{2:064x}", None),
        ("08c379a0" + f"{32:064x}{1:064x}" + "ff" * 32, "\ufffd"),
        ("12345678", None),
        ("", None),
    ],
)
def test_revert_data_as_text(output: str, text: str | None) -> None:
    assert reason_of(bytes.fromhex(output)) == text


@pytest.mark.parametrize("chain", CHAINS)
def test_a_contract_is_searched_some_blocks_at_a_time(
    chain: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request makes a few calls at most, and the page token goes on where it stopped."""
    monkeypatch.setattr(raw, "WINDOW", 7)
    recorded, folder = naive(chain), tmp_path_factory.mktemp("windows")
    every = logs_of(recorded)
    address = every[0]["address"]
    with in_thread(loaded(chain)) as replay:
        put_chains(folder, {chain: replay.url})
        with InProcess(folder, {chain: replay.url}) as app:
            listed = walked(app, f"/v1/chains/{recorded.id}/addresses/{address}/logs", "logs", 4)
            assert [known(one) for one in listed] == [one for one in every if one["address"] == address][::-1]
            before = replay.asked("eth_getLogs")
            app.result(f"/v1/chains/{recorded.id}/addresses/{'0x' + '99' * 20}/logs")
            assert replay.asked("eth_getLogs") - before == raw.CALLS_MAX
