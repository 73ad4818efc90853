"""What the P-Chain knows of EVM chains, where the store of a node is among the stores of this installation."""

import asyncio
import time
from collections.abc import Sequence

from icefall.compose.stores import StoreName, Stores
from icefall.db.engine import BlockingReader, StoreDenied, StoreError
from icefall.pchain.subnet_lists import SubnetLists

_LOOK_EVERY_S = 10.0  # for the store of a node that was not there


class StoredPlatform:
    """The EVM chains that the P-Chain has created: none where no node has a store, or while it cannot be read, because
    what asks does its own work also without them."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._reader: BlockingReader | None = None
        self._look_at = 0.0

    async def blockchain_ids(self, evm_chain_id: int) -> Sequence[bytes]:
        """The blockchains whose genesis has this EVM chain ID, oldest first."""
        try:
            lists = await self._lists()
            return await lists.blockchain_ids(evm_chain_id) if lists is not None else ()
        except StoreError as error:
            self._look_later(error)
            return ()

    async def evm_chain_ids(self, chain_ids: Sequence[bytes]) -> dict[bytes, str]:
        """The EVM chain IDs of these blockchains, as far as they are known."""
        try:
            lists = await self._lists() if chain_ids else None
            found = await lists.evm_chain_ids(chain_ids) if lists is not None else {}
        except StoreError as error:
            self._look_later(error)
            return {}
        return {chain_id: str(number) for chain_id, number in found.items()}

    async def _lists(self) -> SubnetLists | None:
        if self._reader is None and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_EVERY_S
            if StoreName("node") in await asyncio.to_thread(self._stores.names):
                self._reader = self._stores.node_reader()
        return SubnetLists(self._reader) if self._reader is not None else None

    def _look_later(self, error: StoreError) -> None:
        """Never again where the grants of a reader leave the node out."""
        self.close()
        self._look_at = float("inf") if isinstance(error, StoreDenied) else time.monotonic() + _LOOK_EVERY_S

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
