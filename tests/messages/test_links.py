"""Which blockchain a chain is: from the chain itself, the P-Chain, or the setting, in that order of proof; and messages
whose other side becomes known later are linked."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from tests.api.networks_scene import network_scene
from tests.e2e.test_indexing import config_for
from tests.evm.indexed import Log
from tests.forked import run_program
from tests.messages.logs import naive
from tests.messages.test_random_histories import ELSEWHERE, IDS, UNKNOWING, World
from tests.server import serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until

from icefall.api.data.handlers import messages
from icefall.api.data.schema.messages import MessageParams
from icefall.api.dialect import INTERFACE
from icefall.compose.stored_platform import StoredPlatform
from icefall.compose.stores import Stores
from icefall.demo.chains import CHAINS
from icefall.errors import NotFound
from icefall.evm.indexing.linking import BlockchainLink, ChainLinking, linked
from icefall.evm.reading import directory
from icefall.evm.reading.directory import ChainDirectory
from icefall.evm.storing.store import ChainStore
from icefall.wire.ids import id_from_text, id_text

A, B, C = (bytes([number]) * 32 for number in (1, 2, 3))
NONE = b""
C_CHAIN = "2owdGqyG6FFzTHy5qhenDXQcEghvr571KZE3gSfRJERSJinuwC"  # of the local network


@pytest.mark.parametrize(
    ("reported", "created", "configured", "link", "proof", "words"),
    [
        (NONE, [], NONE, NONE, "", ""),
        (NONE, [], A, A, "setting", ""),
        (NONE, [A], NONE, A, "platform", ""),
        (NONE, [A], A, A, "platform", ""),
        (NONE, [A], B, A, "platform", f"blockchain_id is {id_text(B)} in the settings, but the P-Chain"),
        (NONE, [A, B], B, B, "platform", ""),
        (NONE, [A, B], NONE, NONE, "", "set blockchain_id to the right one"),
        (NONE, [A, B], C, C, "setting", "set blockchain_id to the right one"),
        (A, [], NONE, A, "chain", ""),
        (A, [B, A], A, A, "chain", ""),
        (A, [B], NONE, A, "chain", f"but the P-Chain has created chain 7 as {id_text(B)}"),
        (A, [A], B, A, "chain", f"but blockchain_id is {id_text(B)} in the settings"),
    ],
)
def test_the_best_proof_counts_and_contradictions_are_shown(
    reported: bytes, created: list[bytes], configured: bytes, link: bytes, proof: str, words: str
) -> None:
    found = linked("7", reported, created, configured)
    assert found[:2] == (link, proof)
    assert (words in found.warning, bool(found.warning)) == (True, bool(words))


def test_what_is_proven_stays_while_its_proof_is_silent(tmp_path: Path) -> None:
    async def run(store: ChainStore) -> None:
        created: list[bytes] = []

        async def read() -> Sequence[bytes]:
            return created

        def stored() -> tuple[str | None, str | None]:
            return store.meta("blockchain_id"), store.meta("blockchain_id_proof")

        def linking(configured: bytes) -> ChainLinking:
            return ChainLinking(store, "7", configured, read, log)  # type: ignore[arg-type]

        log = Log()
        await store.put_meta({"blockchain_id": id_text(C)})  # by an earlier release
        assert await linking(NONE).update(None) == C
        assert stored() == (id_text(C), None)
        assert await linking(A).update(NONE) == A
        assert stored() == (id_text(A), "setting")
        assert await linking(NONE).update(NONE) == NONE  # the setting was removed
        assert stored() == ("", "")
        created = [B]
        first = linking(A)
        assert await first.update(NONE) == B
        assert stored() == (id_text(B), "platform")
        assert "correct icefall.toml" in first.warning
        for _ in range(2):
            await first.update(NONE)
        assert len(log.lines) == 1  # the warning is written once
        created = []
        again = linking(A)
        assert await again.update(NONE) == B
        assert "correct icefall.toml" in again.warning
        assert await linking(A).update(A) == A
        assert stored() == (id_text(A), "chain")
        created = [B]
        last = linking(NONE)
        assert await last.update(None) == A
        assert f"as {id_text(B)}" in last.warning
        assert stored() == (id_text(A), "chain")

    (tmp_path / "chains").mkdir()
    with closing(Stores(tmp_path)) as stores, closing(ChainStore(stores.chain_store("7"))) as store:
        asyncio.run(run(store))


def test_two_chains_that_claim_one_id_are_both_asked_for_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list says of a message what the message says by itself."""
    monkeypatch.setattr(directory, "LINK_CHECK_S", 0.0)

    async def run(stores: Stores) -> None:
        world = World(stores, 4)
        try:
            for _ in range(30):
                await world.step()
            second = id_text(list(IDS)[1])
            await world.stores[UNKNOWING].put_meta({"blockchain_id": second})
            listed = await world.walked(1, destination_blockchain_id=second, source_blockchain_id="7000")
            assert {"pending", "delivered"} <= {one["status"] for one in listed}
            for shown in listed:
                params = MessageParams(message_id=bytes.fromhex(shown["messageId"]))
                assert msgspec.to_builtins(await messages.get_icm(params, world.directory, INTERFACE)) == shown
        finally:
            world.close()

    (tmp_path / "chains").mkdir()
    with closing(Stores(tmp_path)) as stores:
        asyncio.run(run(stores))


