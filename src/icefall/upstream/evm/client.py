"""JSON-RPC to one EVM client in batches, whose size and number at a time adapt to what it accepts (pacing.py)."""

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
from icefall.upstream.evm.errors import (
    NULL_IS_NOT_THERE,
    BatchRefused,
    IncompleteAnswer,
    NotThere,
    RpcRefusal,
    TooHeavy,
    TooHeavyAlone,
    failure_of,
)
from icefall.upstream.evm.pacing import AdaptiveLimit, BatchSize, WholeBlocks
from icefall.upstream.meter import Clock
from icefall.wire.text.jsonscan import decode_any_depth

Lane = Literal["blocks", "traces", "state"]  # calls of one lane cost about the same and share a batch size
Outcome = msgspec.Raw | RpcRefusal

CALLS_PER_BATCH: dict[Lane, int] = {"blocks": 100, "traces": 32, "state": 100}
EVM_LIMITS = Limits(total_s=60.0, answer_size_max=128 << 20)
_BUSY_ATTEMPTS_FACTOR = 3  # more attempts where it only asks us to wait
_DECODER = msgspec.json.Decoder(list[RpcAnswer] | RpcAnswer)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Call(NamedTuple):
    method: str
    params: Sequence[Any]


class _Batch(NamedTuple):
    """Calls, and the list that their outcomes are written to."""

    calls: Sequence[Call]
    outcomes: list[Outcome | None]
    sizes: BatchSize
    budget: ByteBudget | None
    can_split: bool  # the caller would rather send smaller calls than wait for a heavy one again


