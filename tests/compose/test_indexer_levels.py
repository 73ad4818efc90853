"""The levels of the indexer's loggers: listed and set by the admin interface, and obeyed by the indexer."""

import os
import signal
from pathlib import Path

from tests.e2e.test_indexing import config_for
from tests.server import Server, serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until

from icefall.observe.program import program_processes

ADMIN = "/ext/admin"
QUIET = ("--log-level=off", "--log-display-level=off", "--api-admin-enabled=true", "--no-demo")


def indexer_pid(server: Server) -> int | None:
    return next((one.pid for one in program_processes(server.process.pid) if one.role == "indexer"), None)


def test_the_loggers_of_indexed_chains_have_levels(tmp_path: Path) -> None:
    """The upstream serves another chain, which the indexer logs when it starts, and when it starts again."""
    with in_thread(EvmReplay("geth-1")) as geth:
        config = config_for(tmp_path, geth)
        config.write_text(config.read_text().replace(f'"{geth.chain_id}"', '"99"'))
        with serving("up", tmp_path, f"--config-file={config}", *QUIET) as server:
            levels = server.call(ADMIN, "admin.getLoggerLevel", {})["result"]["loggerLevels"]
            assert set(levels) == {"C", "P", "X", "main", "vm-factory", "chain-99"}
            assert levels["chain-99"] == {"logLevel": "OFF", "displayLevel": "OFF"}
            wrong = "serves chain"
            until(lambda: wrong in server.ask("GET", "/ext/health").body.decode(), "the wrong chain in health")
            written = server.data_dir / "logs" / "chain-99.log"
            assert not written.exists()

            params = {"loggerName": "chain-99", "logLevel": "INFO"}
            assert server.call(ADMIN, "admin.setLoggerLevel", params)["result"] == {}
            first = indexer_pid(server)
            assert first is not None
            os.kill(first, signal.SIGKILL)
            until(lambda: written.exists() and wrong in written.read_text(), "a line of the next indexer in the log")
