"""`icefall status` of a running instance and of one that has stopped."""

import json
from pathlib import Path
from typing import Any

from tests.forked import run_program
from tests.server import serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until

from icefall.commands.status import status as operate_status
from icefall.config.load import load


def test_status(tmp_path: Path) -> None:
    config = tmp_path / "icefall.toml"
    data = f"--data-dir={tmp_path / 'data'}"
    settings = (data, f"--config-file={config}")

    def status() -> Any:
        done = run_program("status", "--json", *settings)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    with in_thread(EvmReplay("berlin-1")) as replay:
        config.write_text(
            f'[[chain]]\nid = "{replay.chain_id}"\nname = "berlin"\nrpc = ["{replay.url}", "http://127.0.0.1:1"]\n'
            '[[chain]]\nid = "777"\nrpc = ["http://127.0.0.1:1"]\n'
        )
        with serving("up", tmp_path, f"--config-file={config}") as server:
            key = run_program("keys", "add", "--name=wallet", "--tier=pro", *settings).stdout.split()[0]
            for _ in range(2):
                reply = server.ask("GET", "/v1/chains", headers={"x-service-api-key": key}, listener="data")
                assert reply.status == 200

            def is_complete() -> bool:
                """In this process: each start of the program takes time from the indexer that is waited for."""
                found = json.loads(operate_status(load("status", settings, {}, tmp_path).config, as_json=True))
                return bool(found["chains"][0]["synced"]) and found["keys"][0]["calls"] == 2 and any(found["health"])

            until(is_complete, "a synced chain and counted calls")
            found = status()
            assert [one["pid"] for one in found["programs"]] == [server.process.pid]
            assert found["programs"][0]["urls"]["data"] == server.url("data")
            berlin, other = found["chains"]
            assert (berlin["id"], berlin["name"], berlin["lag"], berlin["problem"]) == (
                str(replay.chain_id),
                "berlin",
                0,
                "",
            )
            assert berlin["block"] == berlin["head"] == replay.head
            assert berlin["upstreams"][replay.url] == ""
            assert berlin["upstreams"]["http://127.0.0.1:1"].startswith("backing off: ")
            assert other["problem"]
            assert found["keys"] == [{"name": "wallet", "tier": "pro", "calls": 2, "units": 2}]
            sizes = {one["path"]: one["bytes"] for one in found["stores"]}
            assert sizes[f"chains/{replay.chain_id}.sqlite"] > 10_000
            without_config = json.loads(run_program("status", "--json", data).stdout)  # as for the demo's chains
            assert (str(replay.chain_id), "berlin") in [(one["id"], one["name"]) for one in without_config["chains"]]
            screen = run_program("status", *settings).stdout
            assert f"chain {replay.chain_id} (berlin): block {replay.head:,}, 0 behind the head, synced" in screen
            assert "wallet" in screen
            assert f"data {server.url('data')}" in screen
        log = tmp_path / "data" / "logs" / "main.log"
        line = {
            "time": "2030-01-01T00:00:00",
            "level": "ERROR",
            "logger": "main",
            "message": "it broke",
            "error": "why",
        }
        log.write_text(log.read_text() + json.dumps(line | {"error": "why"}) + "\n" + "no json\n")
        stopped = run_program("status", *settings).stdout
    assert "no program runs on it" in stopped
    assert "2030-01-01T00:00:00 main: it broke: why" in stopped


def test_without_a_data_directory(tmp_path: Path) -> None:
    done = run_program("status", f"--data-dir={tmp_path / 'nothing'}")
    assert (done.returncode, "there is no data directory" in done.stderr) == (1, True)
    assert run_program("status", f"--data-dir={tmp_path}").returncode == 0
