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
        chain = self._by_name.get(name)
        if chain is not None:
            return chain.chain_id
        stored = await self._reader.chain_of(name)
        if stored is not None:
            return stored
        raise CallFailed(f"there is no ID with alias: {name}")

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
