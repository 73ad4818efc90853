"""Internal transactions and deployments, computed again from the recorded frames in the plainest way."""

from typing import Any

import msgspec
import pytest
from tests.evm.recordings import CHAINS, Code, contract_info_for, derived, meta, unhex

from icefall.evm.deriving.derive import derive
from icefall.wire.evm.rlp import keccak256

PROXY_HASH = "21c35dbe1b344a2488cf3321d6ce542f8e9f305544ff09e4993a62319a497c1f"


def walk(frame: Any, is_reverted: bool, found: list[tuple[Any, bool]]) -> None:
    is_reverted = is_reverted or "error" in frame
    found.append((frame, is_reverted))
    for child in frame.get("calls", []):
        walk(child, is_reverted, found)


def frames(line: Any) -> list[list[tuple[Any, bool]]]:
    """For each transaction its frames in pre-order, with whether they count."""
    every = []
    for call in line["calls"] or []:
        found: list[tuple[Any, bool]] = []
        walk(call["result"], False, found)
        every.append(found)
    return every


def naive_internals(line: Any) -> list[tuple[Any, ...]]:
    rows = []
    for tx_index, found in enumerate(frames(line)):
        proxies = {
            frame.get("to")
            for frame, _ in found
            if frame["type"] == "CREATE2" and keccak256(unhex(frame["input"])).hex() == PROXY_HASH
        }
        for number, (frame, is_reverted) in enumerate(found):
            kind = frame["type"]
            value = int(frame.get("value", "0x0"), 16)
            is_creation = kind in ("CREATE", "CREATE2")
            if number == 0 or not (is_creation or (kind in ("CALL", "CALLCODE") and value)):
                continue
            if kind == "CREATE" and frame["from"] in proxies:
                kind = "CREATE3"
            to = unhex(frame["to"]) if "to" in frame else b""
            gas = int(frame["gas"], 16), int(frame["gasUsed"], 16)
            rows.append((tx_index, number, kind, unhex(frame["from"]), to, value, *gas, is_reverted))
    return rows


@pytest.mark.parametrize("chain", CHAINS)
def test_every_internal_transaction(chain: str) -> None:
    kinds: set[str] = set()
    reverted = 0
    for one in derived(chain):
        got = [tuple(getattr(row, name) for name in row.__struct_fields__) for row in one.rows.internals]
        assert got == naive_internals(one.line), one.rows.block.number
        kinds.update(row.kind for row in one.rows.internals)
        reverted += sum(row.is_reverted for row in one.rows.internals)
    assert {"CALL", "CREATE", "CREATE2"} <= kinds
    assert reverted > 0
    if not chain.startswith("berlin"):
        assert kinds == {"CALL", "CALLCODE", "CREATE", "CREATE2", "CREATE3"}


@pytest.mark.parametrize("chain", CHAINS)
def test_every_deployment(chain: str) -> None:
    made: set[bytes] = set()
    for one in derived(chain):
        expected = []
        for tx_index, found in enumerate(frames(one.line)):
            for number, (frame, is_reverted) in enumerate(found):
                if frame["type"] in ("CREATE", "CREATE2") and not is_reverted:
                    expected.append((unhex(frame["to"]), tx_index, number, unhex(frame["from"])))
        got = [(row.address, row.tx_index, row.frame, row.creator) for row in one.rows.deployments]
        assert got == expected
        made.update(row.address for row in one.rows.deployments)
        for tx_index, receipt in enumerate(one.line["receipts"]):
            if receipt["contractAddress"]:
                top = [row.address for row in one.rows.deployments if (row.tx_index, row.frame) == (tx_index, 0)]
                assert top == ([unhex(receipt["contractAddress"])] if receipt["status"] == "0x1" else [])
    assert not_deployed(chain, made) == set()


def not_deployed(chain: str, made: set[bytes]) -> set[str]:
    """Contracts the recorder knew of that no deployment explains."""
    labels = meta(chain)["labels"]
    contracts = {
        unhex(address)
        for address, label in labels.items()
        if not label["kind"].startswith(("eoa", "fresh", "precompile")) and "no-deployment" not in label["kind"]
    }
    contracts |= {unhex(address.lower()) for address in meta(chain)["contracts"].values()}
    without = {unhex(address) for address, label in labels.items() if "no-deployment" in label["kind"]}
    return {address.hex() for address in contracts - without - made}


@pytest.mark.parametrize("chain", CHAINS)
def test_without_traces(chain: str) -> None:
    """Internals are gone, deployments are those of transactions; nothing else about transactions changes."""
    code = Code(chain)
    for one in derived(chain):
        blind = msgspec.structs.replace(one.full, traces=None)
        rows = derive(blind, contract_info_for(chain, blind, code))
        code.take(one.rows)
        assert rows.internals == ()
        assert rows.deployments == tuple(row for row in one.rows.deployments if row.frame == 0)
        assert (rows.txs, rows.block) == (one.rows.txs, one.rows.block)
        assert rows.erc20_transfers == one.rows.erc20_transfers
