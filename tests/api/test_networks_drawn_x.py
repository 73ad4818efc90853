"""Lists, outputs, balances and assets of random X-Chains, whose imports are listed before their exports, or after.

ICEFALL_FUZZ_SEEDS chains are drawn, from ICEFALL_FUZZ_SEED on.
"""

import asyncio
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.networks_naive import Made, Moved, NaiveNetwork
from tests.api.networks_scene import NOW, asked, networks_app, walked
from tests.api.test_networks_x import check_tx, check_utxo
from tests.xchain.stored import Step, StoredChain, history
from tests.xchain.wallet import NOW_S

from icefall.api.networks.network import Networks
from icefall.compose.node_setup import configured_network
from icefall.compose.served_network import served_network
from icefall.compose.stores import stores_of
from icefall.config.load import load
from icefall.wire.avm.codec import genesis_txs, pack_utxo, unpack_block, unpack_genesis
from icefall.wire.ids import PLATFORM_CHAIN, id_from_text, id_text, input_id
from icefall.xchain.outputs import NewOutput, put_outputs

SEED = int(os.environ.get("ICEFALL_FUZZ_SEED", "1"))
SEEDS = int(os.environ.get("ICEFALL_FUZZ_SEEDS", "1"))
BLOCKS = 40
X = "/v1/networks/local/blockchains/x-chain"
HRP = "local"


class DrawnX(NaiveNetwork):
    """The naive reading of a drawn chain instead of a recorded one."""

    def __init__(self, network: Any, blocks: list[bytes], known: list[Made]) -> None:
        genesis = network.genesis
        self.ids = {"P": PLATFORM_CHAIN, "X": genesis.x_chain_id, "C": genesis.c_chain_id}
        self.x, self.c, self.p = id_text(genesis.x_chain_id), id_text(genesis.c_chain_id), id_text(PLATFORM_CHAIN)
        self.outputs: dict[tuple[str, int], Made] = {(one.txid, one.index): one for one in known}
        self.txs: list[Moved] = []
        self.blocks = {"P": [], "X": [], "C": []}
        spec = network.asset_chains[0]
        first = unpack_block(spec.block_0)
        self.blocks["X"].append((0, id_text(first.block_id), first.time))
        for tx in genesis_txs(unpack_genesis(spec.genesis)):
            self._x_tx(tx, 0, first.time, id_text(first.block_id))
        for raw in blocks:
            self._x_block(raw)


