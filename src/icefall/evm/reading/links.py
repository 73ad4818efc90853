"""How chains are linked: messages between them name the other chain by its blockchain ID, users by its EVM chain ID."""

from collections.abc import Iterable, Mapping

from icefall.errors import NotFound
from icefall.evm.reading.directory import ChainDirectory, EvmChain, PlatformChains
from icefall.wire.errors import WireError
from icefall.wire.ids import id_from_text

_EVM_ID_MAX = (1 << 63) - 1


class BlockchainIds:
    """The blockchain IDs of the indexed chains. Here they are bytes; EVM chain IDs are texts, as the API shows them."""

    def __init__(self, blockchain_ids: Mapping[str, bytes], platform: PlatformChains | None = None) -> None:
        """`blockchain_ids`: by EVM chain ID; empty: unknown."""
        self._blockchain_ids = blockchain_ids
        self._chain_ids = {one: chain for chain, one in blockchain_ids.items() if one}
        self._platform = platform
        self._not_indexed: dict[bytes, str] = {}

    def blockchain_id(self, chain: str) -> bytes:
        """Return that of an indexed chain; empty if it is unknown."""
        return self._blockchain_ids.get(chain, b"")

    def is_indexed(self, blockchain_id: bytes) -> bool:
        return blockchain_id in self._chain_ids

    def evm_chain_id(self, blockchain_id: bytes) -> str:
        """Return the EVM chain ID of a chain that is indexed, or was learned; empty if it is unknown."""
        return self._chain_ids.get(blockchain_id) or self._not_indexed.get(blockchain_id, "")

    async def learn(self, blockchain_ids: Iterable[bytes]) -> None:
        """Ask the P-Chain for those that are not indexed. One that has the EVM chain ID of an indexed chain, whose
        blockchain ID is known to be another, only calls itself so."""
        unknown = sorted({one for one in blockchain_ids if one and one not in self._chain_ids})
        if unknown and self._platform is not None:
            found = await self._platform.evm_chain_ids(unknown)
            self._not_indexed |= {one: chain for one, chain in found.items() if not self.blockchain_id(chain)}

    async def find(self, name: str, chains: ChainDirectory) -> tuple[bytes, str]:
        """Find a chain by the name in a request: its blockchain ID, and its EVM chain ID if it is indexed. NotFound
        where neither the indexed chains nor the P-Chain have one such chain."""
        try:
            return id_from_text(name), ""
        except WireError:
            pass
        try:
            chain = (await chains.find(name)).info.id
        except NotFound:
            number = int(name) if name.isascii() and name.isdigit() and len(name) < len(str(_EVM_ID_MAX)) else None
            created = () if number is None or self._platform is None else await self._platform.blockchain_ids(number)
            if len(created) != 1:
                raise
            return created[0], ""
        return self.blockchain_id(chain), chain


async def links_of(chains: ChainDirectory, only: Iterable[EvmChain] | None = None) -> BlockchainIds:
    """The blockchain IDs of all chains, or of some of them."""
    texts = {chain.info.id: await chain.blockchain_id() for chain in (chains.all() if only is None else only)}
    found = {chain: id_from_text(text) if text else b"" for chain, text in texts.items()}
    return BlockchainIds(found, chains.platform)
