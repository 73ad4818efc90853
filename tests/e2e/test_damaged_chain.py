"""A chain whose store is damaged is set aside; everything else goes on, and the chain too once the file is gone."""

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_indexing import config_for, index
from tests.server import Server, serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until

from icefall.evm.storing.store import store_path

GARBAGE = b"not a store at all. " * 500


def check(server: Server, replay: EvmReplay) -> dict[str, Any]:
    result: dict[str, Any] = server.ask("GET", "/ext/health").json()["checks"][f"chain-{replay.chain_id}"]
    return result


def status(server: Server, replay: EvmReplay) -> str:
    return str(server.ask("GET", f"/v1/chains/{replay.chain_id}", listener="data").json()["status"])


def test_up_goes_on_without_it(tmp_path: Path) -> None:
    with in_thread(EvmReplay("geth-1")) as good, in_thread(EvmReplay("berlin-1")) as bad:
        store = store_path(tmp_path / "data", str(bad.chain_id))
        store.parent.mkdir(parents=True)
        store.write_bytes(GARBAGE)
        config = config_for(tmp_path, bad, good)
        with serving("up", tmp_path, f"--config-file={config}", "--health-check-frequency=1s") as server:
            until(lambda: status(server, good) == "OK", "the other chain")
            until(lambda: str(store) in check(server, bad).get("error", ""), "a message that names the file")
            assert "move it away" in check(server, bad)["error"]
            assert status(server, bad) == "UNAVAILABLE"
            blocks = server.ask("GET", f"/v1/chains/{bad.chain_id}/blocks", listener="data")
            assert blocks.status == 503
            assert server.output().count("the chain is set aside") == 1
            assert "ended" not in server.output()
            assert store.read_bytes() == GARBAGE
            store.rename(store.with_suffix(".damaged"))
            until(lambda: status(server, bad) == "OK", "the chain, indexed anew")


def test_damage_after_the_header(tmp_path: Path) -> None:
    with in_thread(EvmReplay("geth-1")) as good, in_thread(EvmReplay("berlin-1")) as bad:
        config = config_for(tmp_path, bad, good)
        assert index(tmp_path, config, "--to=60", "--log-level=off").returncode == 0
        store = store_path(tmp_path, str(bad.chain_id))
        content = store.read_bytes()
        store.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
        ended = index(tmp_path, config, "--to=70", "--log-level=off")
        assert ended.returncode == 1
        assert f"{store} cannot be used: database disk image is malformed" in ended.stderr
        assert "geth-1: block 70 of 70, synced" in ended.stderr


@pytest.mark.parametrize("content", [GARBAGE, b"\0" * 8192])
def test_nothing_else_to_index(tmp_path: Path, content: bytes) -> None:
    with in_thread(EvmReplay("geth-1")) as bad:
        store = store_path(tmp_path, str(bad.chain_id))
        store.parent.mkdir(parents=True)
        store.write_bytes(content)
        ended = index(tmp_path, config_for(tmp_path, bad), "--to=60", "--log-level=off")
        assert ended.returncode == 1
        assert "Traceback" not in ended.stderr
        assert str(store) in ended.stderr
