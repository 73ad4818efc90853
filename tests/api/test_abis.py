"""ABIs of contracts in the real program: added by command, over HTTP and from a folder, used by every worker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.data_naive import address_text, naive
from tests.api.data_scene import Served, chain_id, data_server, erc20_tokens
from tests.forked import run_program
from tests.server import Reply, store_settings
from tests.waiting import until

CHAIN = "geth-1"
ID = chain_id(CHAIN)
TOKEN, OTHER = (address_text(token) for token in erc20_tokens(CHAIN)[:2])
ABI = f"/v1/chains/{ID}/contracts/{TOKEN}/abi"


def named(*names: str) -> list[dict[str, Any]]:
    """The ABI of a token whose parameters have these names."""
    kinds = [("address", True), ("address", True), ("uint256", False)]
    inputs = [{"name": name, "type": kind, "indexed": at} for name, (kind, at) in zip(names, kinds, strict=True)]
    return [{"type": "event", "name": "Transfer", "inputs": inputs}]


@pytest.fixture(scope="module", params=["", "postgres"], ids=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, store: str) -> Path:
    return tmp_path_factory.mktemp("abis")


@pytest.fixture(scope="module")
def served(folder: Path, store: str) -> Iterator[Served]:
    files = folder / "abis"
    (files / ID).mkdir(parents=True)
    (files / ID / f"{OTHER.lower()}.json").write_text(json.dumps({"abi": named("giver", "taker", "sum")}))
    (files / ID / "README").write_text("not an ABI")
    with data_server(folder, f"--abi-dir={files}", "--http-workers=2", chains=(CHAIN,), store=store) as program:
        yield program


def command(folder: Path, store: str, *words: str) -> tuple[int, str]:
    place = store_settings(folder / "data") if store else (f"--data-dir={folder / 'data'}",)
    done = run_program(*words, *place)
    return done.returncode, done.stdout + done.stderr


def names_of(served: Served, token: str) -> list[str]:
    """The names that the newest transfer of a token is decoded with."""
    path = f"/v1/chains/{ID}/addresses/{token}/logs?topic0=0x{TRANSFER}&pageSize=1"
    (log,) = served.result(path)["logs"]
    return [one["name"] for one in log["decodedLog"]["parameters"]]


TRANSFER = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"


def everywhere(served: Served, token: str, names: list[str]) -> None:
    """Each of the workers sees it: a connection of its own may go to another one."""
    until(lambda: all(names_of(served, token) == names for _ in range(12)), f"{names} in every worker")


def send(served: Served, verb: str, key: str = "", body: object = None, path: str = ABI) -> Reply:
    headers = {"x-service-api-key": key} if key else None
    sent = b"" if body is None else json.dumps(body).encode()
    return served.server.ask(verb, path, sent, headers=headers, listener="data")


def test_of_a_folder(served: Served) -> None:
    assert names_of(served, OTHER) == ["giver", "taker", "sum"]
    assert served.result(ABI.replace(TOKEN, OTHER))["abi"][0]["name"] == "Transfer"


def test_by_command(served: Served, folder: Path, store: str) -> None:
    file = folder / "token.json"
    file.write_text(json.dumps(named("a", "b", "c")))
    assert command(folder, store, "abi", "list") == (0, "There are no ABIs.\n")
    assert command(folder, store, "abi", "remove", ID, TOKEN)[0] == 1
    code, output = command(folder, store, "abi", "add", ID, TOKEN, str(file))
    assert (code, output) == (0, f"The ABI of {TOKEN} on chain {ID} is stored, with 1 declarations.\n")
    everywhere(served, TOKEN, ["a", "b", "c"])
    assert TOKEN in command(folder, store, "abi", "list")[1]
    assert command(folder, store, "abi", "remove", ID, TOKEN)[0] == 0
    everywhere(served, TOKEN, ["from", "to", "value"])
    assert served.result(ABI) == {"address": TOKEN, "abi": []}


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("add", "nowhere", TOKEN, "FILE"), "name it by its EVM chain ID"),
        (("add", ID, "0x12", "FILE"), "is not an address"),
        (("add", ID, TOKEN, "missing.json"), "cannot read missing.json"),
        (("add", ID, TOKEN, "FILE"), "an ABI declares at least one"),
        (("add", ID), "use icefall abi add"),
        (("sub",), "use icefall abi add"),
    ],
)
def test_bad_commands_are_refused(words: tuple[str, ...], wrong: str, tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("[]")
    given = [str(tmp_path / "empty.json") if word == "FILE" else word for word in words]
    code, output = command(tmp_path, "", "abi", *given)
    assert code == 1
    assert wrong in output


def test_over_http_with_a_key_of_an_administrator(served: Served, folder: Path, store: str) -> None:
    plain = command(folder, store, "keys", "add", "--name=plain")[1].split()[0]
    boss = command(folder, store, "keys", "add", "--name=boss", "--admin")[1].split()[0]
    assert "free, admin" in command(folder, store, "keys", "list")[1]
    body = {"abi": named("x", "y", "z")}
    assert (send(served, "POST", "", body).status, send(served, "POST", plain, body).status) == (403, 403)
    assert send(served, "POST", "ice_unknown", body).status == 401
    stored = send(served, "POST", boss, body)
    assert (stored.status, stored.json()["abi"]) == (200, body["abi"])
    everywhere(served, TOKEN, ["x", "y", "z"])
    assert "boss" in command(folder, store, "abi", "list")[1]
    refused: list[Any] = [[], [{"type": "event", "name": "<script>"}], [1], "x", [{}] * 1001]
    for wrong in refused:
        assert send(served, "POST", boss, {"abi": wrong}).status == 400
    assert send(served, "DELETE", plain).status == 403
    assert send(served, "DELETE", boss).json() == {"address": TOKEN, "abi": []}
    assert send(served, "DELETE", boss).status == 404
    everywhere(served, TOKEN, ["from", "to", "value"])


def test_calls_are_named_by_the_contract_that_was_called(served: Served, folder: Path, store: str) -> None:
    inputs = [{"name": "recipient", "type": "address"}, {"name": "amount", "type": "uint256"}]
    file = folder / "calls.json"
    file.write_text(json.dumps([{"type": "function", "name": "transfer", "inputs": inputs}]))
    sent = next(
        tx["here"]["txHash"]
        for tx in naive(CHAIN).txs
        if tx["native"]["to"]["address"] == TOKEN and tx["native"]["method"]["methodHash"] == "0xa9059cbb"
    )
    path = f"/v1/chains/{ID}/transactions/{sent}/input"
    before = [one["name"] for one in served.result(path)["decodedInput"]["parameters"]]
    assert before == ["0", "1"]
    assert command(folder, store, "abi", "add", ID, TOKEN, str(file))[0] == 0
    until(lambda: served.result(path)["decodedInput"]["parameters"][0]["name"] == "recipient", "the name of the ABI")


def test_an_abi_does_not_name_methods_of_other_contracts(served: Served, folder: Path, store: str) -> None:
    """Several contracts were called with one selector, of which no common signature is known. One gets the ABI."""
    sent = {tx["native"]["to"]["address"]: tx["here"]["txHash"] for tx in naive(CHAIN).txs if _selects_boom(tx)}
    (named_one, hers), (_, other), *_ = sent.items()
    file = folder / "boom.json"
    file.write_text(json.dumps([{"type": "function", "name": "boom", "inputs": [{"name": "", "type": "address"}]}]))
    assert command(folder, store, "abi", "add", ID, named_one, str(file))[0] == 0

    def method(txid: str) -> dict[str, str]:
        found: dict[str, str] = served.result(f"/v1/chains/{ID}/transactions/{txid}")["nativeTransaction"]["method"]
        return found

    until(lambda: method(hers).get("methodName") == "boom(address)", "the name of the ABI")
    assert "methodName" not in method(other)
    path = f"/v1/chains/{ID}/addresses/{named_one}/transactions:listNative?pageSize=100"

    def named_txs() -> list[str]:
        listed = served.result(path)["transactions"]
        return [tx["txHash"] for tx in listed if tx["method"].get("methodName") == "boom(address)"]

    until(lambda: hers in named_txs(), "the name in lists of the other worker too")
    assert "methodName" not in served.result(f"/v1/chains/{ID}/transactions/{other}/input")


def _selects_boom(tx: dict[str, Any]) -> bool:
    return bool(tx["native"]["method"]["methodHash"] == "0x668a2f67")
