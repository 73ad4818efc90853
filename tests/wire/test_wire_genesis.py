"""Networks at height 0, against published IDs, upstream bytes and a recorded local network."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.wire.wire_vectors import SCENARIO_START, containers, vectors

from icefall.wire.avm.codec import (
    genesis_from_asset_tx,
    genesis_txs,
    pack_genesis,
    unpack_block,
    unpack_genesis,
)
from icefall.wire.errors import WireError
from icefall.wire.genesis.network import KNOWN_NETWORKS, NetworkGenesis, network_genesis, packaged_genesis, x_chain_id
from icefall.wire.ids import FUJI_ID, LOCAL_ID, MAINNET_ID, hash256, id_text
from icefall.wire.packer import u16, u32, u64

NAMES = {"local": LOCAL_ID, "fuji": FUJI_ID}
DAY_S = 24 * 3600


def at_birth(network_id: int) -> NetworkGenesis:
    return network_genesis(packaged_genesis(network_id), network_id, now=0)


@pytest.mark.parametrize("name", NAMES)
def test_asset_chain(name: str) -> None:
    genesis = at_birth(NAMES[name])
    row = next(row for row in vectors("genesis") if row["name"] == f"x-chain genesis {name}")
    expect = row["expect"]
    assert genesis.x_genesis.hex() == row["hex"]
    assert hash256(genesis.x_genesis).hex() == expect["genesisSha256"]
    assert id_text(genesis.avax_asset_id) == expect["avaxAssetID"]
    assert id_text(genesis.x_chain_id) == expect["xChainID"]
    assert id_text(genesis.c_chain_id) == expect["cChainID"]
    assert x_chain_id(genesis.network_id, genesis.x_genesis) == genesis.x_chain_id

    assets = unpack_genesis(genesis.x_genesis)
    assert pack_genesis(assets) == genesis.x_genesis
    (tx,) = genesis_txs(assets)
    assert tx.txid == genesis.avax_asset_id
    assert len(tx.raw) == expect["avaxAssetTxLen"]
    outputs: Any = assets[0].asset.initial_states[0].outputs
    assert (len(outputs), sum(output.amount for output in outputs)) == (expect["numHolders"], expect["xSupply"])
    assert genesis_from_asset_tx(tx.raw) == genesis.x_genesis


@pytest.mark.parametrize("name", NAMES)
def test_platform_chain(name: str) -> None:
    genesis = at_birth(NAMES[name])
    row = next(row for row in vectors("genesis") if row["name"] == f"network (P-chain) genesis {name}")
    assert genesis.p_genesis.hex() == row["hex"]
    assert id_text(genesis.p_genesis_id) == row["expect"]["genesisID"]
    assert genesis.p_block_0.hex() == row["expect"]["pGenesisBlockHex"]
    assert id_text(genesis.p_block_0_id) == row["expect"]["pGenesisBlockID"]


@pytest.mark.parametrize("name", NAMES)
def test_first_block(name: str) -> None:
    genesis = at_birth(NAMES[name])
    row = next(row for row in vectors("blocks") if row["name"] == f"X genesis block {name}")
    assert genesis.x_block_0.hex() == row["hex"]
    assert id_text(genesis.x_block_0_id) == row["expect"]["blockID"]
    assert unpack_block(genesis.x_block_0).time == genesis.x_block_0_time


@pytest.mark.parametrize("name", NAMES)
def test_known_networks(name: str) -> None:
    assert KNOWN_NETWORKS[NAMES[name]].differences(at_birth(NAMES[name])) == []


def test_another_networks_genesis_differs_from_the_known_one() -> None:
    assert "x_chain_id" in KNOWN_NETWORKS[MAINNET_ID].differences(at_birth(FUJI_ID))
    with pytest.raises(WireError, match="mainnet"):
        packaged_genesis(MAINNET_ID)


def test_evm_genesis_hashes() -> None:
    local, fuji = at_birth(LOCAL_ID), at_birth(FUJI_ID)
    assert local.c_block_0_id.hex() == "608ddbd611241719b64642d8e152537e2a5bdf46b6ddb9e8f15340c5e007b8b1"
    assert id_text(local.c_block_0_id) == "jXM4J36kLkSjgg1XgdrSPGtqAHxwok4NdcSx8j1hCmGUna9Ac"
    assert fuji.c_block_0_id.hex() == "31ced5b9beb7f8782b014660da0cb18cc409f121f408186886e1ca3e8eeca96b"
    assert (local.evm_chain_id, fuji.evm_chain_id) == (43112, 43113)


def test_recorded_network_grows_from_it() -> None:
    genesis = network_genesis(packaged_genesis(LOCAL_ID), LOCAL_ID, SCENARIO_START)
    first = {row.chain: row.container.parent_id for row in containers() if row.position == 0}
    assert first == {"X": genesis.x_block_0_id, "P": genesis.p_block_0_id, "C": genesis.c_block_0_id}


def test_start_time_moves_in_steps() -> None:
    def start(now: int) -> int:
        return network_genesis(packaged_genesis(LOCAL_ID), LOCAL_ID, now).start_time

    first, step = 1_721_016_000, 270 * DAY_S
    assert [start(now) for now in (0, first, first + step - 1, first + step, first + 3 * step + 5)] == [
        first,
        first,
        first,
        first + step,
        first + 3 * step,
    ]
    fuji = network_genesis(packaged_genesis(FUJI_ID), FUJI_ID, SCENARIO_START)
    assert fuji == at_birth(FUJI_ID)


def test_custom_network_borrows_the_local_file() -> None:
    genesis = network_genesis(packaged_genesis(4242), 4242, SCENARIO_START)
    assert genesis.network_id == 4242
    assert unpack_genesis(genesis.x_genesis)[0].asset.network_id == 4242
    assert genesis.x_chain_id != at_birth(LOCAL_ID).x_chain_id
    assert genesis.stop_vertex_id == hash256(u16(1) + genesis.x_chain_id + u64(0) + u32(0))
    local = at_birth(LOCAL_ID)
    assert local.stop_vertex_id == hash256(u16(1) + local.x_chain_id + u64(0) + u32(0))


def changed(change: Callable[[Any], object]) -> bytes:
    config = json.loads(packaged_genesis(LOCAL_ID))
    change(config)
    return json.dumps(config).encode()


def put(path: str, value: object) -> Callable[[Any], object]:
    """A change that sets one value, e.g. at `allocations.0.ethAddr`."""

    def change(config: Any) -> None:
        *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        for step in parents:
            config = config[step]
        config[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (put("networkID", "x"), "$.networkID"),
        (put("networkID", 77), "networkID must be 12345, got 77"),
        (put("networkID", -1), "networkID must be between 0 and 4294967295, got -1"),
        (lambda config: config.pop("startTime"), "startTime"),
        (put("allocations.1.initialAmount", -5), "allocations[1].initialAmount"),
        (put("allocations.1.initialAmount", 2**64 - 1), "sum of all allocations"),
        (put("allocations.1.initialAmount", 2**70), "initialAmount"),
        (put("allocations.1.initialAmount", 1.5), "$.allocations[1].initialAmount"),
        (put("allocations.0.ethAddr", "0x12"), "allocations[0].ethAddr: expected 20 bytes of hex, got 1"),
        (put("allocations.0.ethAddr", "zz"), "allocations[0].ethAddr"),
        (put("allocations.2.avaxAddr", "X-local1q"), "allocations[2].avaxAddr: invalid bech32 string length 7"),
        (put("allocations.0.unlockSchedule.0.amount", -1), "allocations[0].unlockSchedule[0].amount"),
        (put("initialStakedFunds.0", "unknown"), "initialStakedFunds[0]: no separator found in address"),
        (put("initialStakedFunds", []), "initialStakers[0] has nothing at stake"),
        (put("initialStakers.3.nodeID", "Node"), "initialStakers[3].nodeID: ID: Node is missing the prefix"),
        (put("initialStakers.3.delegationFee", 2**32), "initialStakers[3].delegationFee"),
        (put("initialStakers.3.signer.publicKey", "0x00"), "initialStakers[3].signer.publicKey"),
        (put("initialStakeDurationOffset", 31_536_000), "initialStakeDuration"),
        (put("cChainGenesis", "{"), "cChainGenesis"),
        (
            put("cChainGenesis", '{"config":{"chainId":1},"gasLimit":"0xzz","alloc":{}}'),
            "gasLimit must be a hex number",
        ),
        (
            put("cChainGenesis", '{"config":{"chainId":1},"gasLimit":"0x1","alloc":{"12":{"balance":"0x1"}}}'),
            "alloc must have 20 bytes, got 1",
        ),
        (put("message", "x" * 70_000), "65535"),
    ],
)
def test_bad_files_say_where(change: Callable[[Any], object], text: str) -> None:
    with pytest.raises(WireError) as caught:
        network_genesis(changed(change), LOCAL_ID, 0)
    assert text in str(caught.value)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b'{"networkID": 12345}'])
def test_not_a_genesis_file(raw: bytes) -> None:
    with pytest.raises(WireError, match=r"^genesis: "):
        network_genesis(raw, LOCAL_ID, 0)


def test_evm_accounts_with_code_nonce_and_storage() -> None:
    account = {"balance": "0x1", "nonce": "0x2", "code": "0x6001", "storage": {"0x" + "00" * 32: "0x05"}}
    text = json.dumps({"config": {"chainId": 9}, "gasLimit": "0x1", "alloc": {"0x" + "11" * 20: account}})
    with_storage = network_genesis(changed(put("cChainGenesis", text)), LOCAL_ID, 0)
    account["storage"] = {"0x" + "00" * 32: "0x0"}  # a zero slot is no slot
    empty = json.dumps({"config": {"chainId": 9}, "gasLimit": "0x1", "alloc": {"0x" + "11" * 20: account}})
    without = network_genesis(changed(put("cChainGenesis", empty)), LOCAL_ID, 0)
    assert with_storage.evm_chain_id == 9
    assert with_storage.c_block_0_id != without.c_block_0_id
