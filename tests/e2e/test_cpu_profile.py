"""A CPU profile of the whole program: every process is in it, and one that is killed meanwhile does no harm."""

import gzip
import os
import signal
from pathlib import Path

from tests.e2e.test_indexing import config_for
from tests.server import Server, serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until

from icefall.observe.cpu_samples import samples_directory
from icefall.observe.program import ProgramProcess, program_processes

ADMIN = "/ext/admin"
ROLES = {"supervisor", "engine", "indexer", "decoder", "node", "data", "metrics"}


def processes(server: Server) -> list[ProgramProcess]:
    return program_processes(server.process.pid)


def sampling(server: Server) -> set[int]:
    directory = samples_directory(server.data_dir / "run", server.process.pid)
    return {int(path.name.split(".")[1]) for path in directory.glob("*.running")}


def roles_sampling(server: Server) -> set[str]:
    found = sampling(server)
    return {one.role for one in processes(server) if one.pid in found}


def call(server: Server, method: str) -> None:
    assert server.call(ADMIN, method)["result"] == {}


def cpu_ticks(pid: int) -> int:
    """The CPU time that a process has used, in ticks of the clock."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return int(user) + int(system)


def test_a_profile_of_all_processes(tmp_path: Path) -> None:
    with in_thread(EvmReplay("geth-1")) as geth:
        config = config_for(tmp_path, geth)
        settings = (f"--config-file={config}", "--no-demo", "--api-admin-enabled=true")
        with serving("up", tmp_path, *settings) as server:
            until(lambda: {one.role for one in processes(server)} >= ROLES, "all processes")
            call(server, "admin.startCPUProfiler")
            until(lambda: roles_sampling(server) >= ROLES, "samples of all of them")
            worker = next(one.pid for one in processes(server) if one.role == "metrics")
            os.kill(worker, signal.SIGKILL)
            until(
                lambda: any(
                    one.role == "metrics" and one.pid != worker and one.pid in sampling(server)
                    for one in processes(server)
                ),
                "its successor, which takes part too",
            )
            node = next(one.pid for one in processes(server) if one.role == "node")
            enough = cpu_ticks(node) + 30  # a sample is taken every tick or so
            while cpu_ticks(node) < enough:
                assert server.ask("GET", "/ext/health/liveness").status == 200
            sampled = {f"{one.role} {one.pid}" for one in processes(server) if one.pid in sampling(server)}
            call(server, "admin.stopCPUProfiler")
            profile = gzip.decompress((server.data_dir / "profiles" / "cpu.profile").read_bytes()).decode(
                errors="replace"
            )
            shown = profile[profile.index("processes: ") :]
            assert [name for name in sampled if name not in shown] == []
            assert f"metrics {worker}" not in shown
            assert profile.count(f"node {node}") >= 2, "in the list, and as the root of a stack"
            assert not samples_directory(server.data_dir / "run", server.process.pid).exists()
