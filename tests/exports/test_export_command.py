"""`icefall export` as a process: killed again and again while it writes, and on a disk that takes no more."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.exports.exported import ID, export, put_chain, rows_of
from tests.observe.full_disk import small_files

from icefall.exports.files import MANIFEST

FLAGS = ("--table=transactions,logs", "--partition=range:20")
KILLS = 3


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return put_chain(tmp_path_factory.mktemp("killed"))


def digests(out: Path) -> dict[str, str]:
    """The digest of each file that the manifests list."""
    manifests = [json.loads(path.read_text()) for path in sorted(out.glob(f"{ID}/*/{MANIFEST}"))]
    return {file["name"]: file["sha256"] for one in manifests for file in one["files"]}


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_killed_again_and_again_it_writes_the_same_files(file_format: str, data_dir: Path, tmp_path: Path) -> None:
    flags = (*FLAGS, f"--format={file_format}")
    assert export(data_dir, tmp_path / "whole", *flags) == 0
    expected, out = digests(tmp_path / "whole"), tmp_path / "killed"
    command = [sys.executable, "-m", "icefall", "export", f"--data-dir={data_dir}", f"--chain={ID}", f"--out={out}"]
    kept: list[int] = []
    for kill in range(1, KILLS + 1):
        with subprocess.Popen([*command, *flags], stdout=subprocess.DEVNULL) as process:
            while process.poll() is None and len(digests(out)) < kill * len(expected) // (KILLS + 1):
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        kept.append(len(digests(out)))
    assert 0 < kept[0] < len(expected), "it was killed in the middle"
    assert kept == sorted(kept), "what was whole is kept"
    assert export(data_dir, out, *flags) == 0
    assert digests(out) == expected
    assert {path.name for path in out.glob(f"{ID}/*/{ID}__*")} == set(expected), (
        "nothing is left of a file that was begun"
    )


@pytest.mark.parametrize("file_format", ["csv", "jsonl", "parquet"])
def test_a_full_disk_ends_it_with_the_reason_and_it_goes_on(
    file_format: str, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--table=transactions", "--partition=range:100000", f"--format={file_format}")
    with small_files(40_000):  # what readers of the store share takes 32 KiB
        assert export(data_dir, tmp_path, *flags) == 1
    said = capsys.readouterr().err
    assert "cannot be written: " in said
    assert "the same command goes on" in said
    assert export(data_dir, tmp_path, *flags) == 0
    assert not list(tmp_path.glob(f"{ID}/*/*.tmp"))
    if file_format == "csv":
        assert len(rows_of(tmp_path, "transactions")) > 100
