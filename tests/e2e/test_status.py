"""`icefall status` of a running instance and of one that has stopped."""

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

from tests.forked import ForkedProgram, run_program
from tests.server import serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until

from icefall.commands.status import status as operate_status
from icefall.compose.process_file import running_programs
from icefall.compose.stores import Stores
from icefall.config.load import load
from icefall.evm.status import ChainStatus, UpstreamStatus, encode_status
from icefall.evm.storing.store import ChainStore


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
            where = rf"block {replay.head:,}, [\d,]+ d \d+ h old, 0 behind the head, synced"
            assert re.search(rf"chain {replay.chain_id} \(berlin\): {where}", screen)
            assert f"upstream {replay.url}: usable" in screen
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


def chain_with(upstream_seen_at: float, at: float, **fields: Any) -> ChainStatus:
    upstreams = (UpstreamStatus("http://node", "usable"), UpstreamStatus("http://other", "backing off", "it failed"))
    return ChainStatus(at, True, upstream_seen_at=upstream_seen_at, head=9, upstreams=upstreams, **fields)


def shown_chain(folder: Path, stored: ChainStatus) -> list[str]:
    """The lines of `icefall status` of a chain of which nothing but this is stored."""
    store = ChainStore(Stores(folder).chain_store("7"))
    asyncio.run(store.put_meta({"status": encode_status(stored)}))
    store.close()
    screen = operate_status(load("status", (f"--data-dir={folder}",), {}, folder).config, as_json=False)
    return screen.partition("chain 7: ")[2].partition("\n\n")[0].splitlines()


def test_an_upstream_that_has_stopped_answering_is_not_called_usable(tmp_path: Path) -> None:
    now = time.time()
    assert "  upstream http://node: usable" in shown_chain(tmp_path, chain_with(now, now))
    silent = shown_chain(tmp_path, chain_with(now - 100, now))
    assert [line[:37] for line in silent if "http://node" in line] == ["  upstream http://node: no answer for"]
    assert "  upstream http://other: backing off: it failed" in silent
    ended = shown_chain(tmp_path, chain_with(now - 100, now - 100, blocks_per_s=3.0))
    assert "  upstream http://node: not known: no indexer asks it" in ended
    assert "  upstream http://other: not known: no indexer asks it" in ended
    assert "blocks/s" not in ended[0]


def test_a_problem_that_is_over_is_not_shown(tmp_path: Path) -> None:
    now = time.time()
    over = shown_chain(tmp_path, chain_with(now, now, last_problem="it rained", last_problem_at=now - 60))
    assert [line for line in over if "it rained" in line] == []
    lasting = shown_chain(tmp_path, chain_with(now, now, problem="it rains"))
    assert "  problem: indexing paused, retrying: it rains" in lasting


def test_a_running_index_is_found(tmp_path: Path) -> None:
    data, output = tmp_path / "data", tmp_path / "output"
    config = tmp_path / "icefall.toml"
    config.write_text('[[chain]]\nid = "7"\nrpc = ["http://127.0.0.1:1"]\n')
    data.mkdir()
    (data / "process-index-999999999.json").write_text('{"pid": 999999999, "verb": "index"}')  # of one that was killed
    program = ForkedProgram("index", f"--data-dir={data}", f"--config-file={config}", output=output)
    try:
        until(lambda: bool(running_programs(data)), "its process file")
        screen = run_program("status", f"--data-dir={data}").stdout
        assert f"process {program.pid}: icefall index\n" in screen
        assert [path.name for path in data.glob("process*")] == [f"process-index-{program.pid}.json"]
    finally:
        program.terminate()
        program.wait()
    assert list(data.glob("process*")) == []
    assert "no program runs on it" in run_program("status", f"--data-dir={data}").stdout