class EvmClient:
    """One upstream. Results are returned byte for byte. A refusal of a call is an outcome, not a failure."""

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
        self.concurrency = AdaptiveLimit(self.client.clock, limits.calls_at_once)
        self.batches = {lane: BatchSize(size_max) for lane, size_max in calls_per_batch.items()}
        self.whole_blocks = WholeBlocks()
        self.takes_hashes = True  # in place of a block number, until it refuses one
        self._numbers = itertools.count(1)

    async def close(self) -> None:
        await self.client.close()

    async def call(self, method: str, *params: Any) -> msgspec.Raw:
        """The result of a single call; its refusal is raised."""
        (outcome,) = await self.call_all([Call(method, params)])
        if isinstance(outcome, RpcRefusal):
            raise outcome
        return outcome

    async def call_all(
        self,
        calls: Sequence[Call],
        *,
        lane: Lane = "state",
        budget: ByteBudget | None = None,
        can_split: bool = False,
    ) -> list[Outcome]:
        """The result or refusal of every call, in order; UpstreamFailure if one of them got neither. `can_split`: a
        call that is too heavy is not repeated, its outcome is TooHeavyAlone."""
        outcomes: list[Outcome | None] = [None] * len(calls)
        batch = _Batch(calls, outcomes, self.batches[lane], budget, can_split)
        indexes, size = range(len(calls)), batch.sizes.size
        runs = [list(indexes[start : start + size]) for start in range(0, len(calls), size)]
        await gather_or_cancel(self._run_batch(batch, run) for run in runs)
        return [outcome for outcome in outcomes if outcome is not None]

    async def _run_batch(self, batch: _Batch, indexes: list[int]) -> None:
        """Send requests until each index has its outcome. Raises after too many attempts in a row without one."""
        attempt, count_max = 0, len(indexes)
        while indexes:
            async with self.concurrency.slot() as ticket:
                count = min(len(indexes), batch.sizes.size, count_max)
                now, later = indexes[:count], indexes[count:]
                failure = await self._attempt(batch, now)
                if count == 1 and batch.can_split and _is_too_heavy(failure):
                    batch.outcomes[now[0]] = TooHeavyAlone(str(failure))
                    self.concurrency.reduce(ticket)
                    failure = None
                left = [index for index in now if batch.outcomes[index] is None]
                attempt = 1 if len(left) < len(now) else attempt + 1
                if failure is None:
                    self.concurrency.increase()
                    batch.sizes.succeeded(count)
                    attempt = 0
                    pause_s = 0.0
                else:
                    pause_s = self._adapt(failure, batch.sizes, count, attempt, ticket)
                    count_max = max(1, min(count_max, batch.sizes.size))
            indexes = left + later
            if pause_s:
                await self.client.clock.sleep(pause_s)

    def _adapt(self, failure: UpstreamFailure, sizes: BatchSize, count: int, attempt: int, ticket: int) -> float:
        """Reduce batch size or concurrency, whichever the failure calls for, or raise it. Returns how long to wait."""
        retry = self.client.retry
        many = count > 1
        if isinstance(failure, ByteBudgetExceeded):
            raise failure
        refused_by_http = isinstance(failure, UpstreamError) and failure.status != 200
        if refused_by_http or isinstance(failure, BatchRefused | AnswerTooLong | TooHeavy):
            if many:
                counted = isinstance(failure, BatchRefused) and failure.counted
                sizes.refuse(count) if counted else sizes.halve(count)
                return 0.0
            if not isinstance(failure, TooHeavy):
                raise failure
        busy = isinstance(failure, UpstreamBusy)
        slow = isinstance(failure, UpstreamDown) and failure.timed_out
        if not (failure.retryable or isinstance(failure, TooHeavy)) or attempt >= retry.attempts * (
            _BUSY_ATTEMPTS_FACTOR if busy else 1
        ):
            raise failure
        if many and (slow or isinstance(failure, IncompleteAnswer) or (attempt > 1 and not busy)):
            sizes.halve(count)
        after_s = failure.after_s if isinstance(failure, UpstreamDown) else 0.0
        pause_s = retry.pause_s(attempt, after_s, self.client.chance())
        if not isinstance(failure, UpstreamDown):
            return pause_s
        for_all = busy or after_s > 0
        self.concurrency.reduce(ticket, pause_s if for_all else 0.0)
        return 0.0 if for_all else pause_s

    async def _attempt(self, batch: _Batch, indexes: Sequence[int]) -> UpstreamFailure | None:
        """Send one request. Fills in outcomes; returns why some are missing."""
        first = next(self._numbers)
        numbers = {first: indexes[0]} | {next(self._numbers): index for index in indexes[1:]}
        rows = [
            {"jsonrpc": "2.0", "id": number, "method": batch.calls[index].method, "params": batch.calls[index].params}
            for number, index in numbers.items()
        ]
        try:
            with self.client.metered():
                raw = await self.client.post("", msgspec.json.encode(rows if len(rows) > 1 else rows[0]), batch.budget)
                answers = self._answers(raw, numbers, batch.calls[indexes[0]].method, batch.budget)
        except UpstreamFailure as error:
            return self._from_http_status(error, batch, indexes)
        failure: UpstreamFailure | None = None
        for number, answer in answers.items():
            outcome = self._outcome(batch.calls[numbers[number]].method, answer)
            if isinstance(outcome, UpstreamFailure) and not isinstance(outcome, RpcRefusal):
                failure = outcome
            else:
                batch.outcomes[numbers[number]] = outcome
        if failure is None and len(answers) < len(numbers):
            failure = IncompleteAnswer(f"{self.name} left out {len(numbers) - len(answers)} of {len(numbers)} answers")
        return failure

    def _from_http_status(
        self, failure: UpstreamFailure, batch: _Batch, indexes: Sequence[int]
    ) -> UpstreamFailure | None:
        """Some upstreams report with an HTTP status what others report with a JSON-RPC error."""
        if not isinstance(failure, UpstreamError) or failure.status == 200:
            return failure
        classified = failure_of(self.name, batch.calls[indexes[0]].method, failure.status, str(failure))
        if not isinstance(classified, RpcRefusal):
            return classified
        if len(indexes) > 1 or type(classified) is RpcRefusal:
            return failure
        batch.outcomes[indexes[0]] = classified
        return None

    def _answers(
        self, raw: bytes, numbers: dict[int, int], method: str, budget: ByteBudget | None
    ) -> dict[int, RpcAnswer]:
        """Return the answers by the ID of their call, each at most once; some may be missing. An unusable body does not
        use the budget."""
        try:
            return self._match_answers(raw, numbers, method)
        except UpstreamFailure:
            if budget is not None:
                budget.left += len(raw)
            raise

    def _match_answers(self, raw: bytes, numbers: dict[int, int], method: str) -> dict[int, RpcAnswer]:
        try:
            decoded, cut = decode_any_depth(raw, _DECODER.decode)
        except msgspec.ValidationError as error:
            raise InvalidAnswer(
                f"{self.name} answered {method} with something else: {error}", retryable=True
            ) from error
        except MALFORMED as error:
            text = f"{self.name} answered {method} with something that is not JSON: {error}"
            raise InvalidAnswer(text, retryable=True) from error
        rows = decoded if isinstance(decoded, list) else [decoded]
        if len(rows) == 1 and len(numbers) > 1 and rows[0].error is not None:
            raise self._batch_failure(rows[0].error, method)
        answers: dict[int, RpcAnswer] = {}
        for row in rows:
            if not isinstance(row.id, int) or row.id not in numbers or row.id in answers:
                if row.error is not None and row.id is None:
                    raise self._batch_failure(row.error, method)
                text = f"{self.name} answered {excerpt(row.id)}, which was not requested, or answered already"
                raise InvalidAnswer(text, retryable=True)
            if cut is not None:
                row.result = msgspec.Raw(cut.restored(row.result))
            answers[row.id] = row
        return answers

    def _batch_failure(self, error: RpcErrorObject, method: str) -> UpstreamFailure:
        """Return the failure for one error in place of all answers."""
        failure = failure_of(self.name, method, error.code, excerpt(error.message))
        if isinstance(failure, UpstreamFailure) and not isinstance(failure, RpcRefusal):
            return failure
        return BatchRefused(f"{self.name} refused a batch: {excerpt(error.message)} ({error.code})", counted=False)

    def _outcome(self, method: str, answer: RpcAnswer) -> Outcome | UpstreamFailure:
        if answer.error is not None:
            return failure_of(self.name, method, answer.error.code, excerpt(answer.error.message), answer.error.data)
        result = memoryview(answer.result)
        if not result.nbytes:
            return InvalidAnswer(f"{self.name} answered {method} with neither a result nor an error", retryable=True)
        if bytes(result[:5]) == b"null":
            if method in NULL_IS_NOT_THERE:
                return NotThere(f"{self.name} answered {method} with null")
            return IncompleteAnswer(f"{self.name} answered {method} with null")
        return answer.result


def _is_too_heavy(failure: UpstreamFailure | None) -> bool:
    """Tell whether a smaller call may succeed where this one failed."""
    if isinstance(failure, ByteBudgetExceeded):
        return False
    return isinstance(failure, TooHeavy | AnswerTooLong) or (isinstance(failure, UpstreamDown) and failure.timed_out)


async def gather_or_cancel(work: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """All results, in order. The first failure cancels the others and is raised unchanged."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return [await tasks[0]] if len(tasks) == 1 else list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
