"""What the simulations of indexer and node follower have in common: one seeded run, its events, and its crashes."""

import asyncio
import os
import random
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pytest
from tests.simulation.killable_store import Killed, KillSwitch
from tests.simulation.network import Network
from tests.simulation.schedule import Crash, draw_crashes
from tests.simulation.virtual_loop import VirtualClock, VirtualLoop

from icefall.upstream.client import Client
from icefall.upstream.meter import Clock

RECOVERY_S = 1800.0  # within which the program must be done once an upstream is honest for good
_LOOK_S = 1.0
_EVENTS_SHOWN = 60
_FIRST_SEED = int(os.environ.get("ICEFALL_FUZZ_SEED", "0"))
SEEDS = range(_FIRST_SEED, _FIRST_SEED + int(os.environ.get("ICEFALL_FUZZ_SEEDS", "10")))


class Events:
    """What happened, for whoever replays a seed. Also a log, with the methods the program calls."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(f"{asyncio.get_running_loop().time():9.3f} {text}")

    def _log(self, message: str, **fields: Any) -> None:
        self.note(f"{message} " + " ".join(f"{name}={value}" for name, value in fields.items()))

    debug = info = warn = error = fatal = _log


class Simulation(ABC):
    """One run: the program is started, killed and started again until it has what a clean run has."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.seed = seed
        self.directory = directory
        self.source = random.Random(seed)
        self.events = Events()
        self.network = Network(self.source)
        self.trouble_s = self.source.choice((0.0, 15.0, 40.0, 90.0))
        self.crashes = draw_crashes(self.source, max(5.0, self.trouble_s))
        self.starts = 0

    @abstractmethod
    def patch(self, patch: pytest.MonkeyPatch) -> None:
        """What else of the program is set differently while it runs."""

    @abstractmethod
    async def start(self, switch: KillSwitch) -> list[asyncio.Task[Any]]:
        """Opens the store and starts everything. The tasks run for ever."""

    @abstractmethod
    def is_done(self) -> bool:
        """Whether everything is stored."""

    @abstractmethod
    def stopped(self) -> str:
        """Why the program has given up, if it has."""

    @abstractmethod
    def describe(self) -> str:
        """The upstreams and their schedules."""

    @abstractmethod
    def drop(self) -> None:
        """Forget the program, as if its process were gone."""

    async def run(self) -> None:
        now = asyncio.get_running_loop().time
        while now() < self.trouble_s + RECOVERY_S:
            crash = self.crashes[self.starts] if self.starts < len(self.crashes) else Crash(1e9, 10**9)
            self.starts += 1
            if await self._life(crash, now() + crash.after_s):
                return
            await asyncio.sleep(self.source.uniform(0.0, 5.0))
        raise AssertionError("it did not recover")

    async def _life(self, crash: Crash, until: float) -> bool:
        """From a start to the end of the program. Whether it was done."""
        loop = asyncio.get_running_loop()
        switch = KillSwitch(crash.at_statement)
        self.events.note(f"started, {crash}")
        tasks: list[asyncio.Task[Any]] = []
        try:
            tasks = await self.start(switch)
            while True:
                look_s = min(_LOOK_S, max(0.0, until - loop.time()))
                await asyncio.wait(tasks, timeout=look_s, return_when=asyncio.FIRST_COMPLETED)
                if switch.killed or loop.time() >= until:
                    return False
                for task in tasks:
                    if task.done():
                        task.result()
                        raise AssertionError(f"the program gave up: {self.stopped()}")
                if loop.time() >= self.trouble_s and self.is_done():
                    return True
                if loop.time() >= self.trouble_s + RECOVERY_S:
                    raise AssertionError("it did not recover")
        except Killed:
            return False
        finally:
            switch.killed = True  # from here on it writes nothing
            await _end_all_tasks()
            self.drop()
            self.events.note("ended")


async def _end_all_tasks() -> None:
    """Also of those that the program started itself."""
    while others := [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
        for task in sorted(others, key=lambda task: int(task.get_name().rpartition("-")[2])):
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


def play(simulation: Simulation) -> None:
    """Runs it in a loop of its own. A failure names the seed, and how to run it again."""
    loop, network = VirtualLoop(simulation.source), simulation.network
    random.seed(simulation.seed)  # the program's own draws: back-offs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "_open", lambda client: network.session_of(client.limits))
        patch.setattr(Clock, "now", VirtualClock.now)
        simulation.patch(patch)
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(simulation.run())
        except BaseException as error:
            error.add_note(report(simulation))
            raise
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def report(simulation: Simulation) -> str:
    lines = simulation.events.lines[-_EVENTS_SHOWN:]
    again = f"ICEFALL_FUZZ_SEED={simulation.seed} ICEFALL_FUZZ_SEEDS=1"
    return "\n".join([f"seed {simulation.seed} failed; again with {again}", simulation.describe(), *lines])
