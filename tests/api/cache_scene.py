"""A scene for tests of cached answers: a clock that they set, and state that changes without a commit."""

from collections.abc import Sequence
from functools import partial

import pytest
from tests.api.data_scene import Zeros
from tests.api.made_chain import EVE

from icefall.api.http.answer_cache import AnswerCache
from icefall.errors import Unavailable
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall


class SetClock:
    def __init__(self) -> None:
        self.now = 1_699_999_980.0  # a full minute

    def __call__(self) -> float:
        return self.now


def set_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """The clock of an app's answer cache."""
    clock = SetClock()
    monkeypatch.setattr("icefall.api.http.app.AnswerCache", partial(AnswerCache, clock))
    return clock


class StateOfNow(Zeros):
    """Every balance is `balance`, every owner EVE; counts what is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.balance = 5
        self.answering = True

    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]:
        self.asked += 1
        return [self.balance] * len(addresses)

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]:
        self.asked += 1
        if not self.answering:
            raise Unavailable("no upstream answers")
        return [b"".join((bytes(12), EVE)) for _ in calls]
