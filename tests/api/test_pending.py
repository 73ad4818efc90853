"""A transaction that is not indexed, as the upstream knows it: pending, in a block ahead of the index, or unknown."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.api.data_naive import address_text, naive
from tests.api.data_scene import NATIVE, Served, chain_id, data_server, put_chains
from tests.evm.recordings import derived, unhex
from tests.upstream.evm_replay import EvmFault

from icefall.api.data.handlers.pending import pending_transaction
from icefall.api.data.schema.transactions import TransactionParams
from icefall.compose.stores import Stores
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain

CHAIN, ELSEWHERE = "geth-1", "anvil-1"
ID = chain_id(CHAIN)
METHOD = "eth_getTransactionByHash"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with data_server(tmp_path_factory.mktemp("pending"), chains=(CHAIN,)) as made:
        yield made


@pytest.fixture
def served(program: Served) -> Iterator[Served]:
    yield program
    program.replays[CHAIN].evm_faults.clear()


def path(tx_hash: str) -> str:
    return f"/v1/chains/{ID}/transactions/{tx_hash}/pending"


def foreign(*, creates: bool = False, type_id: int = 2) -> dict[str, Any]:
    """A transaction of another chain, as it would be sent while no block holds it."""
    every = (tx for one in derived(ELSEWHERE) for tx in one.line["block"]["transactions"])
    found = next(tx for tx in every if (tx["to"] is None) == creates and int(tx["type"], 16) == type_id)
    unplaced: dict[str, Any] = found | {"blockHash": None, "blockNumber": None, "transactionIndex": None}
    return unplaced


def answers(served: Served, tx: Any, times: int = 1) -> None:
    served.replays[CHAIN].evm_faults.append(EvmFault(METHOD, times, result=msgspec.json.encode(tx)))


@pytest.mark.parametrize(("creates", "type_id"), [(False, 2), (True, 2), (False, 0)])
def test_a_pending_transaction(creates: bool, type_id: int, served: Served) -> None:
    tx = foreign(creates=creates, type_id=type_id)
    answers(served, tx)
    found = served.result(path(tx["hash"]))
    named = found.pop("methodName", None)
    expected = {
        "chainId": ID,
        "txHash": tx["hash"],
        "txState": "pending",
        "from": address_text(unhex(tx["from"])),
        "to": None if creates else address_text(unhex(tx["to"])),
        "value": str(int(tx["value"], 16)),
        "nonce": str(int(tx["nonce"], 16)),
        "txType": type_id,
        "gasLimit": str(int(tx["gas"], 16)),
    }
    names = ("maxFeePerGas", "maxPriorityFeePerGas") if type_id else ("gasPrice",)
    expected |= {name: str(int(tx[name], 16)) for name in names}
    assert found == {name: value for name, value in expected.items() if value is not None}
    assert named is None or not creates


def test_in_a_block_that_is_not_indexed_yet(served: Served) -> None:
    tx = foreign() | {"blockNumber": "0xffff", "blockHash": f"0x{1:064x}", "transactionIndex": "0x0"}
    answers(served, tx)
    found = served.result(path(tx["hash"]))
    assert (found["txState"], found["blockNumber"]) == ("included", "65535")


def test_what_is_indexed_is_not_asked_for(served: Served) -> None:
    tx_hash = naive(CHAIN).txs[0]["here"]["txHash"]
    replay = served.replays[CHAIN]
    before = len(replay.calls)
    assert served.result(path(tx_hash)) == {"chainId": ID, "txHash": tx_hash, "txState": "indexed"}
    assert [method for method, _ in replay.calls[before:] if method == METHOD] == []


def test_what_the_upstream_does_not_know(served: Served) -> None:
    unknown = f"0x{7:064x}"
    assert served.result(path(unknown)) == {"chainId": ID, "txHash": unknown, "txState": "unknown"}
    assert served.get(path("0x12")).status == 400


def test_without_an_upstream_nothing_is_pending(tmp_path: Path) -> None:
    put_chains(tmp_path, {CHAIN: "http://127.0.0.1:9"})
    chain = EvmChain(ChainInfo(ID, "", NATIVE), Stores(tmp_path / "data").chain_reader(ID))
    directory = ChainDirectory([chain])
    found = asyncio.run(pending_transaction(TransactionParams(chain_id=ID, tx_hash=bytes(32)), directory))
    assert found.tx_state == "unknown"


@pytest.mark.parametrize("damage", [{"value": "0x1234567"}, {"hash": f"0x{9:064x}", "nonce": "0xfffff"}, {"gas": None}])
def test_another_transaction_than_the_one_that_was_asked_for_is_refused(damage: Any, served: Served) -> None:
    tx = foreign()
    answers(served, tx | damage, times=4)
    reply = served.get(path(tx["hash"]))
    assert (reply.status, reply.json()["error"]) == (502, "Bad Gateway")


def test_an_upstream_that_fails_or_hangs_is_not_waited_for(served: Served) -> None:
    tx_hash = foreign()["hash"]
    for fault, status in (
        (EvmFault(METHOD, 4, error=(-32000, "secret of http://key@upstream")), (502, 503)),
        (EvmFault(METHOD, 4, hang=True), (503,)),
    ):
        served.replays[CHAIN].evm_faults[:] = [fault]
        reply = served.get(path(tx_hash))
        assert reply.status in status
        assert b"secret" not in reply.body
    served.replays[CHAIN].evm_faults.clear()
