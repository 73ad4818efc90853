"""Asset-chain bytes and JSON, compared with vectors and with the answers of a recorded node."""

import gzip
import json
from functools import cache
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.avm_values import create_asset_txs, credentials, several, unsigned_txs, utxos, verifiables
from tests.wire.wire_vectors import VECTORS, inner_blocks, recorded, vectors

from icefall.wire.avm.codec import (
    genesis_from_asset_tx,
    genesis_txs,
    pack_block,
    pack_genesis,
    pack_tx,
    pack_utxo,
    unpack_block,
    unpack_genesis,
    unpack_tx,
    unpack_utxo,
)
from icefall.wire.avm.json import ChainNaming, block_json, tx_json
from icefall.wire.avm.types import (
    Block,
    CreateAssetTx,
    Credential,
    GenesisAsset,
    NftCredential,
    PropertyCredential,
    Tx,
)
from icefall.wire.avm.utxos import consumed, exported, imported, produced
from icefall.wire.errors import WireError
from icefall.wire.genesis.network import network_genesis, packaged_genesis
from icefall.wire.ids import hash256, id_from_text, id_text, input_id
from icefall.wire.keys import recover
from icefall.wire.packer import SIZE_MAX
from icefall.wire.text import checksum_hex

FEW = settings(max_examples=60, deadline=None, database=None)
LOCAL = ChainNaming("X", "local")
TESTING = ChainNaming("X", "testing")  # upstream's unit tests run on network 10


@cache
def blocks() -> list[Block]:
    return [unpack_block(raw) for raw in inner_blocks("X")]


def signatures(tx: Tx) -> list[tuple[bytes, ...]]:
    signers = (Credential, NftCredential, PropertyCredential)
    return [credential.signatures for credential in tx.credentials if isinstance(credential, signers)]


def rebuilt(tx: Tx) -> Tx:
    return pack_tx(tx.unsigned, tx.credentials)


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@pytest.mark.parametrize("row", vectors("avm_txs"), ids=lambda row: row["name"])
def test_transactions(row: Any) -> None:
    raw, expect = bytes.fromhex(row["hex"]), row["expect"]
    tx = unpack_tx(raw)
    assert rebuilt(tx) == tx
    assert tx.raw == raw
    assert id_text(tx.txid) == expect["txID"]
    assert tx.unsigned_size == expect["unsignedLen"]
    digest = hash256(tx.unsigned_raw)
    assert digest.hex() == expect["signHash"]
    assert checksum_hex.encode(raw) == expect["hexWithChecksum"]
    assert tx_json(tx, TESTING) == compact(expect["json"])
    if "typeID" in expect:
        assert tx.unsigned.type_id == expect["typeID"]
    if "recoveredAddresses" in expect:
        signers = [
            [recover(s, digest).hex() for s in c.signatures] for c in tx.credentials if isinstance(c, Credential)
        ]
        assert signers == expect["recoveredAddresses"]


@pytest.mark.parametrize("row", vectors("blocks"), ids=lambda row: row["name"])
def test_blocks(row: Any) -> None:
    raw = bytes.fromhex(row["hex"])
    block = unpack_block(raw)
    assert block.raw == raw
    assert pack_block(block.parent_id, block.height, block.time, block.txs) == block
    assert block_json(block, TESTING) == compact(row["expect"]["json"])


@pytest.mark.parametrize("row", vectors("utxos"), ids=lambda row: row["name"])
def test_utxos(row: Any) -> None:
    raw, expect = bytes.fromhex(row["hex"]), row["expect"]
    utxo = unpack_utxo(raw)
    assert pack_utxo(utxo) == raw
    assert (id_text(utxo.txid), utxo.output_index) == (expect["txID"], expect["outputIndex"])
    assert id_text(utxo.asset_id) == expect["assetID"]
    if "inputID" in expect:
        assert id_text(input_id(utxo.txid, utxo.output_index)) == expect["inputID"]


@pytest.mark.parametrize("row", vectors("index"), ids=lambda row: row["name"])
def test_indexed_transactions(row: Any) -> None:
    tx = unpack_tx(bytes.fromhex(row["hex"]))
    assert rebuilt(tx) == tx
    assert id_text(tx.txid) == row["name"].split()[1]


JS_TYPES = {"BaseTx": 0, "CreateAssetTx": 1, "OperationTx": 2, "ImportTx": 3, "ExportTx": 4}


