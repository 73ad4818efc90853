"""The P-Chain's codec on everything that two recorded networks accepted, and on what no network did."""

from collections import defaultdict
from typing import Any

import msgspec
import pytest
from tests.wire.platform_vectors import P_RECORDINGS, p_blocks, p_containers, p_rows, p_txs
from tests.wire.wire_vectors import VECTORS

from icefall.wire.avm.json import ChainNaming
from icefall.wire.errors import WireError
from icefall.wire.genesis.network import network_genesis
from icefall.wire.ids import EMPTY_ID, hash256, id_text
from icefall.wire.packer import u32, u64
from icefall.wire.pvm import types, warp
from icefall.wire.pvm.bodies import pack_unsigned
from icefall.wire.pvm.codec import (
    pack_block,
    pack_tx,
    pack_utxo,
    unpack_block,
    unpack_genesis,
    unpack_tx,
    unpack_utxo,
)
from icefall.wire.pvm.json import block_json, tx_json
from icefall.wire.pvm.types import (
    BlockType,
    ConvertSubnetToL1Tx,
    PlatformBaseTx,
    PlatformBlock,
    RegisterL1ValidatorTx,
    SetL1ValidatorWeightTx,
)
from icefall.wire.text import checksum_hex


@pytest.mark.parametrize("recording", P_RECORDINGS)
def test_every_container_decodes_and_encodes(recording: str) -> None:
    """Each block links to the one before it, and is rebuilt from its values byte for byte."""
    parent_id = None
    for row in p_containers(recording):
        block = unpack_block(row.inner)
        own_id = row.wrapping.container_id if row.wrapping else block.block_id
        assert (block.height, id_text(own_id)) == (row.height, row.id_text)
        assert parent_id in (None, block.parent_id)
        parent_id = block.block_id
        assert rebuilt(block) == block


def rebuilt(block: PlatformBlock) -> PlatformBlock:
    txs = [pack_tx(tx.unsigned, tx.credentials) for tx in block.txs]
    proposal = pack_tx(block.proposal.unsigned, block.proposal.credentials) if block.proposal else None
    return pack_block(block.block_type, block.parent_id, block.height, time=block.time, txs=txs, proposal=proposal)


def test_the_recordings_hold_every_type() -> None:
    """A type without a recorded example would be decoded by guess."""
    kinds = {type(tx.unsigned) for tx in p_txs()}
    assert kinds == {*PlatformBaseTx.__subclasses__(), PlatformBaseTx, types.AdvanceTimeTx, types.RewardValidatorTx}
    assert {unpack_block(raw).block_type for raw in p_blocks()} == set(BlockType)


def test_a_transaction_alone_is_the_one_in_its_block() -> None:
    for tx in p_txs():
        assert unpack_tx(tx.raw) == tx
        assert tx.raw[: tx.unsigned_size] == bytes(2) + pack_unsigned(tx.unsigned)


@pytest.mark.parametrize("recording", P_RECORDINGS)
def test_recorded_utxos(recording: str) -> None:
    """Every UTXO that was answered in hex, locked ones included, is rebuilt byte for byte."""
    answers = [row["response"] for row in p_rows(recording, "final") if row["method"] == "platform.getUTXOs"]
    results = [answer["result"] for answer in answers if "result" in answer]
    raws = {checksum_hex.decode(text, result["encoding"]) for result in results for text in result["utxos"]}
    assert len(raws) > 20
    for raw in raws:
        assert pack_utxo(unpack_utxo(raw)) == raw


@pytest.mark.parametrize("recording", P_RECORDINGS)
def test_json_equals_the_recorded_answers(recording: str) -> None:
    """Every transaction and block that was answered as JSON, from the bytes that were answered as hex."""
    naming = ChainNaming("P", "local" if recording == "p-local-1" else "custom")
    compared = 0
    rows: list[tuple[str, str, Any, Any]] = [
        ("platform.getTx", "tx", unpack_tx, tx_json),
        ("platform.getBlock", "block", unpack_block, block_json),
    ]
    for method, key, unpack, render in rows:
        answers = recorded_answers(recording, method, key)
        for subject, by_encoding in answers.items():
            if {"hex", "json"} <= by_encoding.keys():
                rendered = render(unpack(checksum_hex.decode(by_encoding["hex"]), 2**31 - 1), naming)
                assert rendered == msgspec.json.encode(by_encoding["json"]), subject
                compared += 1
    assert compared > 150