class Scene:
    """A drawn chain in a store, its interface and the naive reading of it."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._runner = asyncio.Runner()
        self._random = random.Random(seed)
        self._now = NOW_S
        stored = StoredChain(directory, now=lambda: self._now)
        self.store = stored.store
        config = load("node", [f"--data-dir={directory}"], {}, directory).config
        network = configured_network(config, NOW_S)
        steps = list(history(seed, BLOCKS))
        early, late, seen = self._exports(steps, network.genesis.x_chain_id)

        async def fill() -> None:
            await self.store.write(lambda tx: put_outputs(tx, early))
            for count in range(1, len(steps) + 1):
                self._now += self._random.choice((0, 0, 1, 2))
                await stored.carry_on(iter(steps[:count]))
            await self.store.write(lambda tx: put_outputs(tx, late))

        self._runner.run(fill())
        rows = self.store.read(
            "select container, inner_at, inner_size from ledger_block where height > 0 order by height"
        )
        blocks = [bytes(raw)[at : at + size] for raw, at, size in rows]
        blocks.sort(key=lambda raw: unpack_block(raw).height)
        self.naive = DrawnX(network, blocks, seen)
        self._app = networks_app(Networks(served_network(config, stores_of(config))))

    def _exports(self, steps: list[Step], x_id: bytes) -> tuple[list[NewOutput], list[NewOutput], list[Made]]:
        """What peers export, some of it listed before X imports it, some afterwards."""
        early: list[NewOutput] = []
        late: list[NewOutput] = []
        seen = []
        for peer, utxo in (one for step in steps for one in step.received):
            time, output = NOW_S - self._random.randint(0, 99), utxo.output
            utxo_id = input_id(utxo.txid, utxo.output_index)
            row = NewOutput(utxo_id, peer, x_id, pack_utxo(utxo), 7, time)
            self._random.choice((early, late)).append(row)
            owners = output.owners.addresses, output.owners.threshold, output.owners.locktime
            of = id_text(utxo.txid), utxo.output_index, id_text(utxo.asset_id), getattr(output, "amount", 0)
            seen.append(Made(*of, *owners, id_text(peer), id_text(x_id), time))
        return early, late, seen

    def get(self, target: str) -> Any:
        status, answer = self._runner.run(asked(self._app, target))
        assert status == 200, (target, answer)
        return answer

    def walked(self, target: str, key: str, size: int) -> list[Any]:
        return walked(self.get, target, key, size)

    def close(self) -> None:
        self.store.close()
        self._runner.close()


@pytest.fixture(scope="module", params=range(SEED, SEED + SEEDS))
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    found = Scene(tmp_path_factory.mktemp("drawn"), request.param)
    yield found
    found.close()


def test_transactions(scene: Scene) -> None:
    source, naive = random.Random(SEED), scene.naive
    shown, expected = scene.walked(f"{X}/transactions?", "transactions", 33), naive.of_chain("X")
    for one, moved in zip(shown, expected, strict=True):
        check_tx(one, moved, naive, HRP)
    assert scene.walked(f"{X}/transactions?sortOrder=asc&", "transactions", 40) == shown[::-1]
    owners = naive.owners()
    for _ in range(15):
        wanted = {naive.text(one, HRP) for one in source.sample(owners, source.randint(1, 3))}
        start, end = sorted(source.choice(shown)["timestamp"] for _ in range(2))
        kinds = source.sample(["BaseTx", "CreateAssetTx", "OperationTx", "ImportTx", "ExportTx"], 3)
        left = [
            one
            for one in shown
            if start <= one["timestamp"] <= end and one["txType"] in kinds and wanted & owners_of(one)
        ]
        target = f"{X}/transactions?addresses={','.join(wanted)}&startTimestamp={start}&endTimestamp={end}&"
        assert scene.walked(f"{target}txTypes={','.join(kinds)}&", "transactions", source.randint(1, 9)) == left


def owners_of(tx: dict[str, Any]) -> set[str]:
    return {one for utxo in (*tx["consumedUtxos"], *tx["emittedUtxos"]) for one in utxo["addresses"]}


def test_assets(scene: Scene) -> None:
    shown = {one["txHash"]: one for one in scene.walked(f"{X}/transactions?", "transactions", 90)}
    naive = scene.naive
    for one in naive.txs:
        if one.kind != "CreateAssetTx":
            continue
        kinds = {type(output).__name__ for state in one.tx.unsigned.initial_states for output in state.outputs}
        details = scene.get(f"{X}/assets/{one.txid}")
        is_nft = bool(kinds & {"NftMintOutput", "NftTransferOutput"}) and not kinds & {"MintOutput", "TransferOutput"}
        assert (details["type"], details["cap"]) == (
            "nft" if is_nft else "secp256k1",
            "variable" if any("Mint" in kind for kind in kinds) else "fixed",
        )
        rows = [
            shown[moved.txid]
            for moved in naive.of_chain("X")
            if moved.txid == one.txid or one.txid in {output.asset for output in (*moved.consumed, *moved.made)}
        ]
        assert scene.walked(f"{X}/assets/{one.txid}/transactions?", "transactions", 4) == rows


def test_outputs_and_balances(scene: Scene) -> None:
    naive = scene.naive
    times = sorted({time for _, _, time in naive.blocks["X"]})
    for address in naive.owners():
        base = f"{X}/utxos?addresses={naive.text(address, HRP)}&"
        rows = [one for one in naive.owned("X", address) if one.threshold == 1]
        rows.sort(key=lambda one: (one.time, input_id(id_from_text(one.txid), one.index)), reverse=True)
        every = scene.walked(f"{base}includeSpent=true&", "utxos", 21)
        for shown, made in zip(every, rows, strict=True):
            check_utxo(shown, made, naive, HRP)
        left = [one for one in every if "consumingTxHash" not in one]
        assert scene.walked(f"{base}sortOrder=asc&", "utxos", 9) == left[::-1]
        by_amount = sorted(every, key=lambda one: (int(one["asset"]["amount"]), id_from_text(one["utxoId"])))
        assert scene.walked(f"{base}includeSpent=true&sortBy=amount&sortOrder=asc&", "utxos", 10) == by_amount
        for at in (NOW, times[len(times) // 2], times[-1]):
            query = "" if at == NOW else f"&blockTimestamp={at}"
            answer = scene.get(f"{X}/balances?addresses={naive.text(address, HRP)}{query}")["balances"]
            found = {
                category: {
                    " ".join(filter(None, (one["assetId"], one.get("sharedWithChainId")))): (
                        one["amount"],
                        one["utxoCount"],
                    )
                    for one in amounts
                }
                for category, amounts in answer.items()
                if amounts
            }
            assert found == naive.balances("X", address, at), json.dumps(answer)[:500]
