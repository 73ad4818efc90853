"""A real geth with a contract and proxies of it, and the program that follows it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.api.data_naive import address_text
from tests.evm.adversarial.nodes import ADDRESSES, CHAIN_ID, Node, geth
from tests.evm.adversarial.scenario import Step, Tx
from tests.server import Server, serving
from tests.waiting import until

from icefall.wire.evm.hashes import created_address
from icefall.wire.evm.proxies import IMPLEMENTATION_SLOTS

SLOT = IMPLEMENTATION_SLOTS["EIP-1967"]
PROXIES = ("EIP-1967", "EIP-1167", "EIP-897")
# totalSupply() returns the number of the block, which shows at which one it is called, and everything else reverts.
TARGET_CODE = bytes.fromhex("5f3560e01c6318160ddd146011575f5ffd5b435f5260205ff3")
COPY_ARGUMENTS, AFTER_CALL = bytes.fromhex("365f5f375f5f365f"), bytes.fromhex("5af43d5f5f3e")


def installing(code: bytes, before: bytes = b"") -> bytes:
    """What a transaction sends to leave this code."""
    return (
        before + b"\x61" + len(code).to_bytes(2) + b"\x80\x60" + bytes([len(before) + 10]) + b"\x3d\x39\x3d\xf3" + code
    )


def delegating(pushes_target: bytes, at: int = 0) -> bytes:
    """Code that passes its call on. `at`: where it begins, because jumps are absolute."""
    head = COPY_ARGUMENTS + pushes_target + AFTER_CALL
    return head + b"\x60" + bytes([at + len(head) + 6]) + b"\x57\x3d\x5f\xfd\x5b\x3d\x5f\xf3"


def naming(target: bytes) -> bytes:
    """EIP-897: implementation() returns the target, and all other calls are passed on to it."""
    head = bytes.fromhex("5f3560e01c635c60da1b1460") + b"\0" + b"\x57"
    rest = delegating(b"\x73" + target, len(head))
    answer = b"\x5b\x73" + target + bytes.fromhex("5f5260205ff3")
    return head.replace(b"\x60\0\x57", b"\x60" + bytes([len(head) + len(rest)]) + b"\x57") + rest + answer


class Live(NamedTuple):
    node: Node
    server: Server
    contracts: dict[str, bytes]

    def get(self, path: str) -> Any:
        reply = self.server.ask("GET", f"/v1/chains/{CHAIN_ID}{path}", listener="data")
        return reply.json() if reply.status == 200 else {"status": reply.status}

    def await_block(self, number: int) -> None:
        until(lambda: self.get(f"/blocks/{number}").get("blockNumber") == str(number), f"block {number}")

    def read(self, name: str, function: str, query: str = "") -> Any:
        body = json.dumps({"function": function, "arguments": []}).encode()
        path = f"/v1/chains/{CHAIN_ID}/contracts/{address_text(self.contracts[name])}/functions:read{query}"
        return self.server.ask("POST", path, body, listener="data").json()


def deployed(node: Node) -> dict[str, bytes]:
    target = created_address(ADDRESSES[0], 0)
    stored = b"\x73" + target + b"\x7f" + SLOT + b"\x55"
    clone = bytes.fromhex("363d3d373d3d3d363d73") + target + bytes.fromhex("5af43d82803e903d91602b57fd5bf3")
    codes = {
        "plain": installing(TARGET_CODE),
        "EIP-1967": installing(delegating(b"\x7f" + SLOT + b"\x54"), stored),
        "EIP-1167": installing(clone),
        "EIP-897": installing(naming(target)),
    }
    for code in codes.values():
        node.run(Step(1, (Tx(0, None, code),), ""))
    node.run(Step(1, (Tx(0, ADDRESSES[2], b"", 5),), ""))  # so that all are there in the newest two blocks
    return {name: created_address(ADDRESSES[0], nonce) for nonce, name in enumerate(codes)}


@contextmanager
def live_chain(folder: Path) -> Iterator[Live]:
    with geth(folder) as node:
        node.fund()
        contracts = deployed(node)
        config = folder / "icefall.toml"
        config.write_text(f'[[chain]]\nid = "{CHAIN_ID}"\nrpc = "{node.url}"\n')
        with serving(
            "up", folder / "program", f"--config-file={config}", "--demo=false", "--poll-interval=100ms"
        ) as up:
            made = Live(node, up, contracts)
            made.await_block(node.newest())
            yield made
