"""JSON-RPC errors are classified: those of the recorded clients, and those that others are known for."""

import json
import re

import pytest
from tests.upstream.evm_recording import CHAINS, lines

from icefall.upstream.client import UpstreamBusy, UpstreamDown
from icefall.upstream.evm.errors import (
    Aborted,
    BatchRefused,
    FailureType,
    NoState,
    NotThere,
    Reverted,
    RpcRefusal,
    TooHeavy,
    Unsupported,
    Untraceable,
    classify,
)

# By the note of the recorded row; the same on every client that complains at all.
RECORDED: dict[str, FailureType] = {
    "eth_protocolVersion": Unsupported,
    "rpc_modules": Unsupported,
    "method not found": Unsupported,
    "trace_block (parity)": Unsupported,
    "trace_replayBlockTransactions": Unsupported,
    "debug_getRawReceipts": Unsupported,
    "trace unknown tracer": Unsupported,
    "block beyond head": NotThere,
    "block head+1": NotThere,
    "trace beyond head": NotThere,
    "trace block by unknown hash": NotThere,
    "trace unknown tx": NotThere,
    "balance beyond head": NotThere,
    "logs by unknown block hash": NotThere,
    "trace genesis callTracer": Untraceable,
    "trace genesis prestate": Untraceable,
    "trace timeout option": TooHeavy,
    "call reverting": Reverted,
    "call unknown selector": Reverted,
    "call out of gas": Reverted,
    "batch of 1001": BatchRefused,
    "invalid params: missing": RpcRefusal,
    "invalid params: bad hex": RpcRefusal,
    "parse error": RpcRefusal,
}


@pytest.mark.parametrize("chain", CHAINS)
def test_recorded_errors(chain: str) -> None:
    seen = set()
    for line in lines(chain, "rpc_edge"):
        row = json.loads(line)
        if row["note"] not in RECORDED or '"error":{"code"' not in row["response"]:
            continue
        said = json.loads(row["response"])
        asked = re.search(r'"method":"(\w+)"', row["request"])  # long requests were cut when recorded
        error = (said[0] if isinstance(said, list) else said)["error"]
        assert classify(asked[1] if asked else "", error["code"], error["message"]) is RECORDED[row["note"]], row[
            "note"
        ]
        seen.add(row["note"])
    assert len(seen) >= 11


OTHERS: tuple[tuple[str, int, str, FailureType], ...] = (
    ("eth_getBalance", -32000, "missing trie node 56e8 (path ) state 0x56e8 is not available", NoState),
    ("debug_traceBlockByNumber", -32000, "required historical state unavailable (reexec=128)", NoState),
    ("eth_call", -32000, "execution aborted (timeout = 5s)", Aborted),
    ("eth_call", -32000, "historical state 0x12 is not available", NoState),
    ("eth_call", -32000, "not supported", NoState),  # geth --state.scheme=hash
    ("eth_getBalance", -32000, "not supported", NoState),
    ("eth_getCode", -32000, "not supported", NoState),
    ("debug_traceBlockByNumber", -32000, "not supported", Unsupported),
    ("eth_getBlockByNumber", 4444, "pruned history unavailable", NoState),
    ("eth_getBalance", -32000, "distance to target block exceeds maximum proof window", NoState),
    ("eth_call", -32801, "no state available for block 0x1", NoState),
    ("eth_getBlockReceipts", -32000, "unknown block", NotThere),
    ("trace_block", -32000, "block 0x1f not found", NotThere),
    (
        "debug_traceBlockByNumber",
        -32601,
        "the method debug_traceBlockByNumber does not exist/is not available",
        Unsupported,
    ),
    (
        "debug_traceBlockByNumber",
        -32000,
        "the method debug_traceBlockByNumber does not exist/is not available",
        Unsupported,
    ),
    ("debug_traceBlockByNumber", -32604, "this method is not allowed on your plan", Unsupported),
    ("debug_traceBlockByNumber", -32000, "tracer not found", Unsupported),
    ("eth_getBlockReceipts", -32004, "unsupported", Unsupported),
    ("eth_chainId", 429, "Your app has exceeded its compute units per second capacity", UpstreamBusy),
    ("eth_chainId", -32005, "daily request count exceeded, request rate limited", UpstreamBusy),
    ("eth_chainId", -32007, "50/second request limit reached - reduce calls per second", UpstreamBusy),
    ("eth_chainId", -32029, "Too Many Requests", UpstreamBusy),
    ("eth_chainId", -32005, "limit exceeded", UpstreamBusy),
    ("eth_getBalance", -32005, "Number of requests exceeds max batch size", BatchRefused),
    ("eth_getBalance", -32600, "batch limit 100 exceeded (can increase by --rpc.batch.limit)", BatchRefused),
    ("eth_getBalance", 31, "Batch of more than 3 requests are not allowed on free tier", BatchRefused),
    ("eth_getBalance", -32000, "Batch requests are not supported", BatchRefused),
    ("eth_getBlockByNumber", -32003, "response too large", TooHeavy),
    ("eth_getBlockByNumber", -32002, "request timed out", TooHeavy),
    ("debug_traceBlockByNumber", -32000, "context deadline exceeded", TooHeavy),
    ("eth_blockNumber", -32603, "Internal error", UpstreamDown),
    ("eth_blockNumber", -32000, "service unavailable", UpstreamDown),
    ("eth_call", 3, "execution reverted: rate limit exceeded, try again later", Reverted),
    ("eth_call", 3, "execution reverted: missing trie node", Reverted),
    ("eth_call", -32015, "VM execution error.", Reverted),
    ("eth_getBalance", -32602, "invalid argument 0: hex string has length 4, want 40 for common.Address", RpcRefusal),
)


@pytest.mark.parametrize(("method", "code", "text", "expected"), OTHERS)
def test_errors_of_other_clients(method: str, code: int, text: str, expected: FailureType) -> None:
    assert classify(method, code, text) is expected
