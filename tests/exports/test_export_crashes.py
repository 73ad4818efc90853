"""Export jobs whose process is killed with SIGKILL, whose folder vanishes, or whose disk is full."""

import asyncio
import multiprocessing
import os
import resource
import shutil
import signal
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.exports.scene import Scene, most_active
from tests.exports.test_jobs import over_days
from tests.postgres.server import new_prefix, server_url
from tests.waiting import LIMIT_S
from tests.webhooks.scene import resolved

from icefall.compose.stores import Stores
from icefall.exports import running
from icefall.exports.model import COMPLETED, FAILED, RUNNING, ExportEnd, ExportJob
from icefall.exports.parts import ExportParts
from icefall.exports.registry import LOST_S, ExportRegistry
from icefall.exports.running import ExportRunner

ENGINES = ("sqlite", "postgres")
ADDRESSES = most_active(3)
KILLED = -signal.SIGKILL
Work = Callable[[Scene], Coroutine[Any, Any, Any]]
_forks = multiprocessing.get_context("fork")  # the recorded blocks are derived once, before


class Installation:
    """The stores of a test, which each process opens for itself."""

    def __init__(self, folder: Path, engine: str) -> None:
        self.folder = folder
        self._server = (server_url(), new_prefix()) if engine == "postgres" else ("", "")

    def run(self, work: Work) -> Any:
        """Work in a process of its own, as threads of stores that are open here would be missing in a fork. The blocks
        are packed before, once for all of them."""
        for rows in over_days():
            resolved(rows)
        code, result = self.forked(work, lambda: None)
        assert code == 0
        return result

    def forked(self, work: Work, prepare: Callable[[], None]) -> tuple[int | None, Any]:
        """The exit code, which is negative if the process was killed by a signal, and the result."""
        receiver, sender = _forks.Pipe(duplex=False)

        def child() -> None:
            prepare()
            scene = Scene(self.folder, Stores(self.folder, *self._server))
            sender.send(asyncio.run(work(scene)))
            os._exit(0)

        process = _forks.Process(target=child)
        process.start()
        sender.close()
        try:
            result = receiver.recv()
        except EOFError:
            result = None
        process.join(LIMIT_S)
        return process.exitcode, result


@pytest.fixture(params=ENGINES)
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Installation:
    made = Installation(tmp_path, request.param)
    made.run(lambda scene: scene.put(over_days()))
    return made


async def ordered(scene: Scene) -> ExportJob:
    return await scene.order(ADDRESSES)


def die_at(number: int) -> None:
    """Kill this process for good at its n-th step of writing: of rows, of the disk, of the state, of the end."""
    left = number

    def counted(owner: Any, name: str, *, is_async: bool = False) -> None:
        real = getattr(owner, name)

        def count() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def run(*args: Any, **options: Any) -> Any:
            count()
            found = real(*args, **options)
            if not is_async:
                count()
            return found

        setattr(owner, name, run)

    counted(ExportParts, "write")
    counted(ExportParts, "flushed")
    counted(running, "pack_archive")
    for name in ("next", "put_state", "end"):
        counted(ExportRegistry, name, is_async=True)
    counted(shutil, "copyfileobj")


def test_a_job_goes_on_wherever_its_process_is_killed(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_WRITTEN", 10)
    whole = installation.run(ordered)
    installation.run(lambda scene: scene.drain())
    expected = installation.run(lambda scene: scene.files(whole))
    assert sum(map(len, expected.values())) > 50
    job = installation.run(ordered)
    kills, steps = 0, 2
    while installation.forked(lambda scene: scene.drain(), partial(die_at, steps))[0] == KILLED:
        kills += 1
        steps += 1 + steps // 3  # later each time: what was stored before is not done again
    assert kills > 5
    ended = installation.run(lambda scene: scene.known(job))
    assert (ended.status, ended.message) == (COMPLETED, "")
    assert installation.run(lambda scene: scene.files(job)) == expected


def test_another_process_takes_a_job_over_when_the_first_is_gone(installation: Installation) -> None:
    """A process with another folder leaves the job alone first, and takes it over later; the first one ends nothing."""

    async def run(scene: Scene) -> None:
        job = await ordered(scene)
        assert await scene.jobs.next("a folder that is gone", scene.runner()._sources, scene.now) is not None
        started = await scene.runner()._begin(job, 0)
        assert await scene.jobs.put_state(job.id, "a folder that is gone", started, scene.now)
        await scene.drain()
        assert (await scene.known(job)).status == RUNNING
        scene.now += LOST_S + 1
        assert await scene.jobs.next("this folder", scene.runner()._sources, scene.now) is not None
        assert not await scene.jobs.end(job.id, "a folder that is gone", ExportEnd(status=FAILED), scene.now)
        assert (await scene.known(job)).status == RUNNING
        await scene.drain()
        ended = await scene.known(job)
        assert (ended.status, ended.runner) == (COMPLETED, "this folder")
        assert not await scene.jobs.put_state(job.id, "a folder that is gone", started, scene.now)
        assert sum(map(len, (await scene.files(job)).values())) > 50

    installation.run(run)


def test_a_folder_that_vanishes_ends_the_job_and_later_ones_are_written(installation: Installation) -> None:
    async def run(scene: Scene) -> None:
        runner: ExportRunner = scene.runner()
        lost = await ordered(scene)
        await runner.step()
        shutil.rmtree(scene.export_dir)
        scene.now += running.CLEAN_S + 1  # what is cleaned up is not there either
        second = await scene.order(ADDRESSES[:1])
        for _ in range(4):
            await runner.step()
        for job in (lost, second):
            ended = await scene.known(job)
            assert (ended.status, ended.message) == (FAILED, "its files cannot be written: No such file or directory")
        scene.export_dir.mkdir()
        third = await ordered(scene)
        await scene.drain(runner)
        assert (await scene.known(third)).status == COMPLETED

    installation.run(run)


def test_a_disk_that_takes_no_more_ends_the_job_with_the_reason(tmp_path: Path) -> None:
    """The largest size of a file stands for the disk; the stores are at a server, so only the files of exports grow."""
    installation = Installation(tmp_path, "postgres")
    installation.run(lambda scene: scene.put(over_days()))
    job = installation.run(ordered)

    def little() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    assert installation.forked(lambda scene: scene.drain(), little)[0] == 0
    ended = installation.run(lambda scene: scene.known(job))
    assert (ended.status, ended.message) == (FAILED, "its files cannot be written: File too large")
    assert not (tmp_path / "exports" / job.id).exists()
    again = installation.run(ordered)
    installation.run(lambda scene: scene.drain())
    assert installation.run(lambda scene: scene.known(again)).status == COMPLETED
