"""Contract info that the derivation needs: read from state when first needed, then kept current.

Code is read as of the block before a batch and followed through its changes; the token standard of a contract is read
as of the first block that needs it.
"""

from collections.abc import Iterable, Sequence

from icefall.evm.indexing.decoder import BlockOutline
from icefall.evm.model import DECIMALS_MAX, ContractInfo, TokenKind
from icefall.evm.state_calls import StateSource, address_of, decimals, owner_of, uint_of
from icefall.evm.storing.store import ChainStore

_KEPT = 100_000


class ContractCache:
    """Of one chain. Call `forget` whenever blocks it has seen are not stored after all."""

    def __init__(self, store: ChainStore, state: StateSource, messenger: bytes, native_asset_id: bytes = b"") -> None:
        self._store = store
        self._state = state
        self._messenger = messenger
        self.native_asset_id = native_asset_id
        self._code: dict[bytes, bool] = {}
        self._kinds: dict[bytes, TokenKind] = {}
        self._redeployed: set[bytes] = set()  # their stored kind may be that of the contract before

    def forget(self) -> None:
        self._code.clear()
        self._kinds.clear()
        self._redeployed.clear()

    def trim(self) -> None:
        """Call only when every block it has seen is stored: what is dropped here is read from the store again."""
        if len(self._code) > _KEPT:
            self._code.clear()

    async def fetch_code(self, blocks: Sequence[BlockOutline]) -> dict[bytes, bool]:
        """Reads unknown code as of the block before these; the result is stored with the blocks that need it."""
        unknown_addresses = []
        followed = all(one.has_diffs for one in blocks)  # without diffs not every change is seen: it is read each time
        for address in dict.fromkeys(address for one in blocks for address in sorted(one.lookups.code)):
            if followed and address in self._code:
                continue
            stored = self._store.has_code(address) if followed else None
            if stored is None:
                unknown_addresses.append(address)
            else:
                self._code[address] = stored
        if not unknown_addresses:
            return {}
        first = blocks[0]
        codes = await self._state.codes(unknown_addresses, first.parent_hash if first.number else first.block_hash)
        found = {address: bool(code) for address, code in zip(unknown_addresses, codes, strict=True)}
        self._code.update(found)
        return found

    async def fetch_kinds(self, block: BlockOutline) -> list[tuple[bytes, int, str]]:
        """Reads unknown token standards; (contract, block, TokenKind) of each."""
        found = []
        for address, token_id in block.lookups.kinds.items():
            if address in self._kinds:
                continue
            stored = None if address in self._redeployed else self._store.token_kind(address)
            if stored is None:
                stored = (await self._kind(address, token_id, block.block_hash)).value
                found.append((address, block.number, stored))
            self._kinds[address] = TokenKind(stored)
        return found

    def fixed(self) -> ContractInfo:
        """What needs no lookup."""
        return ContractInfo(messenger=self._messenger, native_asset_id=self.native_asset_id)

    def info_for(self, blocks: Sequence[BlockOutline]) -> ContractInfo:
        """What `derive` needs for the blocks; all of it must have been fetched."""
        code = {address: self._code[address] for one in blocks for address in one.lookups.code}
        kinds = {address: self._kinds[address] for one in blocks for address in one.lookups.kinds}
        return ContractInfo(code, kinds, self._messenger, self.native_asset_id)

    def forget_kinds(self, deployed: Iterable[bytes]) -> None:
        """Of contracts that a derived block deployed, perhaps anew and as another kind."""
        for address in deployed:
            self._redeployed.add(address)
            self._kinds.pop(address, None)

    def update_code(self, code: Sequence[tuple[bytes, bool]]) -> None:
        """With the changes of a derived block."""
        self._code.update(code)

    async def _kind(self, address: bytes, token_id: int | None, at: bytes) -> TokenKind:
        (answer,) = await self._state.answers([decimals(address)], at)
        if uint_of(answer, DECIMALS_MAX) is not None:
            return TokenKind.ERC20
        if token_id is None:
            return TokenKind.NEITHER
        (answer,) = await self._state.answers([owner_of(address, token_id)], at)
        return TokenKind.NEITHER if address_of(answer) is None else TokenKind.ERC721
