"""Code, proxies and functions that read, over HTTP: read from the upstream at the shown block, by the ABI of the
contract or of its implementation, bounded, and never a write."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.api.data_naive import address_text, naive
from tests.api.data_scene import Served, chain_id, data_server, erc20_tokens
from tests.server import Reply
from tests.upstream.evm_replay import EvmFault

from icefall.evm.reading.contract_state import ANSWER_MAX, GAS_MAX
from icefall.wire.evm.abi_shipped import READS, READS_BY_SELECTOR
from icefall.wire.evm.rlp import keccak256

CHAIN = "geth-1"
MANY = 10_000
ID = chain_id(CHAIN)
TOKEN = address_text(erc20_tokens(CHAIN)[0])
CLONE, TARGET = "0x3beD249eaC0f075d70B013119AD7fA1365bE66C4", "0x8757D8fE53300f96454e6486bD8274AC3a9147CB"
CODE = f"0x363d3d373d3d3d363d73{TARGET[2:].lower()}5af43d82803e903d91602b57fd5bf3"


def function(name: str, inputs: list[str], outputs: list[str], *, is_view: bool = True) -> dict[str, Any]:
    def named(kinds: list[str]) -> list[dict[str, str]]:
        return [{"name": f"p{at}", "type": kind} for at, kind in enumerate(kinds)]

    mutability = "view" if is_view else "nonpayable"
    return {
        "type": "function", "name": name, "inputs": named(inputs), "outputs": named(outputs),
        "stateMutability": mutability,
    }  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("contract-state")
    files = folder / "abis" / ID
    files.mkdir(parents=True)
    functions = [
        function("boom", ["address"], [], is_view=False),
        function("balanceOf", ["address"], ["uint256"]),
        function("symbol", [], ["uint256[]"]),
        function("lend", ["uint8[]"], ["bytes"]),
    ]
    for contract in (TARGET, TOKEN):
        (files / f"{contract.lower()}.json").write_text(json.dumps(functions))
    with data_server(folder, f"--abi-dir={folder / 'abis'}", chains=(CHAIN,)) as program:
        yield program


def read(served: Served, contract: str, signature: str, *arguments: object, query: str = "") -> Reply:
    body = json.dumps({"function": signature, "arguments": arguments}).encode()
    return served.server.ask("POST", f"{base(contract)}/functions:read{query}", body, listener="data")


def base(contract: str) -> str:
    return f"/v1/chains/{ID}/contracts/{contract}"


@contextmanager
def failing(served: Served, *faults: EvmFault) -> Iterator[None]:
    replay = served.replays[CHAIN]
    replay.evm_faults.extend(faults)
    try:
        yield
    finally:
        replay.evm_faults.clear()


def test_code_at_a_block(served: Served) -> None:
    found = served.result(f"{base(TOKEN)}/code")
    code = bytes.fromhex(found["code"][2:])
    assert (found["size"], found["address"]) == (len(code), TOKEN)
    assert found["blockNumber"] == str(served.replays[CHAIN].head)
    assert found["codeHash"] == f"0x{keccak256(code).hex()}"
    names = {one["name"] for one in found["readFunctions"]}
    assert {"name", "symbol", "decimals", "totalSupply", "balanceOf"} <= names
    assert "getReserves" not in names
    early = served.get(f"{base(TOKEN)}/code?blockNumber=1")
    assert (early.status, "has no code at block 1" in str(early.json())) == (404, True)
    assert served.get(f"{base(TOKEN)}/code?blockNumber=999999").status == 400
    assert served.get(f"{base('0x12')}/code").status == 400


def test_a_clone_names_its_implementation(served: Served) -> None:
    found = served.result(f"{base(CLONE)}/proxy")
    assert (found["isProxy"], found["proxyKind"], found["implementation"]) == (True, "EIP-1167", TARGET)
    assert "beacon" not in found
    plain = served.result(f"{base(TOKEN)}/proxy")
    assert not plain["isProxy"]
    assert not {"implementation", "proxyKind"} & set(plain)


def test_the_abi_of_the_implementation_names_and_decodes_calls_of_the_proxy(served: Served) -> None:
    """While the upstream says that all contracts are clones of one, its ABI is theirs: but not in the list of ABIs."""
    sent = next(tx for tx in naive(CHAIN).txs if tx["native"]["method"]["methodHash"] == "0x668a2f67")
    contract, txid = sent["native"]["to"]["address"], sent["here"]["txHash"]
    path = f"/v1/chains/{ID}/transactions/{txid}"
    with failing(served, EvmFault("eth_getCode", MANY, result=f'"{CODE}"'.encode())):
        assert served.result(path)["nativeTransaction"]["method"]["methodName"] == "boom(address)"
        decoded = served.result(f"{path}/input")["decodedInput"]
        assert [one["name"] for one in decoded["parameters"]] == ["p0"]
        assert served.result(f"{path}/calls")["calls"][0]["methodName"] == "boom(address)"
    assert served.result(f"{base(contract)}/abi")["abi"] == []


def test_functions_that_read(served: Served) -> None:
    holder, amount = next(
        (holder, held) for (token, holder), held in balances_of(served).items() if token == TOKEN.lower() and held
    )
    found = read(served, TOKEN, "balanceOf(address)", holder).json()
    assert (found["function"], found["isReverted"]) == ("balanceOf(address)", False)
    assert found["outputs"] == [{"name": "p0", "type": "uint256", "value": str(amount)}]
    assert int(found["output"], 16) == amount
    past = read(served, TOKEN, "balanceOf(address)", holder, query="?blockNumber=1")
    assert (past.status, "no code at block 1" in str(past.json())) == (404, True)
    common = read(served, CLONE, "name()")
    assert common.status in (200, 404), "of many contracts: no ABI is needed"
    odd = read(served, TOKEN, "symbol()").json()
    assert "outputs" not in odd, "the ABI says something else than the contract"
    assert odd["output"].startswith("0x")


@pytest.mark.parametrize(
    ("signature", "arguments", "wrong"),
    [
        ("boom(address)", ["0x" + "11" * 20], "changes state"),
        ("mint(uint256)", ["1"], "no ABI of this contract has mint(uint256)"),
        ("balanceOf(address)", [], "takes 1 values, and there are 0"),
        ("balanceOf(address)", ["0x12"], "has 20 bytes, not 1"),
        ("lend(uint8[])", [[1, 300]], "is uint8, which goes from 0 to 255"),
        ("balanceOf", [], "is not a signature"),
        ("<script>()", [], "function"),
        ("f(" + "(" * 40 + ")" * 41, [], "function"),
    ],
)
def test_what_cannot_be_called_is_refused(served: Served, signature: str, arguments: list[Any], wrong: str) -> None:
    reply = read(served, TOKEN, signature, *arguments)
    assert reply.status == 400
    assert wrong in str(reply.json()["message"])


def test_calls_are_bounded_and_never_write(served: Served) -> None:
    replay = served.replays[CHAIN]
    replay.calls.clear()
    read(served, TOKEN, "balanceOf(address)", "0x" + "11" * 20)
    ((method, params),) = [one for one in replay.calls if one[0] != "eth_chainId"]
    assert (method, int(params[0]["gas"], 16), set(params[0])) == ("eth_call", GAS_MAX, {"to", "data", "gas"})
    large = b'"0x' + b"00" * (ANSWER_MAX + 1) + b'"'
    with failing(served, EvmFault("eth_call", MANY, result=large)):
        reply = read(served, TOKEN, "balanceOf(address)", "0x" + "11" * 20)
        assert (reply.status, "are shown" in str(reply.json())) == (400, True)
    with failing(served, EvmFault("eth_call", MANY, error=(3, "execution reverted"))):
        found = read(served, TOKEN, "balanceOf(address)", "0x" + "11" * 20).json()
        assert (found["isReverted"], found["output"]) == (True, "0x")
    with failing(served, EvmFault("eth_call", MANY, status=502)):
        assert read(served, TOKEN, "balanceOf(address)", "0x" + "11" * 20).status == 503
    with failing(served, EvmFault("eth_call", MANY, result=b'"nonsense"')):
        assert read(served, TOKEN, "balanceOf(address)", "0x" + "11" * 20).status == 502


def test_shipped_functions_are_declarations() -> None:
    assert len(READS_BY_SELECTOR) == len(READS)
    assert all(one.is_view and one.outputs for one in READS_BY_SELECTOR.values())


def balances_of(served: Served) -> dict[tuple[str, str], int]:
    """What the recording says of ERC-20 balances at the end."""
    replay = served.replays[CHAIN]
    return {
        (path[1], path[2]): int(history.at(replay.head) or 0)
        for path, history in replay.state.values.items()
        if path[0] == "erc20"
    }
