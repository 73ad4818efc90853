"""JSON-RPC to one EVM client, many calls to a request: as many as it takes, as fast as it likes."""

import asyncio
import itertools
import random
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from yarl import URL

from icefall.upstream.client import (
    MALFORMED,
    RETRY,
    AnswerTooLong,
    ByteBudget,
    ByteBudgetExceeded,
    Client,
    InvalidAnswer,
    Limits,
    Retry,
    RpcAnswer,
    RpcErrorObject,
    UpstreamBusy,
    UpstreamDown,
    UpstreamError,
    UpstreamFailure,
    excerpt,
)
from icefall.upstream.evm.deep import taken_apart_if_deep
from icefall.upstream.evm.errors import (
    NULL_IS_NOT_THERE,
    BatchRefused,
    IncompleteAnswer,
    NotThere,
    RpcRefusal,
    TooHeavy,
    made,
)
from icefall.upstream.evm.pace import AdaptiveLimit, BatchSize
from icefall.upstream.meter import Clock

Lane = Literal["blocks", "traces", "state"]  # what weighs about the same shares the size of its batches
Outcome = msgspec.Raw | RpcRefusal

CALLS_PER_BATCH: dict[Lane, int] = {"blocks": 100, "traces": 32, "state": 100}
EVM_LIMITS = Limits(total_s=60.0, answer_size_max=128 << 20)
_BUSY_PATIENCE = 3  # times as many attempts when all it asks for is time
_DECODER = msgspec.json.Decoder(list[RpcAnswer] | RpcAnswer)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Call(NamedTuple):
    method: str
    params: Sequence[Any]


class _Batch(NamedTuple):
    """Some places of a list of calls, and where their outcomes go."""

    calls: Sequence[Call]
    outcomes: list[Outcome | None]
    sizes: BatchSize
    room: ByteBudget | None


