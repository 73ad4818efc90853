"""Results of callTracer and prestateTracer in the shape of anvil's trace_block and trace_replayBlockTransactions.

tests/evm/test_evm_parity.py compares this with what a real anvil answered.
"""

from collections.abc import Iterator
from typing import Any

ERRORS = {  # the words of trace_block; anvil knows more
    "execution reverted": "Reverted",
    "invalid opcode: INVALID": "Bad instruction",
    "precompiled failed": "Built-in failed",
    "insufficient balance for transfer": "Insufficient balance for transfer",
}
_KEEPS_RESULT = "Reverted"


def trace_block(calls: list[Any], block: dict[str, Any]) -> list[dict[str, Any]]:
    """anvil puts a destruction before the calls that went ahead of it."""
    rows = []
    for position, row in enumerate(calls):
        where = {
            "blockHash": block["hash"],
            "blockNumber": int(block["number"], 16),
            "transactionHash": row["txHash"],
            "transactionPosition": position,
        }
        rows += [{**one, **where} for one in _rows(row["result"], [])]
    return rows


def trace_replay(calls: list[Any], diffs: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "output": row["result"].get("output", "0x"),
            "stateDiff": _state_diff(diff["result"], row["result"]),
            "trace": [],
            "vmTrace": None,
            "transactionHash": diff["txHash"],
        }
        for row, diff in zip(calls, diffs, strict=True)
    ]


def _rows(frame: dict[str, Any], at: list[int]) -> Iterator[dict[str, Any]]:
    inner = list(enumerate(frame.get("calls", [])))
    yield _row(frame, at, len(inner))
    destructions = [one for one in inner if one[1]["type"] == "SELFDESTRUCT"]
    for place, one in [*destructions, *(one for one in inner if one not in destructions)]:
        yield from _rows(one, [*at, place])


def _row(frame: dict[str, Any], at: list[int], subtraces: int) -> dict[str, Any]:
    kind, value = frame["type"], frame.get("value", "0x0")
    row: dict[str, Any] = {"subtraces": subtraces, "traceAddress": at, "result": None}
    if kind == "SELFDESTRUCT":
        action = {"address": frame["from"], "refundAddress": frame["to"], "balance": value}
        return {**row, "type": "suicide", "action": action}
    action = {"from": frame["from"], "gas": frame["gas"], "value": value}
    result = {"gasUsed": frame["gasUsed"]}
    if kind in ("CREATE", "CREATE2"):
        row["type"] = "create"
        action |= {"init": frame["input"], "creationMethod": kind.lower()}
        # The place of a failed creation is in no call trace; some clients send it, and it must be ignored.
        result |= {"address": frame.get("to", "0x" + "ee" * 20), "code": frame.get("output", "0x")}
    else:
        row["type"] = "call"
        action |= {"to": frame["to"], "input": frame["input"], "callType": kind.lower()}
        result |= {"output": frame.get("output", "0x")}
    row["action"] = action
    error = frame.get("error")
    if error is not None:
        row["error"] = "Out of gas" if error.startswith("out of gas") else ERRORS.get(error, error)
    if error is None or row["error"] == _KEEPS_RESULT:
        row["result"] = result
    return row


def _frames(frame: dict[str, Any], *, is_failed: bool = False) -> Iterator[tuple[dict[str, Any], bool]]:
    is_failed = is_failed or "error" in frame
    yield frame, is_failed
    for inner in frame.get("calls", []):
        yield from _frames(inner, is_failed=is_failed)


def _state_diff(diff: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    made = {
        frame.get("to")
        for frame, is_failed in _frames(root)
        if frame["type"] in ("CREATE", "CREATE2") and not is_failed
    }
    pre, post = diff["pre"], diff["post"]
    accounts = {}
    for address in sorted({*pre, *post}):
        before, after = pre.get(address, {}), post.get(address)
        if address in made and after is None:
            continue  # made and destroyed at once: not even money it had before is shown
        accounts[address] = _account(before, after, is_made=address in made)
    return accounts


def _account(before: dict[str, Any], after: dict[str, Any] | None, *, is_made: bool) -> dict[str, Any]:
    is_gone = after is None
    after = {"balance": "0x0"} if after is None else after
    slots = sorted({*before.get("storage", {}), *after.get("storage", {})}) if not is_gone else []
    balance = before.get("balance", "0x0")
    if is_made and not before:
        return {
            "balance": {"+": after.get("balance", "0x0")},
            "nonce": {"+": hex(after.get("nonce", 0))},
            "code": {"+": after.get("code", "0x")},
            "storage": {slot: {"+": after["storage"][slot]} for slot in slots},
        }
    return {
        "balance": _change(balance, after.get("balance", balance)),
        "nonce": _change(hex(before.get("nonce", 0)), hex(after.get("nonce", before.get("nonce", 0)))),
        "code": _change("0x", after.get("code", "0x")) if is_made else "=",  # delegations are not shown
        "storage": {slot: _change(_slot(before, slot), _slot(after, slot)) for slot in slots},
    }


def _slot(account: dict[str, Any], slot: str) -> str:
    return str(account.get("storage", {}).get(slot, "0x" + "00" * 32))


def _change(before: str, after: str) -> Any:
    return "=" if before == after else {"*": {"from": before, "to": after}}
