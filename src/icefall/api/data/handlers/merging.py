"""Lists over all chains: newest first, at equal times in the order of the chains.

A page token holds the time of the last item, and for each chain where the next page begins in it, the chain of the last
item first. A chain that the token does not name begins at its newest block of that time, which takes a few queries to
find: those that are too many for a token, and those added since it was issued.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from icefall.access.page_tokens import CURSOR_SIZE_MAX
from icefall.api.data.handlers.chains import has_blocks, is_of_network
from icefall.api.http.paging import pack_cursor
from icefall.evm.reading.directory import ChainDirectory, EvmChain

_CHAINS_MAX = (CURSOR_SIZE_MAX - 8) // 16  # of a token: a time, and a number and a position for each
T = TypeVar("T")


class MergeKey(NamedTuple):
    """Sorts the items of all chains, newest last. `order` is higher for the chains that are listed first."""

    time: int
    order: int
    position: int


class ChainPart(NamedTuple, Generic[T]):
    """The items of one chain below `before`. `end` is the position below which nothing was read; None if everything
    was."""

    chain: EvmChain
    order: int
    before: int | None
    items: list[tuple[MergeKey, T]]
    end: MergeKey | None

    def next_before(self, end: MergeKey) -> int:
        """Return where the page after `end` begins in this chain."""
        left = next((key for key, _ in self.items if key < end), None)
        if left is not None:
            return left.position + 1
        if self.end is not None:
            return self.end.position
        return self.items[-1][0].position if self.items else self.before or 0


class MergedPage(NamedTuple, Generic[T]):
    """One page of items. `cursor` is where the next page begins, None after the last."""

    items: list[tuple[EvmChain, T]]
    cursor: bytes | None


async def read_parts(
    network: str | None,
    chains: ChainDirectory,
    after: tuple[int, ...] | None,
    read: Callable[[EvmChain, int, int | None], Awaitable[ChainPart[T]]],
    behind: Callable[[int], int],
) -> list[ChainPart[T]]:
    """Read the newest items of each chain. `read` gets a chain, its order and the position below which the page begins
    in it; `behind` is the position after all of a block."""
    every = chains.all()
    orders = {chain.info.id: len(every) - index for index, chain in enumerate(every)}
    time, starts = (0, {}) if after is None else (after[0], dict(zip(map(str, after[1::2]), after[2::2], strict=True)))
    last_order = orders.get(next(iter(starts), ""), 0)
    parts = []
    for chain in every:
        if not is_of_network(chain.info, network) or not await has_blocks(chain):
            continue
        order, before = orders[chain.info.id], starts.get(chain.info.id)
        if after is not None and before is None:
            newest = await chain.blocks.at_or_before(time if order < last_order else time - 1)
            before = 0 if newest is None else behind(newest.number)
        parts.append(await read(chain, order, before))
    return parts


def merged(parts: Sequence[ChainPart[T]]) -> tuple[list[tuple[MergeKey, EvmChain, T]], MergeKey | None]:
    """The items of all parts, newest first, not below what one of them has not read; and where that is."""
    end = max((part.end for part in parts if part.end is not None), default=None)
    found = [(key, part.chain, item) for part in parts for key, item in part.items if end is None or key >= end]
    found.sort(key=lambda one: one[0], reverse=True)
    return found, end


def cut_page(parts: Sequence[ChainPart[T]], size: int) -> MergedPage[T]:
    """The newest items of all parts."""
    found, end = merged(parts)
    page = found[:size]
    if len(found) > size:
        end = page[-1][0]
    return MergedPage([(chain, item) for _, chain, item in page], None if end is None else cursor_at(parts, end))


def cursor_at(parts: Sequence[ChainPart[T]], end: MergeKey) -> bytes:
    """The cursor of the page that begins after `end`."""
    numbers = [end.time]
    for part in sorted(parts, key=lambda part: part.order != end.order)[:_CHAINS_MAX]:
        numbers += int(part.chain.info.id), part.next_before(end)
    return pack_cursor(*numbers)
