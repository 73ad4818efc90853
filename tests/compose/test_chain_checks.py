"""The health checks of indexed EVM chains: their message, and whose filtered answer they are part of."""

from pathlib import Path
from typing import Any

from tests.e2e.test_indexing import config_for
from tests.server import Server, serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until

from icefall.wire.ids import id_text

SUBNET, BLOCKCHAIN, OTHER = (id_text(bytes([number]) * 32) for number in (1, 2, 3))


def checks(server: Server, *tags: str) -> tuple[int, dict[str, Any]]:
    reply = server.ask("GET", "/ext/health" + "".join(f"{'&' if at else '?'}tag={tag}" for at, tag in enumerate(tags)))
    return reply.status, reply.json()["checks"]


def test_a_filtered_answer_has_the_chains_of_its_subnet_only(tmp_path: Path) -> None:
    """Chain 99 fails, for its upstream serves another; the other chain has no subnet."""
    with in_thread(EvmReplay("geth-1")) as geth, in_thread(EvmReplay("berlin-1")) as berlin:
        config = config_for(tmp_path, geth, berlin)
        wrong = f'id = "99"\nsubnet_id = "{SUBNET}"\nblockchain_id = "{BLOCKCHAIN}"'
        config.write_text(config.read_text().replace(f'id = "{geth.chain_id}"', wrong))
        with serving(
            "up", tmp_path, f"--config-file={config}", "--no-demo", "--health-check-frequency=200ms"
        ) as server:
            other = f"chain-{berlin.chain_id}"

            def is_settled() -> bool:
                _, shown = checks(server)
                return "error" in shown["chain-99"] and bool(shown[other].get("message", {}).get("synced"))

            until(is_settled, "one chain that fails and one that is followed")
            status, shown = checks(server)
            assert (status, {"chain-99", other} <= shown.keys()) == (503, True)
            message = shown[other]["message"]
            assert message["engine"]["vm"] is None
            consensus = message["engine"]["consensus"]
            assert consensus["lastAcceptedHeight"] == message["lastIndexedBlock"] == berlin.head
            assert consensus["lastAcceptedID"].startswith("0x")
            assert (consensus["processingBlocks"], consensus["longestProcessingBlock"]) == (0, "0s")
            assert message["networking"] == {"percentConnected": 1}

            for tag in (SUBNET, BLOCKCHAIN):
                status, shown = checks(server, tag)
                assert (status, "chain-99" in shown, other in shown, "database" in shown) == (503, True, False, True)
            for tags in ((OTHER,), ("",), ("", OTHER)):
                status, shown = checks(server, *tags)
                assert (status, "chain-99" in shown, other in shown, "database" in shown) == (200, False, False, True)
            assert checks(server, "all", OTHER)[0] == 503
