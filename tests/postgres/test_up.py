"""`icefall up` with every store on a server: nothing is in files, and the three interfaces answer as with files."""

from pathlib import Path
from typing import Any

from tests.postgres.server import new_prefix, server_url
from tests.server import serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until

CHAIN = "berlin-1"


def test_everything_is_on_the_server(tmp_path: Path) -> None:
    with in_thread(EvmReplay(CHAIN)) as replay:
        config = tmp_path / "other.toml"
        config.write_text(
            f'store-prefix = "{new_prefix()}"\n[[chain]]\nid = "{replay.chain_id}"\nrpc = "{replay.url}"\n'
        )
        settings = (f"--config-file={config}", "--no-nft-metadata", "--no-demo")
        with serving("up", tmp_path, *settings, environment={"ICEFALL_STORE": server_url()}) as server:
            blocks = f"/v1/chains/{replay.chain_id}/blocks?pageSize=1"

            def newest() -> int:
                found = server.ask("GET", blocks, listener="data").json()
                return int(found["blocks"][0]["blockNumber"]) if found.get("blocks") else -1

            until(lambda: newest() == replay.head, "the chain is indexed")

            details: dict[str, Any] = {}

            def are_shown() -> bool:
                """A check that fails for a moment has none."""
                checks = server.ask("GET", "/ext/health").json()["checks"]
                details.update(checks.get(f"chain-{replay.chain_id}", {}).get("message") or {})
                return "store" in details

            until(are_shown, "health says where the chain is")
            assert details["store"] == server_url().partition("@")[2]
            assert details["storeBytes"] > 100_000
            metric = f"/v2/chains/{replay.chain_id}/metrics/txCount?timeInterval=day"
            assert server.ask("GET", metric, listener="metrics").json()["results"]
            assert server.call("/ext/bc/X", "avm.getHeight")["result"]["height"] == "0"
    assert not list(tmp_path.rglob("*.sqlite"))
