"""Reads the chain's state at a block: what the indexer needs from an upstream besides blocks."""

from collections.abc import Sequence
from typing import Protocol

from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall, StateCall


class StateSource(Protocol):
    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]: ...

    async def codes(self, addresses: Sequence[bytes], at: At) -> list[bytes]: ...

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]: ...

    async def results(self, calls: Sequence[StateCall]) -> list[bytes | Reverted]: ...
