"""The benchmark of the primary network's lists fits the tables: it writes rows of its own, and asks for every list."""

import pytest
from bench import networks


def test_it_runs_on_a_short_chain(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ICEFALL_BENCH_ROWS", "300")
    monkeypatch.setattr(networks, "TIMES", 2)
    networks.run()
    rows = {line[:32].strip(): line[32:].split() for line in capsys.readouterr().out.splitlines()}
    for name in ("transactions", "transactions of an address", "UTXOs", "validators", "active validators", "rewards"):
        assert len(rows[name]) == 5
        assert min(map(float, rows[name])) > 0
