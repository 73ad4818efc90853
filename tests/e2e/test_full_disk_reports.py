"""A full disk, on which health results cannot be stored: everyone who reports health says what /ext/health does."""

from pathlib import Path

import msgspec
from tests.forked import run_program
from tests.server import serving

from icefall.node.health.runner import CheckResult, UnstoredFailure

WHY = "health results could not be stored: the disk is full"


def test_what_could_not_be_stored_is_reported_everywhere(tmp_path: Path) -> None:
    with serving("node", tmp_path, "--health-check-frequency=1h") as server:
        data = f"--data-dir={server.data_dir}"
        assert server.ask("GET", "/ext/health").status == 200
        assert "health: all checks pass" in run_program("status", data).stdout
        UnstoredFailure(server.data_dir / "run" / "health").put(
            msgspec.json.encode(CheckResult(None, WHY, "2026-01-01T00:00:00Z", 0))
        )
        served = server.ask("GET", "/ext/health")
        assert (served.status, served.json()["checks"]["engine"]["error"]) == (503, WHY)
        assert b'icefall_health_check_passing{check="engine"} 0' in server.ask("GET", "/ext/metrics").body
        screen = run_program("status", data).stdout
        assert f"health: failing: engine\n  engine: {WHY}\n" in screen
        found = msgspec.json.decode(run_program("status", "--json", data).stdout)
        assert found["health"]["engine"] is False
        assert found["failures"] == {"engine": WHY}
        assert set(found["health"]) == set(served.json()["checks"])
