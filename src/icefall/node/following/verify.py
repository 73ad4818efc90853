"""Containers of another node, judged: what can be checked without the chain's state, and who takes over from there.

`verify` is pure. What it lets through hangs by hashes on what we have accepted before, back to our own genesis.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from icefall.upstream.node import FetchedContainer
from icefall.wire.container.coreth import unpack_coreth_block
from icefall.wire.container.exports import Export
from icefall.wire.container.platform import unpack_platform_block
from icefall.wire.container.proposer import OPTION, Container, unpack_container
from icefall.wire.errors import WireError
from icefall.wire.ids import hash256, id_text
from icefall.wire.packer import Layout, reader
from icefall.wire.text import cb58

_X_BLOCK = 20
_X_HEAD = Layout(32, "uint64", "uint64")


class InvalidContainer(Exception):
    """An upstream's word against arithmetic: it is not asked again."""


class UnlinkedContainer(InvalidContainer):
    """The first container of a run does not follow ours: either it lies, or one of us has another history."""


class UnknownContainer(Exception):
    """A container that is what it says it is, but of a kind we do not know. `readable` is the run before it."""

    def __init__(self, text: str, container_id_text: str, readable: "list[VerifiedContainer]") -> None:
        super().__init__(text)
        self.container_id_text = container_id_text
        self.readable = readable


class ContainerRejected(Exception):
    """The chain's own rules do not allow a container."""


class ImportPending(Exception):
    """An import of something that its source chain has not exported yet, as far as we have followed it."""


class MissingTransaction(Exception):
    """It spends what a transaction made that we were never given: the index we read does not hold all of them."""


class ChainStopped(Exception):
    """This chain cannot go on; what has been accepted is still served."""


class VerifiedContainer(msgspec.Struct, frozen=True):
    """A container that has passed every check that needs no state."""

    number: int  # in the upstream's index: how many this chain accepted before it
    container_id: bytes
    raw: bytes  # the container as the upstream sent it
    inner: bytes  # the block inside
    block_id: bytes  # X, P: sha256; C: keccak of the header
    parent_block_id: bytes
    height: int
    time: int
    exports: tuple[Export, ...]  # P and C only: what it exports to X


class FollowedChain(Protocol):
    """One of X, P and C as we have accepted it."""

    name: str

    @property
    def count(self) -> int:
        """Containers accepted so far: the number of the next."""
        ...

    @property
    def last_container_id(self) -> bytes:
        """The inner ID of the genesis block while there is none."""
        ...

    @property
    def last_block_id(self) -> bytes: ...

    async def accept(self, batch: Sequence[VerifiedContainer]) -> None:
        """Commit a run in one transaction.

        Refused: a container is a lie. NotYet: an import waits for an export. Incomplete: what came before the blocks
        lacks something. Then the run before it is stored and nothing else; `count` tells how far it came.
        """
        ...


class ChainPosition(NamedTuple):
    """Where the next container belongs. `timestamp` and `p_chain_height` are the last wrapping's, if known."""

    number: int
    container_id: bytes
    block_id: bytes
    timestamp: int = 0
    p_chain_height: int = 0


class ChainLinks(NamedTuple):
    """What a chain's containers must hang on. `is_genesis` decides where block 0 depends on when the network began."""

    name: str
    x_chain_id: bytes
    is_genesis: Callable[[bytes], bool] | None = None


class _BlockHead(NamedTuple):
    """A block, read no further than its place in the chain and its exports."""

    block_id: bytes
    parent_id: bytes
    height: int
    time: int | None
    exports: tuple[Export, ...] = ()


def _asset_block(inner: bytes, x_chain_id: bytes) -> _BlockHead:
    """Only the head: the rest is decoded by who executes it."""
    source = reader(inner)
    type_id = source.type_id()
    if type_id != _X_BLOCK:
        raise WireError(f"X-Chain: unknown block type {type_id}")
    parent_id, height, time = source.take(_X_HEAD)
    return _BlockHead(hash256(inner), parent_id, height, time)


def _platform_block(inner: bytes, x_chain_id: bytes) -> _BlockHead:
    block = unpack_platform_block(inner)
    return _BlockHead(block.block_id, block.parent_id, block.height, block.time, tuple(block.exports_to(x_chain_id)))


def _coreth_block(inner: bytes, x_chain_id: bytes) -> _BlockHead:
    block = unpack_coreth_block(inner)
    return _BlockHead(block.block_id, block.parent_id, block.height, block.time, tuple(block.exports_to(x_chain_id)))


_READ: dict[str, Callable[[bytes, bytes], _BlockHead]] = {"X": _asset_block, "P": _platform_block, "C": _coreth_block}


def verify(
    links: ChainLinks, position: ChainPosition, batch: Sequence[FetchedContainer]
) -> tuple[list[VerifiedContainer], ChainPosition]:
    """A run that continues at `position`, and the position behind it. Lie or Unreadable where one does not."""
    run: list[VerifiedContainer] = []
    for fetched in batch:
        try:
            offered, position = _next(links, position, fetched, first=not run)
        except WireError as error:
            what = f"{links.name} container {fetched.number} ({fetched.id_text}) cannot be read: {error}"
            raise UnknownContainer(what, fetched.id_text, run) from error
        run.append(offered)
    return run, position


