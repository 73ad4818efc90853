"""The display of `icefall index`: what its lines say, at every width, and between log lines."""

import io
import re

import pytest

from icefall.evm.indexing.follower import FollowerStatus
from icefall.evm.indexing.progress import ChainProgress, Display, describe, duration_text, terminal_line

FETCHING = FollowerStatus(head=9_999, tip=2_499, target=9_999, blocks=100)
SYNCED = FollowerStatus(head=9_999, tip=9_999, target=9_999)
STARTING = FollowerStatus(head=9_999, target=9_999)
UNKNOWN = FollowerStatus()
FAILING = FollowerStatus(head=9_999, tip=5, target=9_999, problem="http://node answered 404")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (FETCHING, "c: block 2499 of 9999 (25.0 %), 50 blocks/s, 2 min 30 s left, 7500 behind the head, from http://n"),
        (SYNCED, "c: block 9999 of 9999, synced, from http://n"),
        (
            STARTING,
            "c: no block of 9999 yet (0.0 %), 50 blocks/s, 3 min 20 s left, 10000 behind the head, from http://n",
        ),
        (UNKNOWN, "c: waiting for the upstream"),
    ],
)
def test_lines_without_a_terminal(status: FollowerStatus, text: str) -> None:
    assert describe("c", ChainProgress(status, 50.0, "http://n")) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(59.9, "59 s"), (150, "2 min 30 s"), (7_260, "2 h 1 min"), (86_399, "23 h 59 min"), (90_000, "1 d 1 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_a_terminal_shows_rate_eta_lag_and_upstream() -> None:
    line = terminal_line("chain", ChainProgress(FETCHING, 50.0, "http://node:9650"), 120)
    assert line == "chain [#####...............] 25.0 % 2,500 50/s 2 min 30 s left lag 7,500 http://node:9650"
    assert (
        terminal_line("chain", ChainProgress(SYNCED, 0, "http://n"), 120) == "chain synced block 9,999 lag 0 http://n"
    )
    assert terminal_line("chain", ChainProgress(UNKNOWN, 0), 120) == f"chain [{'.' * 20}] waiting for the upstream"
    assert terminal_line("chain", ChainProgress(FAILING, 0), 120) == f"chain [{'.' * 20}] http://node answered 404"


@pytest.mark.parametrize("status", [FETCHING, SYNCED, STARTING, UNKNOWN, FAILING])
def test_no_width_is_exceeded(status: FollowerStatus) -> None:
    for width in range(1, 130):
        line = terminal_line(
            "A chain with a long name", ChainProgress(status, 12345.6, "https://node.example:9650"), width
        )
        assert 0 < len(line) <= width
        assert "-1" not in line
    narrow = terminal_line("chain", ChainProgress(FETCHING, 50.0, "http://node:9650"), 23)
    assert narrow == "chain 25.0 % 50/s"
    assert terminal_line("chain", ChainProgress(UNKNOWN, 0), 23) == "chain waiting for the u"


class Screen(io.StringIO):
    """A terminal that understands the two sequences the display uses."""

    def isatty(self) -> bool:
        return True

    def rows(self) -> list[str]:
        rows = [""]
        for part in re.findall(r"\x1b\[\d+F|\x1b\[J|\n|[^\x1b\n]+", self.getvalue()):
            if part.endswith("F"):
                del rows[len(rows) - 1 - int(part[2:-1]) :]
                rows.append("")
            elif part == "\n":
                rows.append("")
            elif part != "\x1b[J":
                rows[-1] += part
        return rows


def test_log_lines_stay_above_the_bars() -> None:
    screen = Screen()
    display = Display(screen, lambda: 24)
    statuses, sources = {"a": FETCHING, "b": UNKNOWN}, {"a": "http://n"}
    display.show(0.0, statuses, sources)
    display.write("first line\n")
    display.show(1.0, statuses, sources)
    display.write("second line\n")
    display.finish(2.0, statuses, sources)
    display.write("after the end\n")
    rows = screen.rows()
    assert rows[:2] == ["first line", "second line"]
    assert [row.split()[0] for row in rows[2:4]] == ["a", "b"]
    assert rows[4:] == ["after the end", ""]
    assert all(len(row) < 24 for row in rows)


def test_without_a_terminal_the_end_repeats_nothing() -> None:
    out = io.StringIO()
    display = Display(out)
    refused = {"a": FollowerStatus(problem="its store is in use", stopped=True)}
    display.show(0.0, refused, {})
    display.finish(1.0, refused, {})
    assert out.getvalue().count("its store is in use") == 1
    display.finish(2.0, {"a": FollowerStatus(head=9, tip=9, target=9, blocks=9)}, {})
    assert "a: block 9 of 9" in out.getvalue()


def test_without_a_terminal_a_line_every_ten_seconds() -> None:
    out = io.StringIO()
    display = Display(out)
    for second in range(25):
        display.show(float(second), {"a": FollowerStatus(head=99, tip=second, target=99, blocks=second)}, {})
    assert [line.split(" of ")[0] for line in out.getvalue().splitlines()] == [
        "a: block 0",
        "a: block 10",
        "a: block 20",
    ]
