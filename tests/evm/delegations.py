"""Delegations (EIP-7702) that are set, cleared and refused, as a real client executes them block by block.

tests/vectors/evm-delegations/anvil.jsonl.xz holds what anvil 1.7.1 (`--hardfork prague`) answered for these blocks;
`python -m tests.evm.delegations` records it.
"""

import hashlib
import lzma
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from coincurve import PrivateKey
from tests.evm.live_client import Anvil, anvil

from icefall.evm.model import CallType
from icefall.wire.evm.rlp import encode, keccak256, number
from icefall.wire.keys import CURVE_ORDER

PATH = Path(__file__).parent.parent / "vectors" / "evm-delegations" / "anvil.jsonl.xz"
CHAIN = "geth-1"  # whose ID and first block the client gets
CHAIN_ID = 1337
CALL, TRANSFER = CallType.CONTRACT_CALL, CallType.NATIVE_TRANSFER
CODED = bytes.fromhex("00" * 19 + "99")  # stores a number when it is called
ETHER = 10**18

KEYS = [PrivateKey(hashlib.sha256(f"icefall delegation {place}".encode()).digest()) for place in range(4)]
ADDRESSES = [keccak256(key.public_key.format(compressed=False)[1:])[12:] for key in KEYS]
SENDER, AUTHORITY, CALLER, ITSELF = range(4)


class Auth(NamedTuple):
    """`fault`: why it does not apply: its nonce, its chain or its signature. `chain` 0: for any."""

    account: int
    sets: bool
    fault: str = ""
    chain: int = CHAIN_ID


class Sent(NamedTuple):
    sender: int
    to: int
    call_type: CallType  # true
    auths: tuple[Auth, ...] = ()
    value: int = 1
    needs_diffs: bool = False  # else it cannot be known


SET, CLEAR = Auth(AUTHORITY, True), Auth(AUTHORITY, False)
LOOK = Sent(CALLER, AUTHORITY, CALL, value=0)  # changes nothing of the account it calls: no diff has it


def plain(sent: Sent) -> Sent:
    return sent._replace(call_type=TRANSFER)


BLOCKS: tuple[tuple[Sent, ...], ...] = (
    (Sent(SENDER, AUTHORITY, CALL, (SET,)),),
    (LOOK, LOOK._replace(value=1)),
    (Sent(SENDER, AUTHORITY, TRANSFER, (CLEAR,)),),
    (plain(LOOK), plain(LOOK._replace(value=1))),
    (Sent(ITSELF, ITSELF, CALL, (Auth(ITSELF, True),)),),
    (LOOK._replace(to=ITSELF),),
    (Sent(ITSELF, ITSELF, TRANSFER, (Auth(ITSELF, False),)), plain(LOOK._replace(to=ITSELF))),
    (Sent(SENDER, CALLER, TRANSFER, (SET,)), LOOK),
    (Sent(SENDER, CALLER, TRANSFER, (CLEAR._replace(fault="nonce"),)),),
    (LOOK, Sent(SENDER, AUTHORITY, CALL, (CLEAR._replace(fault="nonce"),), needs_diffs=True)),
    (Sent(SENDER, AUTHORITY, CALL, (CLEAR._replace(fault="chain"),)), LOOK),
    (Sent(SENDER, AUTHORITY, CALL, (CLEAR._replace(fault="signature"),)), LOOK),
    (LOOK,),
    (Sent(SENDER, CALLER, TRANSFER, (CLEAR._replace(chain=0),)), plain(LOOK), plain(LOOK._replace(value=1))),
    (Sent(SENDER, CALLER, TRANSFER, (SET, CLEAR)), plain(LOOK)),
    (plain(LOOK), Sent(SENDER, CALLER, TRANSFER, (SET, CLEAR, SET)), LOOK),
    (LOOK, Sent(SENDER, CALLER, TRANSFER, (CLEAR, SET)), LOOK),
    (
        Sent(SENDER, CALLER, TRANSFER, (CLEAR,)),
        plain(LOOK),
        Sent(SENDER, AUTHORITY, CALL, (SET,)),
        LOOK,
        Sent(SENDER, AUTHORITY, TRANSFER, (CLEAR,)),
    ),
    (plain(LOOK),),
    (Sent(SENDER, CALLER, TRANSFER, (SET._replace(fault="nonce"),)), plain(LOOK)._replace(needs_diffs=True)),
    (plain(LOOK), Sent(SENDER, CALLER, TRANSFER, (SET, Auth(ITSELF, True))), LOOK, LOOK._replace(to=ITSELF)),
    (LOOK, LOOK._replace(to=ITSELF)),
)


