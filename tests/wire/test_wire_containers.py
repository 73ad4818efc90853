"""Containers of P, X and C: wrapping, IDs, epochs, and what the other chains export to X."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.wire_vectors import SCENARIO_START, containers, coreth_block, pack_option, recorded

from icefall.wire.avm.codec import unpack_block, unpack_utxo
from icefall.wire.container.coreth import unpack_coreth_block
from icefall.wire.container.platform import unpack_platform_block
from icefall.wire.container.proposer import (
    OPTION,
    Epoch,
    ForeignBlock,
    next_epoch,
    pack_container,
    unpack_container,
)
from icefall.wire.errors import WireError
from icefall.wire.evm import rlp
from icefall.wire.genesis.network import NetworkGenesis, network_genesis, packaged_genesis
from icefall.wire.ids import EMPTY_ID, hash256, id_from_text, id_text, input_id
from icefall.wire.packer import u32, u64
from icefall.wire.text import checksum_hex

FEW = settings(max_examples=60, deadline=None, database=None)
UNPACK: dict[str, Any] = {"X": unpack_block, "P": unpack_platform_block, "C": unpack_coreth_block}


@cache
def local() -> NetworkGenesis:
    return network_genesis(packaged_genesis(12345), 12345, SCENARIO_START)


@pytest.mark.parametrize("chain", ["X", "P", "C"])
def test_recorded_chain_is_linked(chain: str) -> None:
    genesis = local()
    inner_parent = {"X": genesis.x_block_0_id, "P": genesis.p_block_0_id, "C": genesis.c_block_0_id}[chain]
    outer_parent, parent = inner_parent, None
    for row in containers():
        if row.chain != chain:
            continue
        container = row.container
        block = UNPACK[chain](container.inner)
        assert id_text(container.container_id) == row.id_text
        assert container.parent_id == outer_parent
        assert container.epoch == (next_epoch(parent) if parent else None)
        assert (block.parent_id, block.height, block.time) == (inner_parent, row.position + 1, container.timestamp)
        head = (container.parent_id, container.timestamp, container.p_chain_height, container.inner)
        assert pack_container(*head, epoch=container.epoch) == container
        outer_parent, inner_parent, parent = container.container_id, block.block_id, container


def foreign_blocks(chain: str) -> list[ForeignBlock]:
    return [UNPACK[chain](row.container.inner) for row in containers() if row.chain == chain]


@pytest.mark.parametrize(("chain", "number"), [("P", 62), ("C", 36)])
def test_recorded_exports_to_x(chain: str, number: int) -> None:
    met = {
        export.utxo_raw: export for block in foreign_blocks(chain) for export in block.exports_to(local().x_chain_id)
    }
    expected: set[bytes] = set()
    txids = set()
    for row in recorded("scenario-1/wire_exports.jsonl.gz"):
        if row["chain"] == chain:
            expected |= {checksum_hex.decode(text) for text in row["sharedMemoryUTXOs"]}
            txids.add(id_from_text(row["txID"]))
    assert met.keys() == expected
    assert len(met) == number
    for raw, export in met.items():
        utxo = unpack_utxo(raw)
        assert (utxo.txid, utxo.output_index) == (export.txid, export.output_index)
        assert export.utxo_id == input_id(utxo.txid, utxo.output_index)
    assert txids <= {txid for block in foreign_blocks(chain) for txid in block.txids}
    assert not foreign_blocks(chain)[0].exports_to(b"elsewhere")


@FEW
@given(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1),
    st.binary(max_size=60),
    st.none() | st.builds(Epoch, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**62)),
    st.binary(max_size=40),
)
def test_container_round_trip(time: int, height: int, inner: bytes, epoch: Epoch | None, signature: bytes) -> None:
    parent_id, certificate = hash256(inner), inner[::-1]
    container = pack_container(
        parent_id, time, height, inner, epoch=epoch, certificate=certificate, signature=signature
    )
    assert unpack_container(container.raw) == container
    unsigned = pack_container(parent_id, time, height, inner, epoch=epoch, certificate=certificate)
    assert unsigned.container_id == container.container_id
    option = unpack_container(pack_option(parent_id, inner))
    assert (option.type_id, option.parent_id, option.inner) == (OPTION, parent_id, inner)
    assert option.container_id == hash256(option.raw)


@pytest.mark.parametrize(
    "raw",
    [
        pack_container(EMPTY_ID, 100, 7, b"inner").raw,
        pack_container(EMPTY_ID, 100, 7, b"inner", epoch=Epoch(7, 1, 100)).raw,
        pack_option(EMPTY_ID, b"inner"),
    ],
    ids=["signed", "granite", "option"],
)
def test_a_byte_too_many_is_refused_for_every_kind(raw: bytes) -> None:
    assert unpack_container(raw).inner == b"inner"
    with pytest.raises(WireError):
        unpack_container(raw + b"\0")


def test_epochs() -> None:
    first = pack_container(EMPTY_ID, 100, 7, b"")
    one = next_epoch(first)
    assert one == Epoch(7, 1, 100)
    assert next_epoch(pack_container(EMPTY_ID, 129, 8, b"", epoch=one)) == one
    assert next_epoch(pack_container(EMPTY_ID, 130, 8, b"", epoch=one)) == Epoch(8, 2, 130)


def test_unknown_container_type() -> None:
    with pytest.raises(WireError, match=r"^couldn't unmarshal interface: unknown type ID 3$"):
        unpack_container(b"\0\0\0\0\0\3")


BASE = u32(1) + EMPTY_ID + u32(0) * 3
NO_CREDENTIALS = u32(0)
OWNERS = u64(0) + u32(1) + u32(1) + bytes(20)
OWNER = u32(11) + OWNERS
AUTHORITY = u32(10) + u32(1) + u32(0)
STAKE = u32(1) + EMPTY_ID + u32(22) + u64(5) + u32(7) + u64(9) + OWNERS
VALIDATOR = bytes(20) + u64(1) * 3
LOCKED_INPUTS = u32(1) + bytes(32) + u32(0) + EMPTY_ID + u32(21) + u64(3) + u32(5) + u64(1) + u32(1) + u32(0)
COMMITTEE = u32(1) + u32(1) + bytes(20)
L1_VALIDATOR = u32(3) + b"abc" + u64(1) * 2 + bytes(48 + 96) + COMMITTEE * 2

COMMON = EMPTY_ID + u64(3)
ATOMIC_BLOCK = bytes(2) + u32(4) + COMMON  # holds exactly one transaction

PLATFORM_TXS = {
    "AddValidator": u32(12) + BASE + VALIDATOR + STAKE + OWNER + u32(1),
    "AddSubnetValidator": u32(13) + BASE + VALIDATOR + EMPTY_ID + AUTHORITY,
    "AddDelegator": u32(14) + BASE + VALIDATOR + STAKE + OWNER,
    "CreateChain": u32(15) + BASE + EMPTY_ID + b"\0\1X" + EMPTY_ID + u32(1) + EMPTY_ID + u32(1) + b"g" + AUTHORITY,
    "CreateSubnet": u32(16) + BASE + OWNER,
    "Import": u32(17) + BASE + EMPTY_ID + LOCKED_INPUTS,
    "Export": u32(18) + BASE + EMPTY_ID + STAKE,
    "AdvanceTime": u32(19) + u64(1),
    "RewardValidator": u32(20) + EMPTY_ID,
    "RemoveSubnetValidator": u32(23) + BASE + bytes(20) + EMPTY_ID + AUTHORITY,
    "TransformSubnet": u32(24) + BASE + EMPTY_ID * 2 + u64(0) * 6 + u32(0) * 3 + u64(0) + b"\0" + u32(0) + AUTHORITY,
    "AddPermissionlessValidator": u32(25) + BASE + VALIDATOR + EMPTY_ID + u32(27) + STAKE + OWNER * 2 + u32(1),
    "AddPermissionlessDelegator": u32(26) + BASE + VALIDATOR + EMPTY_ID + STAKE + OWNER,
    "TransferSubnetOwnership": u32(33) + BASE + EMPTY_ID + AUTHORITY + OWNER,
    "Base": u32(34) + BASE,
    "ConvertSubnetToL1": u32(35) + BASE + EMPTY_ID * 2 + u32(1) + b"a" + u32(1) + L1_VALIDATOR + AUTHORITY,
    "RegisterL1Validator": u32(36) + BASE + u64(1) + bytes(96) + u32(2) + b"me",
    "SetL1ValidatorWeight": u32(37) + BASE + u32(2) + b"me",
    "IncreaseL1ValidatorBalance": u32(38) + BASE + EMPTY_ID + u64(1),
    "DisableL1Validator": u32(39) + BASE + EMPTY_ID + AUTHORITY,
}


@pytest.mark.parametrize("name", PLATFORM_TXS)
def test_platform_transaction_types(name: str) -> None:
    """Every type is read exactly to its end, whatever comes after it in the block."""
    tx = PLATFORM_TXS[name] + NO_CREDENTIALS
    alone = unpack_platform_block(ATOMIC_BLOCK + tx)
    assert alone.txids == (hash256(bytes(2) + tx),)
    assert len(alone.exports) == (name == "Export")
    after = PLATFORM_TXS["Export"] + u32(1) + u32(9) + u32(1) + bytes(65)
    block = unpack_platform_block(bytes(2) + u32(32) + u64(77) + EMPTY_ID + u64(5) + u32(2) + tx + after)
    assert (block.height, block.time, len(block.txids)) == (5, 77, 2)
    assert block.exports[-1].txid == hash256(bytes(2) + after)


@pytest.mark.parametrize("name", PLATFORM_TXS)
def test_platform_transactions_cut_short(name: str) -> None:
    tx = PLATFORM_TXS[name] + NO_CREDENTIALS
    for size in range(len(tx)):
        with pytest.raises(WireError):
            unpack_platform_block(ATOMIC_BLOCK + tx[:size])


TX = PLATFORM_TXS["Export"] + NO_CREDENTIALS


@pytest.mark.parametrize(
    ("raw", "time", "txs"),
    [
        (u32(0) + COMMON + TX, None, 1),
        (u32(1) + COMMON, None, 0),
        (u32(2) + COMMON, None, 0),
        (u32(3) + COMMON + u32(2) + TX * 2, None, 2),
        (u32(4) + COMMON + TX, None, 1),
        (u32(29) + u64(9) + u32(1) + TX + COMMON + TX, 9, 2),
        (u32(30) + u64(9) + COMMON, 9, 0),
        (u32(31) + u64(9) + COMMON, 9, 0),
        (u32(32) + u64(9) + COMMON + u32(0), 9, 0),
    ],
)
def test_platform_block_types(raw: bytes, time: int | None, txs: int) -> None:
    block = unpack_platform_block(bytes(2) + raw)
    assert (block.height, block.time, len(block.txids), len(block.exports)) == (3, time, txs, txs)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (u32(5) + COMMON, "P-Chain: unknown block type 5"),
        (u32(4) + COMMON + u32(40), "P-Chain: unknown transaction type 40"),
        (u32(4) + COMMON + u32(16) + BASE + u32(10), "P-Chain: unknown owner type 10"),
    ],
)
def test_unknown_platform_types(raw: bytes, text: str) -> None:
    with pytest.raises(WireError) as caught:
        unpack_platform_block(bytes(2) + raw)
    assert str(caught.value) == text


EVM_EXPORT = u32(1) + u32(1) + EMPTY_ID * 2 + u32(0) + u32(1) + EMPTY_ID + u32(7) + u64(9) + OWNERS + u32(0)


def test_single_atomic_transaction_of_old_blocks() -> None:
    listed = unpack_coreth_block(coreth_block(bytes(2) + u32(1) + EVM_EXPORT))
    single = unpack_coreth_block(coreth_block(bytes(2) + EVM_EXPORT))
    assert (listed.txids, listed.exports) == (single.txids, single.exports)
    assert [export.output_index for export in single.exports] == [0]
    empty = unpack_coreth_block(coreth_block(b""))
    assert (empty.txids, empty.exports) == ((), ())


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x80",
        rlp.encode([b""] * 4),
        rlp.encode([[b""] * 15, [], [], b"", b""]),
        rlp.encode([[b""] * 16, [], [], b"", b""]),
        rlp.encode([[bytes(32)] * 16, [], [], b"", b""]),
        rlp.encode([[bytes(32)] + [b""] * 15, [], [], b"", b"\0\0\0\0\0\1\0\0\0\2"]),
    ],
)
def test_bad_evm_blocks(raw: bytes) -> None:
    with pytest.raises(WireError):
        unpack_coreth_block(raw)
