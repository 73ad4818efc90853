"""Which test files take how long. The slowest are begun first: else one process is busy at the end and the others idle.

    make test ARGS=--junit-xml=report.xml && .venv/bin/python -m tests.slowest report.xml

writes slowest.txt anew, of a whole run on a quiet machine.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

TABLE = Path(__file__).with_suffix(".txt")
_LISTED_S = 6.0


def seconds_of_files() -> dict[str, float]:
    """The files of the table, by their path in this folder. What is not listed takes a few seconds."""
    lines = (line.split() for line in TABLE.read_text().splitlines())
    return {path: float(seconds) for seconds, path in lines}


def written_anew(report: Path) -> str:
    seconds: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        path = "/".join(case.attrib["classname"].split(".")[1:]) + ".py"
        seconds[path] += float(case.attrib["time"])  # type: ignore[assignment]
    return "".join(f"{taken:.0f} {path}\n" for path, taken in seconds.most_common() if taken >= _LISTED_S)


if __name__ == "__main__":
    TABLE.write_text(written_anew(Path(sys.argv[1])))