def recorded_answers(recording: str, method: str, key: str) -> dict[str, dict[str, Any]]:
    """What was answered for each subject, by encoding."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in p_rows(recording, "final"):
        params, result = row["params"], row["response"].get("result")
        if row["method"] == method and isinstance(params, dict) and result:
            found[params[f"{key}ID"]][result["encoding"]] = result[key]
    return found


def test_warp_messages() -> None:
    seen = 0
    for tx in p_txs():
        if not isinstance(tx.unsigned, RegisterL1ValidatorTx | SetL1ValidatorWeightTx):
            continue
        seen += 1
        message = warp.unpack_message(tx.unsigned.message)
        assert warp.pack_message(message) == tx.unsigned.message
        assert message.signers_count >= 1
        call = warp.unpack_addressed_call(message.payload)
        assert warp.pack_addressed_call(call) == message.payload
        content = warp.unpack_l1_payload(call.payload)
        if isinstance(content, warp.RegisterL1Validator):
            assert warp.registration_in(tx.unsigned.message) == content
            owners = (content.remaining_balance_owner, content.deactivation_owner)
            fields = (content.subnet_id, content.node_id, content.public_key, content.expiry, owners, content.weight)
            assert warp.pack_registration(*fields) == call.payload
            with pytest.raises(WireError, match="registers a validator"):
                warp.weight_in(tx.unsigned.message)
        else:
            assert warp.weight_in(tx.unsigned.message) == content
            assert warp.pack_weight(content) == call.payload
            with pytest.raises(WireError, match="sets a weight"):
                warp.registration_in(tx.unsigned.message)
    assert seen > 5


@pytest.mark.parametrize("recording", P_RECORDINGS)
def test_derived_ids(recording: str) -> None:
    """The IDs of conversions and of first validators are those that the node answered."""
    rows = [row for name in ("calls", "final") for row in p_rows(recording, name)]
    answered = [row["response"].get("result") or {} for row in rows]
    conversions = {answer.get("conversionID") for answer in answered}
    validations = {answer.get("validationID") for answer in answered}
    unsigned = [tx.unsigned for tx in p_txs(recording)]
    registered = [tx.message for tx in unsigned if isinstance(tx, RegisterL1ValidatorTx)]
    assert validations >= {id_text(warp.registration_in(message).validation_id) for message in registered}
    converted = [tx for tx in unsigned if isinstance(tx, ConvertSubnetToL1Tx)]
    assert registered
    assert converted
    for tx in converted:
        assert id_text(warp.conversion_id(tx)) in conversions
        first = [warp.first_validation_id(tx.subnet_id, position) for position in range(len(tx.validators))]
        assert validations >= set(map(id_text, first))


@pytest.mark.parametrize(("recording", "name"), [("p-local-1", "genesis-local"), ("p-forks-1", "genesis")])
def test_genesis_bytes(recording: str, name: str) -> None:
    """Block 0 is the parent of the first recorded block, and what the genesis holds is rebuilt byte for byte."""
    first = p_containers(recording)[0]
    network_id = 12345 if recording == "p-local-1" else 424242
    network = network_genesis((VECTORS / recording / f"{name}.json").read_bytes(), network_id, 0)
    assert network.p_block_0_id == unpack_block(first.inner).parent_id
    raw = network.p_genesis
    block = unpack_block(network.p_block_0)
    assert (block.block_type, block.height, block.parent_id) == (BlockType.APRICOT_COMMIT, 0, hash256(raw))
    genesis = unpack_genesis(raw)
    assert len(genesis.validators) == 5
    assert [id_text(tx.txid) for tx in genesis.chains] == [id_text(network.x_chain_id), id_text(network.c_chain_id)]
    for tx in (*genesis.validators, *genesis.chains):
        assert pack_tx(tx.unsigned) == tx
        assert tx.raw[2:] in raw
    for utxo, message in genesis.utxos:
        assert pack_utxo(utxo)[2:] + u32(len(message)) + message in raw


COMMON = EMPTY_ID + u64(3)
EMPTY_BASE = u32(34) + u32(1) + EMPTY_ID + u32(0) * 3
ONE_OUTPUT = u32(34) + u32(1) + EMPTY_ID + u32(1) + EMPTY_ID


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (u32(5) + COMMON, "P-Chain: unknown block type 5"),
        (u32(33) + COMMON, "P-Chain: unknown block type 33"),
        (u32(4) + COMMON + u32(40), "P-Chain: unknown transaction type 40"),
        (u32(4) + COMMON + u32(2**32 - 1), "P-Chain: unknown transaction type 4294967295"),
        (u32(4) + COMMON + EMPTY_BASE + u32(1) + u32(5), "P-Chain: unknown credential type 5"),
        (u32(4) + COMMON + ONE_OUTPUT + u32(6), "P-Chain: unknown output type 6"),
        (u32(4) + COMMON + ONE_OUTPUT + u32(22) + u64(1) + u32(22), "P-Chain: unknown locked output type 22"),
        (u32(4) + COMMON + EMPTY_BASE + u32(0) + b"!", "trailing buffer space: read 102 provided 103"),
        (u32(2) + EMPTY_ID, "couldn't unmarshal uint64: packer has insufficient length for input"),
    ],
)
def test_unreadable_blocks_say_what_was_met(raw: bytes, text: str) -> None:
    with pytest.raises(WireError) as caught:
        unpack_block(bytes(2) + raw)
    assert str(caught.value) == text


def test_reward_transactions_are_known_in_advance() -> None:
    staking_txid: Any = bytes(range(32))
    tx = pack_tx(types.RewardValidatorTx(staking_txid))
    assert tx.txid == hash256(bytes(2) + u32(20) + staking_txid + u32(0))
