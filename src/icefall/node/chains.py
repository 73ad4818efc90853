"""The chains of this node, and their names.

Built-in names come from the genesis and cannot change; an administrator's come from the store. A chain's names are
listed as the existing node lists them: built-in aliases, its ID, then what an administrator added, in order.
"""

from collections.abc import Iterator, Sequence

import msgspec

from icefall.errors import CallFailed
from icefall.node.store import NodeReader
from icefall.wire.errors import WireError
from icefall.wire.ids import AVM_ID, EVM_ID, PLATFORM_CHAIN, PLATFORM_VM_ID, PRIMARY_NETWORK, id_from_text, id_text


class Chain(msgspec.Struct, frozen=True):
    name: str  # its logger, its check and its first alias
    chain_id: bytes
    vm_id: bytes
    subnet_id: bytes
    aliases: tuple[str, ...]
    genesis_block_id: bytes

    @property
    def id_text(self) -> str:
        return id_text(self.chain_id)


def primary_chains(x_id: bytes, c_id: bytes, x_block0: bytes, p_block0: bytes, c_block0: bytes) -> tuple[Chain, ...]:
    return (
        Chain("P", PLATFORM_CHAIN, PLATFORM_VM_ID, PRIMARY_NETWORK, ("P", "platform"), p_block0),
        Chain("X", x_id, AVM_ID, PRIMARY_NETWORK, ("X", "avm"), x_block0),
        Chain("C", c_id, EVM_ID, PRIMARY_NETWORK, ("C", "evm"), c_block0),
    )


class Chains:
    """Look-ups by name or ID. Nothing an administrator can change is remembered between calls."""

    def __init__(self, chains: Sequence[Chain], reader: NodeReader) -> None:
        self._reader = reader
        self._by_id = {chain.chain_id: chain for chain in chains}
        self._by_name = {name: chain for chain in chains for name in (*chain.aliases, chain.id_text)}

    def __iter__(self) -> Iterator[Chain]:
        return iter(self._by_id.values())

    async def lookup(self, name: str) -> bytes:
        """The ID behind an alias or an ID's text."""
        found = await self.find(name)
        if found is None:
            raise CallFailed(f"there is no ID with alias: {name}")
        return found

    async def find(self, name: str) -> bytes | None:
        """The ID behind an alias or an ID's text; None if there is none."""
        chain = self._by_name.get(name)
        return chain.chain_id if chain is not None else await self._reader.chain_of(name)

    def known(self, name: str) -> bool:
        """Whether a built-in name is taken."""
        return name in self._by_name

    def get(self, chain_id: bytes) -> Chain | None:
        return self._by_id.get(chain_id)

    async def aliases(self, id_as_text: str) -> list[str] | None:
        """All names of a chain given by its ID; None for an ID without a name."""
        try:
            chain_id = id_from_text(id_as_text)
        except WireError as error:
            raise CallFailed(str(error)) from error
        chain = self._by_id.get(chain_id)
        built_in = [*chain.aliases, chain.id_text] if chain else []
        return built_in + await self._reader.aliases_of(chain_id) or None


ALIAS_MAX = 512
ENDPOINT_MAX = 1024
ALIASES_MAX = 1024  # stored, of endpoints and chains together
ALIASES_FOLLOWED_MAX = 16  # for one path: aliases may name aliases
TOO_MANY_FOLLOWED = f"an alias of an alias is followed {ALIASES_FOLLOWED_MAX} times at most"
# Served paths, which can never become aliases. `index/X` can, because only `index/X/block` is served.
NODE_BASES = frozenset(("admin", "health", "info", "metrics"))
_SPLIT_MAX = len("bc/") + ALIAS_MAX  # a chain's alias follows bc/


def splits(path: str) -> list[tuple[str, str]]:
    """The ways to split a path into alias and tail, longest alias first, up to the length limit of an alias."""
    cuts = [(path, "")] if len(path) <= _SPLIT_MAX else []
    at = path.rfind("/", 0, _SPLIT_MAX + 1)
    while at > 0:
        cuts.append((path[:at], path[at:]))
        at = path.rfind("/", 0, at)
    return cuts