class Driver:
    """Signs the transactions and has them mined."""

    def __init__(self, client: Anvil) -> None:
        self.client = client
        self._nonces = [0] * len(KEYS)

    def start(self) -> None:
        """So that all that follows is in blocks from 1 on."""
        for address in ADDRESSES:
            self.client.ask("anvil_setBalance", hexed(address), hex(1_000 * ETHER))
        self.client.ask("anvil_setCode", hexed(CODED), "0x600160005500")

    def mine(self, block: Sequence[Sent]) -> None:
        for sent in block:
            self.client.ask("eth_sendRawTransaction", hexed(self._signed(sent)))
        self.client.ask("evm_mine")

    def _signed(self, sent: Sent) -> bytes:
        nonce = self._nonces[sent.sender]
        self._nonces[sent.sender] += 1
        head = [number(CHAIN_ID), number(nonce), number(10**9), number(10**12), number(400_000)]
        fields: list[Any] = [*head, ADDRESSES[sent.to], number(sent.value), b"", []]
        kind = b"\x02"
        if sent.auths:
            kind = b"\x04"
            fields.append([self._authorization(auth) for auth in sent.auths])
        return kind + encode([*fields, *_signature(sent.sender, kind + encode(fields))])

    def _authorization(self, auth: Auth) -> list[bytes]:
        nonce = self._nonces[auth.account] + (7 if auth.fault == "nonce" else 0)
        chain = auth.chain + 1 if auth.fault == "chain" else auth.chain
        fields = [number(chain), CODED if auth.sets else bytes(20), number(nonce)]
        parity, r, s = _signature(auth.account, b"\x05" + encode(fields))
        if auth.fault == "signature":  # the same point with the other sign, which EIP-2 refuses
            parity, s = number(1 - int.from_bytes(parity, "big")), number(CURVE_ORDER - int.from_bytes(s, "big"))
        self._nonces[auth.account] += not auth.fault
        return [*fields, parity, r, s]


def _signature(account: int, message: bytes) -> list[bytes]:
    raw = KEYS[account].sign_recoverable(keccak256(message), hasher=None)
    return [number(raw[64]), number(int.from_bytes(raw[:32], "big")), number(int.from_bytes(raw[32:64], "big"))]


def hexed(raw: bytes) -> str:
    return "0x" + raw.hex()


class Row(msgspec.Struct):
    """A block as the client sent it, by both kinds of tracers; whether each of ADDRESSES had code after it."""

    number: int
    block: msgspec.Raw
    receipts: msgspec.Raw
    calls: msgspec.Raw
    diffs: msgspec.Raw
    trace_block: msgspec.Raw
    trace_replay: msgspec.Raw
    has_code: list[bool]


@cache
def recorded() -> list[Row]:
    return [msgspec.json.decode(line, type=Row) for line in lzma.decompress(PATH.read_bytes()).splitlines()]


def has_code(client: Anvil, block: int) -> list[bool]:
    return [client.ask("eth_getCode", hexed(address), hex(block)) != "0x" for address in ADDRESSES]


def _row(client: Anvil, block: int) -> dict[str, Any]:
    at = hex(block)
    return {
        "number": block,
        "block": client.ask("eth_getBlockByNumber", at, True),
        "receipts": client.ask("eth_getBlockReceipts", at),
        "calls": client.ask("debug_traceBlockByNumber", at, {"tracer": "callTracer", "tracerConfig": {}}),
        "diffs": client.ask(
            "debug_traceBlockByNumber", at, {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}
        ),
        "trace_block": client.ask("trace_block", at),
        "trace_replay": client.ask("trace_replayBlockTransactions", at, ["stateDiff"]),
        "has_code": has_code(client, block),
    }


def record() -> None:
    with anvil(CHAIN, "prague") as client:
        driver = Driver(client)
        driver.start()
        for block in BLOCKS:
            driver.mine(block)
        rows = [msgspec.json.encode(_row(client, place)) for place in range(1, len(BLOCKS) + 1)]
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_bytes(lzma.compress(b"\n".join(rows), preset=9))


if __name__ == "__main__":
    record()
