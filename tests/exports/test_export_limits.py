"""What bounds export jobs and protects who downloads their files: each limit is reached, and ends what it should."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.exports.scene import Scene, most_active
from tests.exports.test_jobs import in_scene
from tests.webhooks.scene import blocks

from icefall.errors import TooManyRequests
from icefall.evm.enriching.reader import TokenDetails
from icefall.evm.model import ERC20
from icefall.evm.reading.contracts import MethodNames
from icefall.evm.reading.directory import ChainInfo, TokenInfo
from icefall.evm.reading.model import TransferRead, TxLocation
from icefall.exports import registry, running
from icefall.exports.model import COMPLETED, FAILED, ExportLinks
from icefall.exports.rows import RowText

ADDRESS = b"\x01" * 20


def test_a_link_is_valid_until_it_expires_and_for_its_file_alone() -> None:
    links = ExportLinks(b"secret")
    signature = links.signature("job", "a.zip", 100)
    assert links.is_valid("job", "a.zip", 100, signature, 99.9)
    assert not links.is_valid("job", "a.zip", 100, signature, 100.0)
    assert not links.is_valid("job", "a.zip", 101, signature, 99.9)
    assert not links.is_valid("job", "b.zip", 100, signature, 99.9)
    assert not links.is_valid("other", "a.zip", 100, signature, 99.9)
    assert not ExportLinks(b"another").is_valid("job", "a.zip", 100, signature, 99.9)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\n=1", "\uff1d1+1", "\uff20SUM(A1)"])
def test_names_of_tokens_are_no_formulas(text: str) -> None:
    where = TxLocation(1, bytes(32), 1_700_000_000, bytes(32))
    transfer = TransferRead(ERC20, where, 0, 0, 0, ADDRESS, ADDRESS, ADDRESS, 0, -0, 7, 8, 9)
    rows = RowText(ChainInfo("1", "one", TokenInfo("Ether", text, 18)), MethodNames())
    values = rows.values(ADDRESS, transfer, {7: TokenDetails(name=text, symbol=text, decimals=0)})
    assert values.count(f"'{text}") == 2
    assert text not in values


def test_all_owners_together_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ALL_RUNNING_MAX", 2)

    async def run(scene: Scene) -> None:
        for owner in ("alice", "bob"):
            await scene.order([ADDRESS], owner)
        with pytest.raises(TooManyRequests, match="of all callers"):
            await scene.order([ADDRESS], "carol")

    in_scene(tmp_path, run)


def test_a_job_ends_after_a_day(tmp_path: Path) -> None:
    async def run(scene: Scene) -> None:
        await scene.put(blocks()[:3])
        job = await scene.order([ADDRESS])
        scene.now += running.JOB_MAX_S + 1
        await scene.drain()
        ended = await scene.known(job)
        assert (ended.status, ended.message) == (FAILED, "it did not end within a day")

    in_scene(tmp_path, run)


def test_a_disk_that_is_almost_full_ends_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    percent = running.FREE_MIN - 1

    def free(_: Any) -> Any:
        return SimpleNamespace(percent=percent)

    monkeypatch.setattr(running, "free_space", free)

    async def run(scene: Scene) -> None:
        nonlocal percent
        await scene.put(blocks()[:3])
        job = await scene.order(most_active(1))
        await scene.drain()
        ended = await scene.known(job)
        assert (ended.status, "disk" in ended.message) == (FAILED, True)
        percent = running.FREE_MIN
        again = await scene.order(most_active(1))
        await scene.drain()
        assert (await scene.known(again)).status == COMPLETED

    in_scene(tmp_path, run)
