"""Method names by selector: the bundled table, and files that extend it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefall.errors import StartRefused
from icefall.evm.enriching.selectors import is_signature, method_names

# Selectors as explorers show them.
KNOWN = {
    "a9059cbb": "transfer(address,uint256)",
    "23b872dd": "transferFrom(address,address,uint256)",
    "095ea7b3": "approve(address,uint256)",
    "d505accf": "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
    "d0e30db0": "deposit()",
    "2e1a7d4d": "withdraw(uint256)",
    "42842e0e": "safeTransferFrom(address,address,uint256)",
    "b88d4fde": "safeTransferFrom(address,address,uint256,bytes)",
    "f242432a": "safeTransferFrom(address,address,uint256,uint256,bytes)",
    "2eb2c2d6": "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)",
    "a22cb465": "setApprovalForAll(address,bool)",
    "6e553f65": "deposit(uint256,address)",
    "82ad56cb": "aggregate3((address,bool,bytes)[])",
    "ac9650d8": "multicall(bytes[])",
    "38ed1739": "swapExactTokensForTokens(uint256,uint256,address[],address,uint256)",
    "7ff36ab5": "swapExactETHForTokens(uint256,address[],address,uint256)",
    "414bf389": "exactInputSingle((address,address,uint24,address,uint256,uint256,uint256,uint160))",
    "3593564c": "execute(bytes,bytes[],uint256)",
    "6a761202": "execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)",
    "f2fde38b": "transferOwnership(address)",
    "2f2ff15d": "grantRole(bytes32,address)",
    "3659cfe6": "upgradeTo(address)",
    "4f1ef286": "upgradeToAndCall(address,bytes)",
    "8a54c52f": "createAccount(address,bytes32,uint256,address,uint256)",
    "62448850": "sendCrossChainMessage((bytes32,address,(address,uint256),uint256,address[],bytes))",
    "ccb5f809": "receiveCrossChainMessage(uint32,address)",
}


def test_the_bundled_table() -> None:
    names = method_names()
    assert len(names) >= 150
    assert {selector: names[bytes.fromhex(selector)] for selector in KNOWN} == KNOWN
    assert all(is_signature(name) for name in names.values())


def test_a_file_extends_it(tmp_path: Path) -> None:
    path = tmp_path / "more.txt"
    path.write_text("# mine\n\n  doIt((uint8,(bytes4)[2])[],function)  # twice a day\ntransfer(address,uint256)\n")
    names = method_names(str(path))
    assert "doIt((uint8,(bytes4)[2])[],function)" in names.values()
    assert names[bytes.fromhex("a9059cbb")] == "transfer(address,uint256)"
    assert len(names) == len(method_names()) + 1


def test_a_selector_with_two_signatures_has_no_name(tmp_path: Path) -> None:
    path = tmp_path / "more.txt"
    path.write_text("many_msg_babbage(bytes1)\n")  # the well-known collision with transfer(address,uint256)
    names = method_names(str(path))
    assert bytes.fromhex("a9059cbb") not in names
    assert len(names) == len(method_names()) - 1


@pytest.mark.parametrize(
    ("text", "message"),
    [("ok()\ntransfer(address to)\n", "more.txt: line 2: 'transfer(address to)' is not a signature"), ("x", "line 1")],
)
def test_an_invalid_line_is_reported(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "more.txt").write_text(text)
    with pytest.raises(StartRefused) as caught:
        method_names(str(tmp_path / "more.txt"))
    assert message in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9()")
    for name in ("none", "latin"):
        with pytest.raises(StartRefused):
            method_names(str(tmp_path / name))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a(",
        "a)",
        "()",
        "1a()",
        "a()b",
        "a(uint)",
        "a(int)",
        "a(uint7)",
        "a(uint264)",
        "a(uint08)",
        "a(bytes33)",
        "a(bytes0)",
        "a(,)",
        "a(bool,)",
        "a((bool)",
        "a(bool))",
        "a(bool )",
        "a(Bool)",
        "a(bool[)",
        "a(bool[-1])",
        "a(byte)",
        "a" + "(" * 40 + ")" * 40,
    ],
)
def test_invalid_signatures(text: str) -> None:
    assert not is_signature(text)


TYPES = st.recursive(
    st.sampled_from(["address", "bool", "string", "bytes", "bytes1", "bytes32", "uint8", "int256", "fixed128x18"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda types: f"({','.join(types)})")
        | st.tuples(inner, st.sampled_from(["[]", "[2]", "[][3]"])).map("".join)
    ),
    max_leaves=6,
)


@given(st.lists(TYPES, max_size=4))
def test_every_canonical_signature(types: list[str]) -> None:
    assert is_signature(f"name({','.join(types)})")


@given(st.text("a(),[]bool1uint8 ", max_size=30))
def test_any_text(text: str) -> None:
    assert is_signature(text) in (True, False)