class EvmClient:
    """One upstream. `ask` hands back results as they came, byte for byte; a refusal is an outcome like another."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
        limits: Limits = EVM_LIMITS,
        retry: Retry = RETRY,
        calls_per_batch: dict[Lane, int] = CALLS_PER_BATCH,
        compressed: bool | None = None,
    ) -> None:
        packed = URL(url).host not in _LOOPBACK if compressed is None else compressed
        self.client = Client(url, clock=clock, chance=chance, limits=limits, retry=retry, compressed=packed)
        self.name = self.client.name
        self.gate = AdaptiveLimit(self.client.clock, limits.calls_at_once)
        self.batches = {lane: BatchSize(most) for lane, most in calls_per_batch.items()}
        self.takes_hashes = True  # in place of a block number, until it refuses one
        self._numbers = itertools.count(1)

    async def close(self) -> None:
        await self.client.close()

    async def one(self, method: str, *params: Any) -> msgspec.Raw:
        """The result of a single call; its refusal is raised."""
        (outcome,) = await self.ask([Call(method, params)])
        if isinstance(outcome, RpcRefusal):
            raise outcome
        return outcome

    async def ask(
        self, calls: Sequence[Call], *, lane: Lane = "state", room: ByteBudget | None = None
    ) -> list[Outcome]:
        """Every call's result, or why there is none, in their order. All of them, or an UpstreamFailure."""
        outcomes: list[Outcome | None] = [None] * len(calls)
        batch = _Batch(calls, outcomes, self.batches[lane], room)
        places, size = range(len(calls)), batch.sizes.size
        runs = [list(places[start : start + size]) for start in range(0, len(calls), size)]
        await together(self._settle(batch, run) for run in runs)
        return [outcome for outcome in outcomes if outcome is not None]

    async def _settle(self, batch: _Batch, places: list[int]) -> None:
        """Ask until each place has its outcome. So many attempts in a row may come to nothing, and no more."""
        attempt, most = 0, len(places)
        while places:
            async with self.gate.open() as ticket:
                count = min(len(places), batch.sizes.size, most)
                now, later = places[:count], places[count:]
                trouble = await self._attempt(batch, now)
                left = [place for place in now if batch.outcomes[place] is None]
                attempt = 1 if len(left) < len(now) else attempt + 1
                if trouble is None:
                    self.gate.faster()
                    batch.sizes.fared_well(count)
                    attempt = 0
                    pause_s = 0.0
                else:
                    pause_s = self._adapt(trouble, batch.sizes, count, attempt, ticket)
                    most = max(1, min(most, batch.sizes.size))
            places = left + later
            if pause_s:
                await self.client.clock.sleep(pause_s)

    def _adapt(self, trouble: UpstreamFailure, sizes: BatchSize, count: int, attempt: int, ticket: int) -> float:
        """Ask for less, or less often, whichever the trouble is about; or raise it. How long to wait."""
        retry = self.client.retry
        many = count > 1
        if isinstance(trouble, ByteBudgetExceeded):
            raise trouble
        turned_away = isinstance(trouble, UpstreamError) and trouble.status != 200
        if turned_away or isinstance(trouble, BatchRefused | AnswerTooLong | TooHeavy):
            if many:
                counted = isinstance(trouble, BatchRefused) and trouble.counted
                sizes.refuse(count) if counted else sizes.halve(count)
                return 0.0
            if not isinstance(trouble, TooHeavy):
                raise trouble
        busy = isinstance(trouble, UpstreamBusy)
        slow = isinstance(trouble, UpstreamDown) and trouble.timed_out
        if not (trouble.again or isinstance(trouble, TooHeavy)) or attempt >= retry.attempts * (
            _BUSY_PATIENCE if busy else 1
        ):
            raise trouble
        if many and (slow or isinstance(trouble, IncompleteAnswer) or (attempt > 1 and not busy)):
            sizes.halve(count)
        after_s = trouble.after_s if isinstance(trouble, UpstreamDown) else 0.0
        pause_s = retry.pause_s(attempt, after_s, self.client.chance())
        if not isinstance(trouble, UpstreamDown):
            return pause_s
        for_all = busy or after_s > 0
        self.gate.slower(ticket, pause_s if for_all else 0.0)
        return 0.0 if for_all else pause_s

    async def _attempt(self, batch: _Batch, places: Sequence[int]) -> UpstreamFailure | None:
        """One request. Outcomes are filled in; what kept the others from coming is handed back."""
        first = next(self._numbers)
        numbers = {first: places[0]} | {next(self._numbers): place for place in places[1:]}
        rows = [
            {"jsonrpc": "2.0", "id": number, "method": batch.calls[place].method, "params": batch.calls[place].params}
            for number, place in numbers.items()
        ]
        try:
            with self.client.metered():
                raw = await self.client.post("", msgspec.json.encode(rows if len(rows) > 1 else rows[0]), batch.room)
                answers = self._answers(raw, numbers, batch.calls[places[0]].method, batch.room)
        except UpstreamFailure as failure:
            return self._reread(failure, batch, places)
        trouble: UpstreamFailure | None = None
        for number, answer in answers.items():
            outcome = self._outcome(batch.calls[numbers[number]].method, answer)
            if isinstance(outcome, UpstreamFailure) and not isinstance(outcome, RpcRefusal):
                trouble = outcome
            else:
                batch.outcomes[numbers[number]] = outcome
        if trouble is None and len(answers) < len(numbers):
            trouble = IncompleteAnswer(f"{self.name} left out {len(numbers) - len(answers)} of {len(numbers)} answers")
        return trouble

    def _reread(self, failure: UpstreamFailure, batch: _Batch, places: Sequence[int]) -> UpstreamFailure | None:
        """Some put into the HTTP status, with or without words, what others complain of in JSON-RPC."""
        if not isinstance(failure, UpstreamError) or failure.status == 200:
            return failure
        said = made(self.name, batch.calls[places[0]].method, failure.status, str(failure))
        if not isinstance(said, RpcRefusal):
            return said
        if len(places) > 1 or type(said) is RpcRefusal:
            return failure
        batch.outcomes[places[0]] = said
        return None

    def _answers(
        self, raw: bytes, numbers: dict[int, int], method: str, room: ByteBudget | None
    ) -> dict[int, RpcAnswer]:
        """By the number of their call. Some may be missing, none is there twice. What is of no use takes no room."""
        try:
            return self._matched(raw, numbers, method)
        except UpstreamFailure:
            if room is not None:
                room.left += len(raw)
            raise

    def _matched(self, raw: bytes, numbers: dict[int, int], method: str) -> dict[int, RpcAnswer]:
        try:
            decoded, flat = taken_apart_if_deep(raw, _DECODER.decode)
        except msgspec.ValidationError as error:
            raise InvalidAnswer(f"{self.name} answered {method} with something else: {error}", again=True) from error
        except MALFORMED as error:
            text = f"{self.name} answered {method} with something that is not JSON: {error}"
            raise InvalidAnswer(text, again=True) from error
        rows = decoded if isinstance(decoded, list) else [decoded]
        if len(rows) == 1 and len(numbers) > 1 and rows[0].error is not None:
            raise self._whole(rows[0].error, method)
        answers: dict[int, RpcAnswer] = {}
        for row in rows:
            if not isinstance(row.id, int) or row.id not in numbers or row.id in answers:
                if row.error is not None and row.id is None:
                    raise self._whole(row.error, method)
                text = f"{self.name} answered {excerpt(row.id)}, which was not asked, or answered already"
                raise InvalidAnswer(text, again=True)
            if flat is not None:
                row.result = msgspec.Raw(flat.restored(row.result))
            answers[row.id] = row
        return answers

    def _whole(self, error: RpcErrorObject, method: str) -> UpstreamFailure:
        """A complaint in the place of all answers."""
        said = made(self.name, method, error.code, excerpt(error.message))
        if isinstance(said, UpstreamFailure) and not isinstance(said, RpcRefusal):
            return said
        return BatchRefused(f"{self.name} refused a batch: {excerpt(error.message)} ({error.code})", counted=False)

    def _outcome(self, method: str, answer: RpcAnswer) -> Outcome | UpstreamFailure:
        if answer.error is not None:
            return made(self.name, method, answer.error.code, excerpt(answer.error.message), answer.error.data)
        result = memoryview(answer.result)
        if not result.nbytes:
            return InvalidAnswer(f"{self.name} answered {method} with neither a result nor an error", again=True)
        if bytes(result[:5]) == b"null":
            if method in NULL_IS_NOT_THERE:
                return NotThere(f"{self.name} answered {method} with null")
            return IncompleteAnswer(f"{self.name} answered {method} with null")
        return answer.result


async def together(work: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """All results, in order. The first failure ends the others and is raised as it is."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return [await tasks[0]] if len(tasks) == 1 else list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
