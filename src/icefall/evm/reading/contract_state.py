"""The code of a contract, and calls of its functions that read, from the upstream at an indexed block.

A call runs in the upstream's own machine, and changes nothing. Its gas and the size of its answer are bounded; the time
and the number of calls at once are those of all state that requests read.
"""

from typing import NamedTuple

from icefall.errors import BadRequest, Unavailable
from icefall.evm.reading.model import BlockRead
from icefall.evm.reading.proxies import ContractSource
from icefall.upstream.evm.errors import Aborted, Reverted
from icefall.upstream.evm.state import ContractCall
from icefall.wire.errors import WireError
from icefall.wire.evm.hex import data

GAS_MAX = 30_000_000
ANSWER_MAX = 1 << 16  # bytes


class CallAnswer(NamedTuple):
    """What a contract returned, or reverted with."""

    output: bytes
    is_reverted: bool


class ContractStateReader:
    """`source` None: there is no upstream."""

    def __init__(self, source: ContractSource | None) -> None:
        self._source = source
        self.state_reads = 0  # begun so far

    async def code(self, address: bytes, block: BlockRead) -> bytes:
        """Return the code right after a block; empty where there is none."""
        return (await self._begin("the code of a contract").codes([address], block.block_hash))[0]

    async def call(self, address: bytes, call_data: bytes, block: BlockRead) -> CallAnswer:
        """Return what a contract answers a call right after a block. BadRequest where the call takes more
        gas, or the answer more bytes, than are granted."""
        source = self._begin("a function of a contract")
        (answer,) = await source.answers([ContractCall(address, call_data)], block.block_hash, GAS_MAX)
        if isinstance(answer, Aborted):
            raise BadRequest("the call takes longer, or more gas, than the upstream grants: ask for less")
        output = _reverted_with(answer) if isinstance(answer, Reverted) else answer
        if len(output) > ANSWER_MAX:
            raise BadRequest(f"the answer has {len(output)} bytes, of which at most {ANSWER_MAX} are shown")
        return CallAnswer(output, isinstance(answer, Reverted))

    def _begin(self, what: str) -> ContractSource:
        if self._source is None:
            raise Unavailable(f"{what} is read from an upstream, and none is configured")
        self.state_reads += 1
        return self._source


def _reverted_with(answer: Reverted) -> bytes:
    """Return the data of a revert; empty where the client added something else to its error."""
    try:
        return data(answer.output)
    except WireError:
        return b""
