"""The chain as one upstream reports it, without failover: to compare upstreams with each other, and to prove a branch
by its headers alone."""

from collections.abc import Callable

from icefall.upstream.client import InvalidAnswer
from icefall.upstream.evm.block_parts import proven_header
from icefall.upstream.evm.client import Call, EvmClient
from icefall.upstream.evm.errors import NotThere, RpcRefusal, WrongChain
from icefall.upstream.evm.fetch import raise_not_found
from icefall.upstream.evm.probe import quantity

_HEADERS_AT_ONCE = 64


async def read_head(client: EvmClient) -> int:
    return quantity((await client.call_all([Call("eth_blockNumber", ())]))[0], "eth_blockNumber")


async def read_block_hash(client: EvmClient, number: int) -> bytes:
    """Fetch the hash of a block, proven by its header. NotThere if there is no such block."""
    try:
        raw = await client.call("eth_getBlockByNumber", hex(number), False)
    except NotThere:
        await raise_not_found(client, number)
    return proven_header(raw, number, client.name).block_hash


class UpstreamView:
    def __init__(self, name: str, client: EvmClient, chain_id: Callable[[], int | None]) -> None:
        self.name = name
        self._client = client
        self._chain_id = chain_id

    async def head(self) -> int:
        return await read_head(self._client)

    async def block_hash(self, number: int) -> bytes | None:
        """The hash of the block of that number now; None if there is none."""
        try:
            return await read_block_hash(self._client, number)
        except NotThere:
            return None

    async def check_chain_id(self) -> None:
        """Check the chain ID once more: what answers at an address may have changed since it was probed."""
        served = quantity((await self._client.call_all([Call("eth_chainId", ())]))[0], "eth_chainId")
        if self._chain_id() not in (None, served):
            raise WrongChain(f"{self.name} serves chain {served}, not {self._chain_id()}")

    async def linked_hashes(self, numbers: range, parent: bytes) -> list[bytes]:
        """The hashes of consecutive blocks that follow `parent`, recomputed from their headers wherever their layout is
        known. InvalidAnswer if a hash is not that of its header, or a block is not the child of the one before."""
        hashes: list[bytes] = []
        for start in range(0, len(numbers), _HEADERS_AT_ONCE):
            some = numbers[start : start + _HEADERS_AT_ONCE]
            calls = [Call("eth_getBlockByNumber", (hex(number), False)) for number in some]
            for number, outcome in zip(some, await self._client.call_all(calls, lane="blocks"), strict=True):
                if isinstance(outcome, RpcRefusal):
                    raise InvalidAnswer(f"{self.name} does not send the header of block {number}: {outcome}")
                header = proven_header(outcome, number, self.name)
                if header.parent_hash != parent:
                    raise InvalidAnswer(f"{self.name} sent block {number} that is not the child of block {number - 1}")
                parent = header.block_hash
                hashes.append(parent)
        return hashes