@pytest.mark.parametrize(
    "row", [row for row in vectors("avalanchejs") if "unsigned-body" in row["kind"]], ids=lambda row: row["name"]
)
def test_javascript_bodies(row: Any) -> None:
    type_id = JS_TYPES[row["name"].split()[1]]
    raw = bytes(2) + type_id.to_bytes(4, "big") + bytes.fromhex(row["hex"])
    if type_id == CreateAssetTx.type_id:  # that library's fixture has an input among the first outputs
        with pytest.raises(WireError, match=r"TransferInput does not implement interface verify\.State$"):
            unpack_tx(raw + bytes(4))
        return
    tx = unpack_tx(raw + bytes(4))
    assert tx.unsigned_raw == raw
    assert rebuilt(tx) == tx


def test_javascript_transaction_and_utxo() -> None:
    rows = {row["name"]: bytes.fromhex(row["hex"]) for row in vectors("avalanchejs")}
    tx = unpack_tx(rows["js SignedTx(ExportTx)"])
    assert rebuilt(tx) == tx
    utxo = unpack_utxo(bytes(2) + rows["js Utxo"])
    assert pack_utxo(utxo) == bytes(2) + rows["js Utxo"]


def test_recorded_answers_byte_for_byte() -> None:
    by_id = {id_text(block.block_id): block_json(block, LOCAL) for block in blocks()}
    by_id |= {id_text(tx.txid): tx_json(tx, LOCAL) for block in blocks() for tx in block.txs}
    compared = 0
    for row in recorded("scenario-1/wire_json_answers.jsonl.gz"):
        body = row["response"]["body"]
        result = json.loads(body)["result"]
        kind = "tx" if "tx" in result else "block"
        expected = by_id[result[kind]["id"]].decode()
        assert f'"result":{{"{kind}":{expected},"encoding":"json"}}' in body
        compared += 1
    assert compared == 510


def test_recorded_blocks_rebuild() -> None:
    parent = None
    for block in blocks():
        assert parent in (None, block.parent_id)
        parent = block.block_id
        assert pack_block(block.parent_id, block.height, block.time, block.txs) == block
        for tx in block.txs:
            assert rebuilt(tx) == tx == unpack_tx(tx.raw)


def test_recorded_utxo_set() -> None:
    genesis = network_genesis(packaged_genesis(12345), 12345, 0)
    unspent: dict[bytes, bytes] = {}
    outside: set[bytes] = set()
    txs = genesis_txs(unpack_genesis(genesis.x_genesis)) + [tx for block in blocks() for tx in block.txs]
    for tx in txs:
        for spent in consumed(tx):
            del unspent[input_id(spent.txid, spent.output_index)]
        unspent |= {input_id(utxo.txid, utxo.output_index): pack_utxo(utxo) for utxo in produced(tx)}
        outside |= {input_id(utxo.txid, utxo.output_index) for utxo in exported(tx)}
        outside |= {input_id(at.txid, at.output_index) for at in imported(tx)}
    final = json.loads(gzip.decompress((VECTORS / "scenario-1" / "final_utxos.json.gz").read_bytes()))
    expected = {id_from_text(row["inputID"]): row["utxo"] for row in final}
    assert unspent.keys() == expected.keys()
    for utxo_id, raw in unspent.items():
        assert raw in (
            checksum_hex.decode(expected[utxo_id], "hexnc"),
            checksum_hex.decode(expected[utxo_id], "hexnc")[:-4],
        )
        assert pack_utxo(unpack_utxo(raw)) == raw
        assert raw == checksum_hex.decode(expected[utxo_id])
    assert not outside & unspent.keys()


CODEC = (
    "couldn't unm",
    "couldn't unp",
    "packer",
    "trailing",
    "unknown codec",
    "max slice",
    "byte array",
    "problem dec",
)


def refusal(params: Any) -> str | None:
    try:
        raw = checksum_hex.decode(params.get("tx") or "", checksum_hex.encoding_name(params.get("encoding") or "hex"))
    except WireError as error:
        return f"problem decoding transaction: {error}"
    try:
        unpack_tx(raw)
    except WireError as error:
        return str(error)
    return None


def test_recorded_refusals() -> None:
    """Texts for bytes that do not parse, and none for those that parse and fail later."""
    compared = 0
    for row in recorded("scenario-1/wire_refused.jsonl.gz"):
        text = row["response"]["error"]["message"]
        assert refusal(row["request"]) == (text if text.startswith(CODEC) else None), row["kind"]
        compared += 1
    assert compared > 200


