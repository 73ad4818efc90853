"""What a message says of a transaction, compared with the block and receipts as the node sent them: native payments,
tokens of every standard, calls and logs."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.evm.recordings import derived
from tests.webhooks.scene import CHAIN, ID, Scene, Sends, blocks

from icefall.api.data.render import webhook_body
from icefall.wire.evm.rlp import keccak256

TRANSFER = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()
SINGLE = "0x" + keccak256(b"TransferSingle(address,address,address,uint256,uint256)").hex()
BATCH = "0x" + keccak256(b"TransferBatch(address,address,address,uint256[],uint256[])").hex()
Move = tuple[Any, ...]  # log index, token, from, to, token ID if it has one, amount


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def everybody() -> list[bytes]:
    return sorted({one.address for block in blocks() for one in block.participants})


async def sent(scene: Scene, *addresses: bytes, **fields: Any) -> list[dict[str, Any]]:
    sends = Sends()
    await scene.webhook(*addresses, **fields)
    await scene.put(blocks())
    await scene.delivery(sends).drain()
    return sends.bodies()


def number(text: str | None) -> str:
    return str(int(text or "0x0", 16))


def words(data: str) -> list[int]:
    return [int(data[at : at + 64], 16) for at in range(2, len(data), 64)]


def party(word: int) -> str:
    return f"0x{word:040x}"


def pair_of_lists(data: list[int], *, is_batch: bool) -> tuple[list[int], list[int]]:
    """The token IDs and amounts of a transfer; none where they are not two lists of one length."""
    if not is_batch:
        return (data[:1], data[1:]) if len(data) == 2 else ([], [])
    starts = [offset // 32 for offset in data[:2]]
    if len(data) < 2 or any(start >= len(data) for start in starts):
        return [], []
    ids, amounts = (data[start + 1 : start + 1 + data[start]] for start in starts)
    return (ids, amounts) if len(ids) == len(amounts) == data[starts[0]] else ([], [])


def moves(logs: list[dict[str, Any]]) -> dict[str, list[Move]]:
    """The transfers that logs say, by standard; `either`: an amount or a token ID, for no field is indexed. A log of
    another shape is none."""
    found: dict[str, list[Move]] = {"erc20": [], "erc721": [], "erc1155": [], "either": []}
    for log in logs:
        topics, values = log["topics"], [int(one, 16) for one in log["topics"][1:]] + words(log["data"])
        head = int(log["logIndex"], 16), log["address"]
        if topics[:1] == [TRANSFER] and len(values) == 3:
            parties = party(values[0]), party(values[1])
            if len(topics) == 4:
                found["erc721"].append((*head, *parties, str(values[2]), "1"))
            else:
                found["erc20" if len(topics) == 3 else "either"].append((*head, *parties, "", str(values[2])))
        elif topics[:1] in ([SINGLE], [BATCH]) and len(topics) == 4:
            parties = party(values[1]), party(values[2])
            ids, amounts = pair_of_lists(words(log["data"]), is_batch=topics[0] == BATCH)
            found["erc1155"] += [(*head, *parties, str(a), str(b)) for a, b in zip(ids, amounts, strict=True)]
    return found


def shown(transfers: list[dict[str, Any]], standard: str) -> list[Move]:
    return [
        (
            one["logIndex"],
            one[f"{standard}Token"]["address"].lower(),
            one["from"].lower(),
            one["to"].lower(),
            one.get("tokenId", ""),
            one["value"],
        )
        for one in transfers
    ]


def number_of(move: Move) -> Move:
    """A transfer with its token ID, or its amount where it has none."""
    return (*move[:4], move[4] or move[5])


def expected(block: dict[str, Any], tx: dict[str, Any], receipt: dict[str, Any]) -> dict[str, Any]:
    """What a message repeats of a transaction, in lower case. Prices that a type does not have are its gas price."""
    price = number(receipt["effectiveGasPrice"])
    return {
        "blockHash": block["hash"],
        "blockNumber": number(block["number"]),
        "blockTimestamp": int(block["timestamp"], 16),
        "from": tx["from"],
        "to": tx["to"] or receipt["contractAddress"],
        "gas": number(tx["gas"]),
        "gasPrice": price,
        "maxFeePerGas": number(tx["maxFeePerGas"]) if "maxFeePerGas" in tx else price,
        "maxPriorityFeePerGas": number(tx["maxPriorityFeePerGas"]) if "maxPriorityFeePerGas" in tx else price,
        "txHash": tx["hash"],
        "txStatus": number(receipt["status"]),
        "input": tx["input"],
        "nonce": number(tx["nonce"]),
        "transactionIndex": int(tx["transactionIndex"], 16),
        "value": number(tx["value"]),
        "type": int(tx["type"], 16),
        "chainId": ID,
        "receiptCumulativeGasUsed": number(receipt["cumulativeGasUsed"]),
        "receiptGasUsed": number(receipt["gasUsed"]),
        "receiptEffectiveGasPrice": price,
        "receiptRoot": block["receiptsRoot"],
    }


def test_every_field_is_what_the_node_sent(scene: Scene) -> None:
    bodies = asyncio.run(sent(scene, *everybody(), include_logs=1))
    by_hash = {one["event"]["transaction"]["txHash"]: one["event"] for one in bodies}
    kinds: set[str] = set()
    for one in derived(CHAIN):
        block = one.line["block"]
        for tx, receipt in zip(block["transactions"], one.line["receipts"], strict=True):
            event = by_hash.pop(tx["hash"])
            given = event["transaction"]
            wanted = expected(block, tx, receipt)
            assert {name: given[name].lower() if name in ("from", "to") else given[name] for name in wanted} == wanted
            assert ("contractAddress" in given) == (tx["to"] is None)
            found = moves(receipt["logs"])
            of = {one: shown(given[f"{one}Transfers"], one) for one in ("erc20", "erc721", "erc1155")}
            assert sorted(of["erc1155"]) == sorted(found["erc1155"])
            assert all(set(found[one]) <= set(of[one]) for one in of)
            certain = sorted(map(number_of, found["erc20"] + found["erc721"]))
            others = {number_of(one) for one in found["either"]}  # those of a contract of neither standard are none
            both = sorted(map(number_of, of["erc20"] + of["erc721"]))
            assert [one for one in both if one not in others] == [one for one in certain if one not in others]
            kinds |= {standard for standard, rows in of.items() if rows}
            logs = [
                {
                    "address": log["address"], "data": log["data"], "logIndex": int(log["logIndex"], 16),
                    "transactionIndex": int(log["transactionIndex"], 16), "removed": False,
                    "topic0": "", **{f"topic{at}": topic for at, topic in enumerate(log["topics"])},
                }
                for log in receipt["logs"]
            ]  # fmt: skip
            assert [one | {"address": one["address"].lower()} for one in event["logs"]] == logs
            kinds |= {f"type {given['type']}", f"status {given['txStatus']}"}
            kinds |= {"creation"} if tx["to"] is None else {"payment"} if given["value"] != "0" else set()
    assert by_hash == {}, "a message about a transaction that is not in the chain"
    assert {"erc20", "erc721", "erc1155", "creation", "payment", "status 0", "status 1", "type 2"} <= kinds


def test_calls_are_there_where_they_are_wanted(scene: Scene) -> None:
    rows = {(one.block.number, call.tx_index): call for one in blocks() for call in one.internals}
    parties = sorted({call.to for call in rows.values() if call.to})[:5]
    parties += sorted({call.sender for one in blocks() for call in one.internals if call.is_reverted})[:1]
    bodies = asyncio.run(sent(scene, *parties, include_internal_txs=1))
    assert {call.to for call in rows.values()} & set(parties)
    seen, reverted = 0, set()
    for body in bodies:
        transaction = body["event"]["transaction"]
        assert "logs" not in body["event"]
        stored = [
            call
            for one in blocks() if str(one.block.number) == transaction["blockNumber"]
            for call in one.internals if call.tx_index == transaction["transactionIndex"]
        ]  # fmt: skip
        given = transaction["internalTransactions"]
        assert [
            (one["from"].lower(), one["value"], one["gasUsed"], one["gasLimit"], one["isReverted"]) for one in given
        ] == [
            (f"0x{call.sender.hex()}", str(call.value), str(call.gas_used), str(call.gas_limit), call.is_reverted)
            for call in stored
        ]
        reverted |= {one["isReverted"] for one in given}
        assert {one["transactionHash"] for one in given} <= {transaction["txHash"]}
        seen += len(given)
    assert seen
    assert reverted == {True, False}, "a call that was undone moved nothing, which its value does not say"


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        (10_000, {"logs", "internalTransactions", "erc20Transfers", "input"}),
        (5_000, {"erc20Transfers", "input"}),
        (2_500, {"input"}),
        (1_000, set()),
    ],
)
def test_a_body_that_would_be_too_large_goes_without_some_parts(
    monkeypatch: pytest.MonkeyPatch, limit: int, left: set[str]
) -> None:
    """Logs and calls go first, then transfers, then the input; a body that fits is whole."""
    monkeypatch.setattr(webhook_body, "SIZE_MAX", limit)
    logs, calls, transfers = ([{"data": "0x" + "12" * 700}] for _ in range(3))
    transaction = {"input": "0x" + "12" * 700, "value": "1", "erc20Transfers": transfers, "internalTransactions": calls}
    body = {"event": {"logs": logs, "transaction": transaction}}
    raw = webhook_body._within_limit(body)
    assert len(raw) <= limit
    seen = json.loads(raw)
    assert seen.get("truncated", False) == ("logs" not in left)
    found = seen["event"]["transaction"] | {"logs": seen["event"].get("logs", [])}
    assert {name for name, value in found.items() if value not in ([], "0x", "1")} == left
    assert found.keys() == transaction.keys() | {"logs"}, "no field that clients need is missing"
