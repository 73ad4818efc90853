"""Verifies containers of another node as far as possible without the chain's state.

`verify` is pure. What it accepts is linked by hashes to what we have accepted before, back to our own genesis.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from icefall.upstream.node import FetchedContainer
from icefall.wire.container.coreth import unpack_coreth_block
from icefall.wire.container.platform import unpack_platform_block
from icefall.wire.container.proposer import OPTION, Container, Export, unpack_container
from icefall.wire.errors import WireError
from icefall.wire.ids import hash256, id_text
from icefall.wire.packer import Layout, reader
from icefall.wire.text import cb58

_X_BLOCK = 20
_X_HEAD = Layout(32, "uint64", "uint64")


class InvalidContainer(Exception):
    """A container that is provably wrong: its upstream is disabled."""


class UnlinkedContainer(InvalidContainer):
    """The first container of a batch does not follow ours: it is invalid, or the upstream has another history."""


class UnknownContainer(Exception):
    """A container with a valid ID, but of a type we do not know. `readable` are the containers before it; `unread` is
    itself, where it can be stored all the same."""

    def __init__(
        self,
        text: str,
        container_id_text: str,
        readable: "list[VerifiedContainer]",
        unread: "VerifiedContainer | None" = None,
    ) -> None:
        super().__init__(text)
        self.container_id_text = container_id_text
        self.readable = readable
        self.unread = unread


class ContainerRejected(Exception):
    """The chain's own rules do not allow a container."""


class ImportPending(Exception):
    """An import of an output that its source chain has not exported yet, as far as we have followed it."""


class MissingTransaction(Exception):
    """It spends an output of a transaction that we never received: the index we read is not complete."""


class ChainStopped(Exception):
    """This chain cannot be followed further; what has been accepted is still served."""


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
    unread: str = ""  # P only: why the block inside cannot be read, so that its exports are not known


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

    def container_id_at(self, number: int) -> bytes | None:
        """The ID of an accepted container; None where it is not kept."""
        ...

    async def accept(self, batch: Sequence[VerifiedContainer]) -> None:
        """Commit a batch in one transaction.

        ContainerRejected: one breaks a rule. ImportPending: an import waits for an export. MissingTransaction: what
        came before the blocks is not complete. Then only the containers before it are stored, as `count` shows.
        """
        ...


class ChainPosition(NamedTuple):
    """The position of the next container. `timestamp` and `p_chain_height` are the last container's, if known."""

    number: int
    container_id: bytes
    block_id: bytes
    timestamp: int = 0
    p_chain_height: int = 0


class ChainLinks(NamedTuple):
    """What a chain's containers must link to. `is_genesis` checks block 0 where it depends on the genesis time."""

    name: str
    x_chain_id: bytes
    is_genesis: Callable[[bytes], bool] | None = None


class _BlockHead(NamedTuple):
    """The fields of a block that link it into the chain, and its exports."""

    block_id: bytes
    parent_id: bytes
    height: int
    time: int | None
    exports: tuple[Export, ...] = ()


def _asset_block(inner: bytes, x_chain_id: bytes) -> _BlockHead:
    """Only the head: the rest is decoded when it is executed."""
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
    """The verified containers of a batch that begins at `position`, and the position after it. InvalidContainer or
    UnknownContainer for the first that fails."""
    run: list[VerifiedContainer] = []
    for fetched in batch:
        try:
            offered, position = _next(links, position, fetched, first=not run)
        except WireError as error:
            text = unreadable_text(links.name, fetched.number, fetched.id_text, str(error))
            raise UnknownContainer(text, fetched.id_text, run) from error
        if offered.unread:
            text = unreadable_text(links.name, fetched.number, fetched.id_text, offered.unread)
            raise UnknownContainer(text, fetched.id_text, run, offered)
        run.append(offered)
    return run, position


def unreadable_text(chain: str, number: int, container_id_text: str, reason: str) -> str:
    """The reason for which a chain stops at a container of an unknown type."""
    return f"{chain} container {number} ({container_id_text}) cannot be read: {reason}"


class _Parts(NamedTuple):
    """A decoded container. `wrapping` is None for a block from before there were proposer containers."""

    container_id: bytes
    parent_id: bytes
    wrapping: Container | None
    inner: bytes
    block: _BlockHead | WireError


def identify(links: ChainLinks, fetched: FetchedContainer) -> bytes:
    """The ID of a container whose parent we do not have: only its own bytes can be checked."""
    return _decoded(links, fetched).container_id


def _decoded(links: ChainLinks, fetched: FetchedContainer) -> _Parts:
    """The decoded container, if its bytes match its ID and number."""
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
            f"{what} is labelled {fetched.id_text[:80]}, but its bytes are those of {id_text(container_id)}"
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
    container_id, parent_id, wrapping, inner, block = _decoded(links, fetched)
    parent_block_id = _check_parent(links, position, what, parent_id, first=first)
    after = _times(position, what, wrapping)
    unread = ""
    if isinstance(block, WireError):
        if links.name == "X":
            raise InvalidContainer(f"{what} holds no block: {block}")
        if links.name == "C":
            raise block
        unread, block = str(block), _BlockHead(hash256(inner), parent_block_id, fetched.number + 1, None)
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
        unread=unread,
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
    """The ID that the inner block must name as its parent."""
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
    """Timestamp and P-Chain height of containers never decrease.

    No rule relates the time of a container to that of its inner block: P falls behind when validators change, and a
    second may pass between the two.
    """
    if wrapping is None or wrapping.type_id == OPTION:
        return position
    if wrapping.timestamp < position.timestamp:
        raise InvalidContainer(f"{what} is from {wrapping.timestamp}, before the {position.timestamp} of its parent")
    if wrapping.p_chain_height < position.p_chain_height:
        raise InvalidContainer(
            f"{what} names P-Chain height {wrapping.p_chain_height}, below the {position.p_chain_height} of its parent"
        )
    return position._replace(timestamp=wrapping.timestamp, p_chain_height=wrapping.p_chain_height)
