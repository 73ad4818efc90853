"""A limit on how many answers with thousands of rows a worker makes at once.

Each of them holds megabytes from its first row until it is encoded. Requests take turns, so without a limit all that
have come would be half done at the same time: 250 of them took a worker from 70 to 650 MiB of memory, and with the
limit to 170.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

AT_ONCE_MAX = 8


class LargeAnswers:
    """The places for large answers of a worker. Whether an answer is large is known when its first rows are read."""

    def __init__(self, at_once_max: int = AT_ONCE_MAX) -> None:
        self._places = asyncio.Semaphore(at_once_max)

    @asynccontextmanager
    async def place(self) -> AsyncIterator["Place"]:
        """Give back the place that was taken meanwhile, if any, at the end of the block."""
        place = Place(self._places)
        try:
            yield place
        finally:
            place.give_back()


class Place:
    """The place of one answer, which is taken at most once."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._is_taken = False

    async def take(self) -> None:
        """Wait until fewer large answers are made, unless this one is among them already."""
        if not self._is_taken:
            await self._places.acquire()
            self._is_taken = True

    def give_back(self) -> None:
        if self._is_taken:
            self._places.release()
            self._is_taken = False
