"""Parsers on damaged and random input: they may only refuse it with a WireError.

ICEFALL_FUZZ_CASES sets how many inputs are tried in all (a million takes half a minute), ICEFALL_FUZZ_SEED which ones.
"""

import os
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tests.wire.platform_vectors import p_blocks, p_txs
from tests.wire.wire_vectors import containers, inner_blocks

from icefall.wire.avm.codec import pack_tx, pack_utxo, unpack_block, unpack_genesis, unpack_tx, unpack_utxo
from icefall.wire.avm.json import ChainNaming, tx_json
from icefall.wire.avm.utxos import consumed, exported, imported, produced
from icefall.wire.container.coreth import unpack_atomic_moves, unpack_coreth_block
from icefall.wire.container.platform import unpack_platform_block
from icefall.wire.container.proposer import unpack_container
from icefall.wire.errors import WireError
from icefall.wire.evm import rlp
from icefall.wire.genesis.network import network_genesis, packaged_genesis
from icefall.wire.ids import id_from_text, network_id_from_text, node_id_from_text
from icefall.wire.keys import private_key_from_text, recover, sign
from icefall.wire.pvm import codec as pvm
from icefall.wire.pvm import warp
from icefall.wire.pvm.json import block_json
from icefall.wire.pvm.json import tx_json as tx_json_of_p
from icefall.wire.pvm.types import PlatformBaseTx, PlatformUtxo, RegisterL1ValidatorTx, SetL1ValidatorWeightTx
from icefall.wire.text import bech32, cb58, checksum_hex
from icefall.wire.text.bech32 import address_from_text
from icefall.wire.text.go_text import quote

CASES = int(os.environ.get("ICEFALL_FUZZ_CASES", "6000"))
SEED = int(os.environ.get("ICEFALL_FUZZ_SEED", "1"))


def transaction(raw: bytes) -> None:
    """What parses must also rebuild to the same bytes, number its UTXOs and render."""
    tx = unpack_tx(raw)
    assert pack_tx(tx.unsigned, tx.credentials).raw == raw
    produced(tx), consumed(tx), exported(tx), imported(tx)
    tx_json(tx, ChainNaming("X", "local"))


def platform_block(raw: bytes) -> None:
    """What parses must also rebuild to the same bytes, with every transaction in it."""
    block = pvm.unpack_block(raw)
    txs = [pvm.pack_tx(tx.unsigned, tx.credentials) for tx in block.txs]
    proposal = block.proposal and pvm.pack_tx(block.proposal.unsigned, block.proposal.credentials)
    head = (block.block_type, block.parent_id, block.height)
    assert pvm.pack_block(*head, time=block.time, txs=txs, proposal=proposal).raw == raw
    block_json(block, ChainNaming("P", "local"))


def platform_tx(raw: bytes) -> None:
    tx = pvm.unpack_tx(raw)
    assert pvm.pack_tx(tx.unsigned, tx.credentials).raw == raw
    tx_json_of_p(tx, ChainNaming("P", "local"))


def platform_utxo(raw: bytes) -> None:
    assert pvm.pack_utxo(pvm.unpack_utxo(raw)) == raw


def platform_utxos() -> list[bytes]:
    """Outputs of recorded transactions, plain and locked ones."""
    found = []
    for tx in p_txs():
        if isinstance(tx.unsigned, PlatformBaseTx):
            outputs = (*tx.unsigned.outputs, *getattr(tx.unsigned, "stake", ()))
            found += [PlatformUtxo(tx.txid, index, out.asset_id, out.output) for index, out in enumerate(outputs)]
    return [pvm.pack_utxo(one) for one in found]


def warp_message(raw: bytes) -> None:
    message = warp.unpack_message(raw)
    assert warp.pack_message(message) == raw
    call = warp.unpack_addressed_call(message.payload)
    assert warp.pack_addressed_call(call) == message.payload
    warp.unpack_l1_payload(call.payload)


def warp_messages() -> list[bytes]:
    kinds = RegisterL1ValidatorTx | SetL1ValidatorWeightTx
    return [tx.unsigned.message for tx in p_txs() if isinstance(tx.unsigned, kinds)]


def utxo(raw: bytes) -> None:
    assert pack_utxo(unpack_utxo(raw)) == raw


def nested_list(raw: bytes) -> None:
    assert rlp.encode(rlp.decode(raw)) == raw


def identifier(text: str) -> None:
    assert cb58.encode(id_from_text(text)) == text


def small(raws: list[bytes]) -> list[bytes]:
    return [raw for raw in raws if len(raw) < 4000][:40]


def x_txs() -> list[bytes]:
    return small([tx.raw for raw in inner_blocks("X") for tx in unpack_block(raw).txs])


def atomic_bytes() -> list[bytes]:
    return [rlp.string(rlp.slices(raw)[4]) for raw in inner_blocks("C")]


class Target(NamedTuple):
    parse: Callable[[Any], object]
    samples: Callable[[], list[Any]]
    share: float = 1.0


