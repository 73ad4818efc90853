"""What the derivation must know of contracts: asked of state once, at first sight, and then kept current.

Code is asked as of the block before a batch and followed through its changes; what kind of token a contract
is, as of the block that first showed it.
"""

from collections.abc import Sequence

from icefall.evm.auditing.token_calls import address_of, decimals, owner_of, uint_of
from icefall.evm.following.decoder import BlockOutline
from icefall.evm.following.settling import StateSource
from icefall.evm.model import ContractFacts, TokenKind
from icefall.evm.storing.store import ChainStore

_DECIMALS_MAX = 255
_KEPT = 100_000


class ContractCache:
    """Of one chain. `forget` whenever blocks that were shown to it are not stored after all."""

    def __init__(self, store: ChainStore, state: StateSource, messenger: bytes, native_asset_id: bytes = b"") -> None:
        self._store = store
        self._state = state
        self._messenger = messenger
        self.native_asset_id = native_asset_id
        self._code: dict[bytes, bool] = {}
        self._kinds: dict[bytes, TokenKind] = {}

    def forget(self) -> None:
        self._code.clear()
        self._kinds.clear()

    def trim(self) -> None:
        """Only when everything that was shown is stored: what is forgotten is read again from there."""
        if len(self._code) > _KEPT:
            self._code.clear()

    async def ask_code(self, blocks: Sequence[BlockOutline]) -> dict[bytes, bool]:
        """Answers not known before, as of the block before these; each is stored with the block that needs it."""
        open_ones = []
        followed = all(one.has_diffs for one in blocks)  # without diffs a delegation is not seen: it is asked each time
        for address in dict.fromkeys(address for one in blocks for address in sorted(one.questions.code)):
            if followed and address in self._code:
                continue
            stored = self._store.has_code(address) if followed else None
            if stored is None:
                open_ones.append(address)
            else:
                self._code[address] = stored
        if not open_ones:
            return {}
        first = blocks[0]
        codes = await self._state.codes(open_ones, first.parent_hash if first.number else first.block_hash)
        asked = {address: bool(code) for address, code in zip(open_ones, codes, strict=True)}
        self._code.update(asked)
        return asked

    async def ask_kinds(self, block: BlockOutline) -> list[tuple[bytes, int, str]]:
        """Answers not known before, with the block they are of."""
        asked = []
        for address, token_id in block.questions.kinds.items():
            if address in self._kinds:
                continue
            stored = self._store.token_kind(address)
            if stored is None:
                stored = (await self._kind(address, token_id, block.block_hash)).value
                asked.append((address, block.number, stored))
            self._kinds[address] = TokenKind(stored)
        return asked

    def of(self, blocks: Sequence[BlockOutline]) -> ContractFacts:
        """What `derive` needs for the blocks; everything must have been asked."""
        code = {address: self._code[address] for one in blocks for address in one.questions.code}
        kinds = {address: self._kinds[address] for one in blocks for address in one.questions.kinds}
        return ContractFacts(code, kinds, self._messenger, self.native_asset_id)

    def learn(self, code: Sequence[tuple[bytes, bool]]) -> None:
        """What a derived block changed."""
        self._code.update(code)

    async def _kind(self, address: bytes, token_id: int | None, at: bytes) -> TokenKind:
        (answer,) = await self._state.answers([decimals(address)], at)
        if uint_of(answer, _DECIMALS_MAX) is not None:
            return TokenKind.ERC20
        if token_id is None:
            return TokenKind.NEITHER
        (answer,) = await self._state.answers([owner_of(address, token_id)], at)
        return TokenKind.NEITHER if address_of(answer) is None else TokenKind.ERC721
