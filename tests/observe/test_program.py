"""The processes of the program are read seldom and not on the event loop, however often they are asked for."""

import asyncio
import os
import threading

import pytest

from icefall.observe import program
from icefall.observe.program import ProcessReader, ProgramProcess


def test_who_asks_at_the_same_time_shares_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[threading.Thread] = []

    def found(pid: int) -> list[ProgramProcess]:
        readings.append(threading.current_thread())
        return [ProgramProcess(pid, 1, "supervisor")]

    monkeypatch.setattr(program, "program_processes", found)
    now = [100.0]

    async def scenario() -> None:
        reader = ProcessReader(os.getpid(), lambda: now[0])
        cancelled = asyncio.ensure_future(reader.read())
        asking = [asyncio.ensure_future(reader.read()) for _ in range(20)]
        await asyncio.sleep(0)
        cancelled.cancel()
        answers = await asyncio.gather(*asking)
        assert [one.pid for one, _ in answers[0]] == [os.getpid()]
        assert all(answer is answers[0] for answer in answers)
        now[0] += 0.9
        assert await reader.read() is answers[0]
        now[0] += 0.1
        assert await reader.read() is not answers[0]

    asyncio.run(scenario())
    assert len(readings) == 2
    assert threading.main_thread() not in readings