BYTES = {
    "transaction": Target(transaction, x_txs, 4),
    "utxo": Target(utxo, lambda: [pack_utxo(u) for raw in x_txs() for u in produced(unpack_tx(raw))][:60], 2),
    "block": Target(unpack_block, lambda: small(inner_blocks("X"))),
    "asset genesis": Target(
        unpack_genesis, lambda: [network_genesis(packaged_genesis(n), n, 0).x_genesis for n in (5, 12345)]
    ),
    "container": Target(unpack_container, lambda: small([row.container.raw for row in containers()])),
    "platform block": Target(unpack_platform_block, lambda: small(inner_blocks("P")), 2),
    "platform block of any type": Target(platform_block, lambda: [raw for raw in p_blocks() if len(raw) < 4000], 4),
    "platform transaction": Target(platform_tx, lambda: small([tx.raw for tx in p_txs()]), 2),
    "platform utxo": Target(platform_utxo, platform_utxos),
    "platform genesis": Target(
        pvm.unpack_genesis, lambda: [network_genesis(packaged_genesis(12345), 12345, 0).p_genesis], 0.1
    ),
    "warp message": Target(warp_message, warp_messages),
    "evm block": Target(unpack_coreth_block, lambda: inner_blocks("C")),
    "atomic transactions": Target(unpack_atomic_moves, atomic_bytes, 2),
    "rlp": Target(nested_list, lambda: inner_blocks("C"), 0.5),
    "network genesis": Target(
        lambda raw: network_genesis(raw, 12345, 0), lambda: [packaged_genesis(12345), packaged_genesis(5)], 0.02
    ),
    "signature": Target(lambda raw: recover(raw, bytes(32)), lambda: [sign(bytes([7]) * 32, bytes(32))], 0.3),
}
TEXTS = {
    "identifier": Target(identifier, lambda: ["2eNy1mUFdmaxXNj1eQHUe7Np4gju9sJsEtWQ4MX3ToiNKuADed"], 2),
    "node": Target(node_id_from_text, lambda: ["NodeID-7Xhw2mDxuDS44j42TCB6U5579esbSt3Lg"], 0.5),
    "address": Target(address_from_text, lambda: ["X-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"], 2),
    "bech32": Target(bech32.decode, lambda: ["local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u", "a1lqfn3a"]),
    "hex": Target(checksum_hex.decode, lambda: ["0x0017afa01d", "0x7852b855"]),
    "plain hex": Target(lambda text: checksum_hex.decode(text, "hexnc"), lambda: ["0x0017afa01d"], 0.5),
    "private key": Target(private_key_from_text, lambda: [f"PrivateKey-{'1' * 31}c7hwa"], 0.2),
    "network": Target(network_id_from_text, lambda: ["network-12345", "local"], 0.5),
    "quote": Target(quote, lambda: ["X-lo\tcal\u00e9"], 0.2),
}
SHARES = sum(target.share for target in (*BYTES.values(), *TEXTS.values()))
SPECIAL_BYTES = (0, 1, 2, 5, 7, 9, 0x7F, 0x80, 0xC0, 0xF8, 0xFF)
SPECIAL_CHARS = "\0\n '\"01lOI-éß中😀\udc80\ud800\u2028xXgG"


def cases(target: Target) -> int:
    return max(20, round(CASES * target.share / SHARES))


def damaged(raw: bytes, rng: random.Random) -> bytes:
    data = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 12))):
        if not data:
            break
        at = rng.randrange(len(data))
        match rng.randrange(7):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at] = rng.choice(SPECIAL_BYTES)
            case 2:
                del data[at : at + rng.choice((1, 4, 20, 32))]
            case 3:
                data[at:at] = rng.randbytes(rng.choice((1, 2, 4, 32)))
            case 4:
                del data[at:]
            case 5:  # a count or a type ID, perhaps
                data[at : at + 4] = rng.choice((0, 1, 2, 5, 9, 18, 22, 2**31 - 1, 2**31, 2**32 - 1)).to_bytes(4, "big")
            case _:
                other = rng.randrange(len(data))
                data[at:at] = data[other : other + rng.choice((4, 36, 80))]
    return bytes(data)


def damaged_text(text: str, rng: random.Random) -> str:
    chars = list(text)
    for _ in range(rng.choice((1, 1, 2, 6))):
        at = rng.randrange(len(chars) + 1)
        match rng.randrange(4):
            case 0:
                chars[at : at + 1] = [rng.choice(SPECIAL_CHARS)]
            case 1:
                chars[at : at + 1] = [chr(rng.randrange(33, 127))]
            case 2:
                del chars[at : at + rng.choice((1, 1, 8))]
            case _:
                chars[at:at] = rng.choices(text or "1", k=rng.choice((1, 3, 40)))
    return "".join(chars)


def refuses(target: Target, value: object) -> bool:
    try:
        target.parse(value)
    except WireError:
        return True
    return False


@pytest.mark.parametrize("name", BYTES)
def test_damaged_bytes(name: str) -> None:
    target = BYTES[name]
    rng = random.Random(f"{SEED} {name}")
    samples = target.samples()
    refused = 0
    for case in range(cases(target)):
        raw = rng.randbytes(rng.randrange(120)) if case % 10 == 0 else damaged(rng.choice(samples), rng)
        refused += refuses(target, raw)
    assert refused


@pytest.mark.parametrize("name", TEXTS)
def test_damaged_text(name: str) -> None:
    target = TEXTS[name]
    rng = random.Random(f"{SEED} {name}")
    samples = target.samples()
    refused = 0
    for case in range(cases(target)):
        special = "".join(rng.choices(SPECIAL_CHARS, k=rng.randrange(12)))
        refused += refuses(target, special if case % 10 == 0 else damaged_text(rng.choice(samples), rng))
    assert refused or name == "quote"