def test_recorded_bad_signatures() -> None:
    texts = ("signature was mutated from its original format", "wasn't expecting a compressed key", "invalid signature")
    compared = 0
    for row in recorded("scenario-1/wire_refused.jsonl.gz"):
        text = row["response"]["error"]["message"].removeprefix("failed to verify transfer: ")
        if text not in texts:
            continue
        tx = unpack_tx(checksum_hex.decode(row["request"]["tx"]))
        errors = []
        for signature in chain.from_iterable(signatures(tx)):
            try:
                recover(signature, hash256(tx.unsigned_raw))
            except WireError as error:
                errors.append(str(error))
        assert errors[0] == text, row["kind"]
        compared += 1
    assert compared > 15


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "couldn't unpack codec version"),
        (b"\0", "couldn't unpack codec version"),
        (b"\0\1", "unknown codec version"),
        (b"\0\0", "couldn't unmarshal interface: packer has insufficient length for input"),
        (bytes(SIZE_MAX + 1), f"byte array exceeds maximum length: {SIZE_MAX + 1} > {SIZE_MAX}"),
        (bytes(6), "couldn't unmarshal uint32: packer has insufficient length for input"),
        (bytes(10), "packer has insufficient length for input"),
        (bytes(42), "couldn't unmarshal slice: packer has insufficient length for input"),
        (
            bytes(54) + b"\x80\0\0\0",
            "max slice length exceeded; array length, 2147483648, exceeds maximum length, 2147483647",
        ),
        (bytes(59), "trailing buffer space: read 58 provided 59"),
        (b"\0\0\0\0\0\x63", "couldn't unmarshal interface: unknown type ID 99"),
    ],
)
def test_bad_transactions(raw: bytes, text: str) -> None:
    with pytest.raises(WireError) as caught:
        unpack_tx(raw)
    assert str(caught.value) == text


def test_bad_blocks_and_genesis() -> None:
    for raw in (b"\0\0\0\0\0\0", b"\0\0\0\0\0\x14", blocks()[0].raw + b"\0"):
        with pytest.raises(WireError):
            unpack_block(raw)
    with pytest.raises(WireError):
        unpack_genesis(b"\0\0\0\0\0\1")
    with pytest.raises(WireError, match=r"^transaction doesn't create an asset$"):
        genesis_from_asset_tx(blocks()[0].txs[0].raw)


@FEW
@given(unsigned_txs, several(verifiables))
def test_transaction_round_trip(unsigned: Any, signers: Any) -> None:
    tx = pack_tx(unsigned, signers)
    assert unpack_tx(tx.raw) == tx


@FEW
@given(utxos)
def test_utxo_round_trip(utxo: Any) -> None:
    assert unpack_utxo(pack_utxo(utxo)) == utxo


@FEW
@given(
    st.binary(min_size=32, max_size=32),
    st.integers(0, 2**64 - 1),
    several(st.tuples(unsigned_txs, several(credentials)), most=2),
)
def test_block_round_trip(parent_id: bytes, height: int, parts: Any) -> None:
    block = pack_block(parent_id, height, height, [pack_tx(*part) for part in parts])
    assert unpack_block(block.raw, 2**31 - 1) == block
    rendered = json.loads(block_json(block, LOCAL))
    assert [tx["id"] for tx in rendered["txs"]] == [id_text(tx.txid) for tx in block.txs]


@FEW
@given(several(st.tuples(st.text(max_size=8), create_asset_txs), most=2))
def test_genesis_round_trip(rows: Any) -> None:
    assets = tuple(GenesisAsset(alias, asset) for alias, asset in rows)
    assert unpack_genesis(pack_genesis(assets)) == assets


def test_json_escapes_names_like_go() -> None:
    asset = CreateAssetTx(1, bytes(32), (), (), b"", "<a>&\udcff", "\u2028", 0, ())
    text = tx_json(pack_tx(asset), LOCAL).decode()
    assert '"name":"\\u003ca\\u003e\\u0026\\ufffd","symbol":"\\u2028"' in text


def test_json_refuses_what_is_no_credential() -> None:
    tx = blocks()[0].txs[0]
    odd = pack_tx(tx.unsigned, [tx.unsigned.outputs[0].output])
    with pytest.raises(WireError, match="TransferOutput in the position of a credential"):
        tx_json(odd, LOCAL)