class _Parts(NamedTuple):
    """A container taken apart. `wrapping` is None for a block from before there were any."""

    container_id: bytes
    parent_id: bytes
    wrapping: Container | None
    inner: bytes
    block: _BlockHead | WireError


def identify(links: ChainLinks, fetched: FetchedContainer) -> bytes:
    """The ID of a container whose parent we do not have: only what it says of itself can be checked."""
    return _take_apart(links, fetched).container_id


def _take_apart(links: ChainLinks, fetched: FetchedContainer) -> _Parts:
    """The container behind an ID and a number, if the bytes agree with both."""
    what = _name(links, fetched)
    wrapping = _wrapping(fetched.raw)
    inner = wrapping.inner if wrapping is not None else fetched.raw
    block: _BlockHead | WireError
    try:
        block = _READ[links.name](inner, links.x_chain_id)
    except WireError as error:
        block = error
    if wrapping is not None:
        container_id, parent_id = wrapping.container_id, wrapping.parent_id
    elif isinstance(block, _BlockHead):
        container_id, parent_id = block.block_id, block.parent_id
    else:
        raise InvalidContainer(f"{what} is neither a container nor a block: {block}")
    if cb58.encode(container_id) != fetched.id_text:
        raise InvalidContainer(
            f"{what} is said to be {fetched.id_text[:80]}, but its bytes are those of {id_text(container_id)}"
        )
    if isinstance(block, _BlockHead) and block.height != fetched.number + 1:
        raise InvalidContainer(
            f"{what} has height {block.height}, where {fetched.number + 1} belongs: the index is not complete "
            "(was that node run with --index-allow-incomplete?)"
        )
    return _Parts(container_id, parent_id, wrapping, inner, block)


def _next(
    links: ChainLinks, position: ChainPosition, fetched: FetchedContainer, *, first: bool
) -> tuple[VerifiedContainer, ChainPosition]:
    what = _name(links, fetched)
    if fetched.number != position.number:
        raise InvalidContainer(f"{what} was sent where {position.number} belongs: the index has a hole")
    container_id, parent_id, wrapping, inner, block = _take_apart(links, fetched)
    parent_block_id = _check_parent(links, position, what, parent_id, first=first)
    after = _times(position, what, wrapping)
    if isinstance(block, WireError):
        raise InvalidContainer(f"{what} holds no block: {block}") if links.name == "X" else block
    if block.parent_id != parent_block_id:
        raise InvalidContainer(
            f"{what} holds a block upon {id_text(block.parent_id)}, but the one before it is {id_text(parent_block_id)}"
        )
    offered = VerifiedContainer(
        number=fetched.number,
        container_id=container_id,
        raw=fetched.raw,
        inner=inner,
        block_id=block.block_id,
        parent_block_id=block.parent_id,
        height=block.height,
        time=after.timestamp if block.time is None else block.time,
        exports=block.exports,
    )
    return offered, after._replace(number=position.number + 1, container_id=container_id, block_id=block.block_id)


def _name(links: ChainLinks, fetched: FetchedContainer) -> str:
    return f"{links.name} container {fetched.number}"


def _wrapping(raw: bytes) -> Container | None:
    try:
        return unpack_container(raw)
    except WireError:
        return None


def _check_parent(links: ChainLinks, position: ChainPosition, what: str, parent_id: bytes, *, first: bool) -> bytes:
    """The ID that the block inside must name as its parent."""
    if position.number == 0:
        is_genesis = links.is_genesis or position.block_id.__eq__
        if not is_genesis(parent_id):
            raise InvalidContainer(f"{what} follows {id_text(parent_id)}, which is not this network's genesis")
        return parent_id
    if parent_id != position.container_id:
        kind = UnlinkedContainer if first else InvalidContainer
        raise kind(
            f"{what} follows {id_text(parent_id)}, but container {position.number - 1} is "
            f"{id_text(position.container_id)}"
        )
    return position.block_id


def _times(position: ChainPosition, what: str, wrapping: Container | None) -> ChainPosition:
    """A wrapping is never older than its parent's, in seconds or in P-Chain height.

    Its time and that of the block inside are two readings of one clock, which no rule ties together: P falls behind
    when validators change, and a second may pass between the two.
    """
    if wrapping is None or wrapping.kind == OPTION:
        return position
    if wrapping.timestamp < position.timestamp:
        raise InvalidContainer(f"{what} is from {wrapping.timestamp}, before the {position.timestamp} of its parent")
    if wrapping.p_chain_height < position.p_chain_height:
        raise InvalidContainer(
            f"{what} names P-Chain height {wrapping.p_chain_height}, below the {position.p_chain_height} of its parent"
        )
    return position._replace(timestamp=wrapping.timestamp, p_chain_height=wrapping.p_chain_height)
