"""EVM chains through the real program: `icefall index`, `up`, health and counters."""

import asyncio
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.evm.digest import digests
from tests.forked import run_program
from tests.server import Server, serving
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import LIMIT_S, until

from icefall.db.disk import StoreLock
from icefall.db.sqlite import SqliteReader
from icefall.evm.health import SILENT_S, chain_health
from icefall.evm.reading.chain import ChainReader
from icefall.evm.status import ChainStatus, decode_status
from icefall.evm.storing.store import store_path


def config_for(directory: Path, *replays: EvmReplay) -> Path:
    path = directory / "icefall.toml"
    path.write_text(
        "".join(f'[[chain]]\nid = "{one.chain_id}"\nrpc = "{one.url}"\nname = "{one.chain}"\n' for one in replays)
    )
    return path


def index(directory: Path, config: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    return run_program("index", f"--config-file={config}", f"--data-dir={directory}", *more)


def test_index_to_a_block_verify_and_continue(tmp_path: Path) -> None:
    with in_thread(EvmReplay("geth-1")) as geth, in_thread(EvmReplay("berlin-1")) as berlin:
        config = config_for(tmp_path, geth, berlin)
        first = index(tmp_path, config, "--to=60", "--log-level=off")
        assert first.returncode == 0, first.stderr
        assert "geth-1: block 60 of 60, synced" in first.stderr
        assert "\x1b" not in first.stderr, "a bar is for terminals"
        before = digests(store_path(tmp_path, str(geth.chain_id)))
        with closing(sqlite3.connect(store_path(tmp_path, str(geth.chain_id)))) as stored:
            assert stored.execute("select value from meta where name = 'holders_to'").fetchall() == [("60",)]
            assert stored.execute("select sum(holders) from holder_total").fetchone()[0] > 0

        checked = index(tmp_path, config, "--verify", "--log-level=off")
        assert checked.returncode == 0, checked.stdout
        assert "geth-1: 61 blocks compared, all as stored" in checked.stdout
        assert re.search(
            r"geth-1: \d\d+ balances, \d+ owners and \d+ names compared with state at block 60, all as stored",
            checked.stdout,
        )
        assert digests(store_path(tmp_path, str(geth.chain_id))) == before

        other = index(tmp_path, config, "--from=7", "--to=90", "--log-level=off")
        assert other.returncode == 1
        assert "this index begins with block 0, not with 7" in other.stderr
        on = index(tmp_path, config, "--to=90", "--log-level=off", "--verify-roots=false")
        assert on.returncode == 0, on.stderr


def test_verify_reports_differences(tmp_path: Path) -> None:
    with in_thread(EvmReplay("geth-1")) as geth:
        config = config_for(tmp_path, geth)
        assert index(tmp_path, config, "--to=60", "--log-level=off").returncode == 0
        damage = sqlite3.connect(store_path(tmp_path, str(geth.chain_id)))
        damage.execute("delete from erc20 where log_at = (select max(log_at) from erc20)")
        damage.commit()
        damage.close()
        checked = index(tmp_path, config, "--verify", "--log-level=off")
        assert checked.returncode == 1
        assert "ERC-20 transfers: 0 stored that are not in the block, 1 missing" in checked.stdout
        assert "1 blocks differ" in checked.stdout


def test_verify_all_compares_every_balance(tmp_path: Path) -> None:
    with in_thread(EvmReplay("geth-1")) as geth:
        config = config_for(tmp_path, geth)
        assert index(tmp_path, config, "--to=60", "--log-level=off").returncode == 0
        sampled = index(tmp_path, config, "--verify", "--to=50", "--log-level=off")
        assert (sampled.returncode, "compared with state at block 50" in sampled.stdout) == (0, True), sampled.stdout
        path = store_path(tmp_path, str(geth.chain_id))
        with closing(sqlite3.connect(path)) as damage:
            trusted = "select token from token_trust where not is_untrusted"
            damage.execute(f"update erc20_balance_recent set balance = x'0105' where token in ({trusted})")
            damage.commit()
        everything = index(tmp_path, config, "--verify-all", "--log-level=off")
        assert everything.returncode == 1
        assert "geth-1: 61 blocks compared, all as stored" in everything.stdout
        assert re.search(
            r"geth-1: block 60: token 0x\w+, holder 0x\w+: balance \d+ stored, \d+ in state", everything.stdout
        )


@pytest.mark.parametrize("flag", ["--verify", "--verify-all"])
def test_nothing_compared_is_a_failure(flag: str, tmp_path: Path) -> None:
    with in_thread(EvmReplay("geth-1")) as geth:
        config = config_for(tmp_path, geth)
        assert index(tmp_path, config, "--to=20", "--log-level=off").returncode == 0
        checked = index(tmp_path, config, flag, "--from=21", "--log-level=off")
        assert checked.returncode == 1
        assert "geth-1: 0 blocks compared, nothing is verified" in checked.stdout


@pytest.mark.parametrize(("of_chain", "of_all", "is_stored"), [("false", "true", True), ("true", "false", False)])
def test_roots_are_verified_as_set_for_the_chain(of_chain: str, of_all: str, is_stored: bool, tmp_path: Path) -> None:
    with in_thread(EvmReplay("geth-1")) as geth:

        def other_status(raw: bytes) -> bytes:
            return raw.replace(b'"status":"0x1"', b'"status":"0x0"', 1)

        geth.evm_faults = [EvmFault("eth_getBlockReceipts", number=40, times=10**6, change=other_status)]
        config = config_for(tmp_path, geth)
        config.write_text(config.read_text() + f"verify_roots = {of_chain}\n")
        arguments = [f"--config-file={config}", f"--data-dir={tmp_path}", f"--verify-roots={of_all}", "--to=60"]
        command = [sys.executable, "-m", "icefall.cli", "index", *arguments, "--log-level=off"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
            assert program.stderr is not None
            shown = ""
            while not is_stored and "verify_roots = false" not in shown:
                shown = program.stderr.readline()
                assert shown, "it ended"
            assert is_stored or re.search(r"block 39 of 60 .* block 40 \(0x\w+\): .* receiptsRoot", shown)
            geth.evm_faults = geth.evm_faults if is_stored else []
            assert "block 60 of 60, synced" in program.communicate(timeout=LIMIT_S)[1]
            assert program.returncode == 0


def test_an_upstream_of_another_chain_is_waited_for(tmp_path: Path) -> None:
    with in_thread(EvmReplay("geth-1")) as geth:
        config = config_for(tmp_path, geth)
        config.write_text(config.read_text().replace(f'"{geth.chain_id}"', '"99"'))
        arguments = [f"--config-file={config}", f"--data-dir={tmp_path}", "--to=60", "--log-level=off"]
        command = [sys.executable, "-m", "icefall.cli", "index", *arguments]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
            assert program.stderr is not None
            shown = ""
            while f"serves chain {geth.chain_id}, not 99" not in shown:
                shown = program.stderr.readline()
                assert shown, "it ended"
            geth.chain_id = 99
            assert "block 60 of 60, synced" in program.communicate(timeout=LIMIT_S)[1]
            assert program.returncode == 0


def test_a_reorganisation_is_accepted_by_command(tmp_path: Path) -> None:
    """A lower head: nothing is rolled back for it alone."""
    with in_thread(EvmReplay("geth-1")) as geth:
        config = config_for(tmp_path, geth)
        assert index(tmp_path, config, "--to=40", "--log-level=off").returncode == 0
        geth.shown = 30
        accept = f"--accept-reorg={geth.chain_id}"
        lock = StoreLock(store_path(tmp_path, str(geth.chain_id)).with_suffix(".lock"))
        refused = index(tmp_path, config, accept, "--log-level=off")
        lock.release()
        assert refused.returncode == 1
        assert "is in use by process" in refused.stderr
        accepted = index(tmp_path, config, accept, "--log-level=off")
        assert accepted.returncode == 0, accepted.stderr
        assert "geth-1: rolled back from block 40 to 30" in accepted.stdout
        again = index(tmp_path, config, accept, "--log-level=off")
        assert "block 30 is part of the upstream's chain: nothing to roll back" in again.stdout
        unknown = index(tmp_path, config, "--accept-reorg=7", "--log-level=off")
        assert (unknown.returncode, "no [[chain]] has the id 7" in unknown.stderr) == (1, True)


def test_refolding_by_command(tmp_path: Path) -> None:
    """A recording cannot answer proofs: no token has a layout."""
    with in_thread(EvmReplay("geth-1")) as geth:
        config, refold = config_for(tmp_path, geth), f"--refold={geth.chain_id}"
        missing = index(tmp_path, config, refold, "--log-level=off")
        assert (missing.returncode, "nothing to refold" in missing.stderr) == (1, True)
        assert index(tmp_path, config, "--to=40", "--log-level=off").returncode == 0
        done = index(tmp_path, config, refold, "--log-level=off")
        assert done.returncode == 0, done.stderr
        assert "geth-1: the balances of 0 tokens are those of their storage, 0 were corrected" in done.stdout
        unknown = index(tmp_path, config, "--refold=7", "--log-level=off")
        assert (unknown.returncode, "no [[chain]] has the id 7" in unknown.stderr) == (1, True)


def test_up_indexes_next_to_the_node(tmp_path: Path) -> None:
    with in_thread(EvmReplay("geth-1")) as geth:
        config = config_for(tmp_path, geth)
        check = f"chain-{geth.chain_id}"
        settings = ["--no-demo", f"--config-file={config}", "--health-check-frequency=1s"]
        with serving("up", tmp_path / "data", *settings) as server:
            result = _until_synced(server, check)
            assert result["message"]["lastIndexedBlock"] == geth.head
            counters = server.ask("GET", "/ext/metrics").body.decode()
            assert f'icefall_chain_synced{{chain="{geth.chain_id}"}} 1' in counters
            assert f'icefall_chain_blocks_total{{chain="{geth.chain_id}"}} {geth.head + 1}' in counters
            assert server.ask("GET", "/ext/metrics", listener="data").status == 200
            assert _chain_status(server, geth) == "OK"

            geth.evm_faults = [EvmFault(times=10**6, status=500)]
            chain = ChainReader(SqliteReader(store_path(server.data_dir, str(geth.chain_id))))
            until(lambda: _outage(chain) > 3, "an outage in the indexer's status")
            later = asyncio.run(chain_health(chain, _status(chain).upstream_seen_at + SILENT_S + 2))
            assert "its upstream has not answered for" in later.problem  # without the wait for it
            geth.evm_faults = []
            _until_synced(server, check)
            until(lambda: _chain_status(server, geth) == "OK", "a status with a usable upstream")


def _status(chain: ChainReader) -> ChainStatus:
    return decode_status(asyncio.run(chain.meta("status")) or "")


def _outage(chain: ChainReader) -> float:
    """How many seconds before its newest status the indexer had its last answer."""
    status = _status(chain)
    return status.at - status.upstream_seen_at if status.unusable_since else 0.0


def _chain_status(server: Server, replay: EvmReplay) -> str:
    return str(server.ask("GET", f"/v1/chains/{replay.chain_id}", listener="data").json()["status"])


def _check(server: Server, name: str) -> dict[str, Any]:
    result: dict[str, Any] = server.ask("GET", "/ext/health").json()["checks"][name]
    return result


def _until_synced(server: Server, check: str) -> dict[str, Any]:
    deadline = time.monotonic() + LIMIT_S
    while True:
        result = _check(server, check)
        if (result.get("message") or {}).get("synced") and "error" not in result:
            return result
        assert time.monotonic() < deadline, result
        time.sleep(0.2)


def test_a_killed_indexer_leaves_no_process_behind(tmp_path: Path) -> None:
    with in_thread(EvmReplay("anvil-1")) as replay:
        config = config_for(tmp_path, replay)
        command = [sys.executable, "-m", "icefall.cli", "index", f"--config-file={config}", f"--data-dir={tmp_path}"]
        program = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            children = _until_any(lambda: _children(program.pid))
            _until_any(lambda: store_path(tmp_path, "31337").exists())
            _until_any(lambda: _blocks(store_path(tmp_path, "31337")))  # more are being decoded
        finally:
            program.kill()
            program.wait()
        _until_any(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))


def _blocks(path: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
            return int(store.execute("select count(*) from block").fetchone()[0])
    except sqlite3.OperationalError:  # not migrated yet
        return 0


def _children(pid: int) -> list[int]:
    """The decoder processes; multiprocessing's resource tracker ends by itself."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def _until_any(look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + LIMIT_S
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found