class Created:
    """What a P-Chain has created."""

    def __init__(self, chains: dict[bytes, int]) -> None:
        self._chains = chains

    async def blockchain_ids(self, evm_chain_id: int) -> list[bytes]:
        return [one for one, number in self._chains.items() if number == evm_chain_id]

    async def evm_chain_ids(self, chain_ids: Sequence[bytes]) -> dict[bytes, str]:
        return {one: str(self._chains[one]) for one in chain_ids if one in self._chains}


def test_messages_are_linked_when_the_other_chain_becomes_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the third chain learns its ID, then the P-Chain names the chain that is not indexed."""
    monkeypatch.setattr(directory, "LINK_CHECK_S", 0.0)

    async def run(stores: Stores) -> None:
        world = World(stores, 4)
        try:
            for _ in range(30):
                await world.step()
            await world.check()
            third = next(one for one, chain in IDS.items() if chain == UNKNOWING)
            await world.stores[UNKNOWING].put_meta({"blockchain_id": id_text(third)})
            linked_now = naive(world.samples, world.emitted, IDS)
            assert linked_now != world.expected()
            assert await world.walked(4) == linked_now
            world.directory = ChainDirectory(world.chains, platform=Created({ELSEWHERE: 99, third: 5}))
            everywhere = naive(world.samples, world.emitted, {**IDS, ELSEWHERE: "99"})
            assert everywhere != linked_now
            assert await world.walked(4) == everywhere
            from_elsewhere = [one for one in everywhere if one["sourceEvmChainId"] == "99"]
            assert await world.walked(4, source_blockchain_id="99") == from_elsewhere != []
            for name in ("98", "5" * 30):
                with pytest.raises(NotFound):
                    await world.walked(4, source_blockchain_id=name)
            # Anyone can create a blockchain that calls itself 7000, which is another.
            world.directory = ChainDirectory(world.chains, platform=Created({ELSEWHERE: 7000}))
            assert await world.walked(4) == linked_now
            twice = Created({ELSEWHERE: 99, A: 99})
            world.directory = ChainDirectory(world.chains, platform=twice)
            with pytest.raises(NotFound):
                await world.walked(4, source_blockchain_id="99")
        finally:
            world.close()

    (tmp_path / "chains").mkdir()
    with closing(Stores(tmp_path)) as stores:
        asyncio.run(run(stores))


def test_the_p_chain_names_its_evm_chains(tmp_path: Path) -> None:
    with network_scene("p-forks-1", tmp_path) as scene, closing(Stores(tmp_path)) as stores:
        listed = scene.result("/blockchains?pageSize=100")["blockchains"]
        by_id = {one["blockchainId"]: one["evmChainId"] for one in listed}
        c_chain = id_text(scene.network.c_chain_id)
        own = by_id[c_chain]
        platform = StoredPlatform(stores)

        async def read() -> None:
            assert c_chain in map(id_text, await platform.blockchain_ids(own))
            for number in set(by_id.values()) - {0}:
                created = sorted(one for one, its in by_id.items() if its == number)
                assert sorted(map(id_text, await platform.blockchain_ids(number))) == created
            assert await platform.blockchain_ids(1) == []
            wanted = [*map(id_from_text, by_id), A]
            found = {id_text(one): number for one, number in (await platform.evm_chain_ids(wanted)).items()}
            assert found == {one: str(number) for one, number in by_id.items() if number}
            assert await platform.evm_chain_ids([]) == {}

        scene.run(read())
        platform.close()


def test_without_a_node_nothing_is_known(tmp_path: Path) -> None:
    async def read() -> None:
        with closing(Stores(tmp_path)) as stores:
            platform = StoredPlatform(stores)
            assert (await platform.blockchain_ids(43112), await platform.evm_chain_ids([A])) == ((), {})
            platform.close()

    asyncio.run(read())


def test_up_takes_the_id_from_its_p_chain_and_warns_of_a_wrong_setting(tmp_path: Path) -> None:
    with in_thread(EvmReplay("cchain-1")) as replay:
        config = config_for(tmp_path, replay)
        config.write_text(config.read_text() + f'blockchain_id = "{id_text(A)}"\n')
        settings = (f"--config-file={config}", "--no-demo", "--no-nft-metadata")
        with serving("up", tmp_path, *settings, "--health-check-frequency=200ms") as server:

            def shown() -> str:
                chain = server.ask("GET", f"/v1/chains/{replay.chain_id}", listener="data").json()
                return str(chain.get("platformChainId"))

            until(lambda: shown() == C_CHAIN, "the ID of the P-Chain")
            until(lambda: "  warning: blockchain_id is " in status(server.data_dir, config), "the warning")
            check = f"chain-{replay.chain_id}"

            def warned() -> bool:
                answer = server.ask("GET", "/ext/health").json()["checks"][check]
                return "correct icefall.toml" in (answer.get("message") or {}).get("warning", "")

            until(warned, "the warning among the details of health")
            assert server.ask("GET", f"/v1/chains/{C_CHAIN}", listener="data").json()["chainId"] == "43112"


def status(folder: Path, config: Path) -> str:
    return run_program("status", f"--config-file={config}", f"--data-dir={folder}").stdout


def test_the_demo_contradicts_nothing() -> None:
    assert linked("43112", NONE, [id_from_text(C_CHAIN)], id_from_text(demo_id())) == BlockchainLink(
        id_from_text(C_CHAIN), "platform"
    )


def demo_id() -> str:
    return next(str(one.table["blockchain_id"]) for one in CHAINS if one.table["id"] == "43112")
