"""What the derivation must know of contracts: asked of state once, at first sight, and then kept current.

Code is asked as of the block before the run and followed through the run's own changes; what kind of token a contract
is, as of the block that first showed it.
"""

from collections.abc import Mapping, Sequence

from icefall.evm.derive import questions
from icefall.evm.model import ContractFacts, TokenKind
from icefall.evm.settling import StateSource
from icefall.evm.store import ChainStore
from icefall.evm.token_calls import address_of, decimals, owner_of, uint_of
from icefall.wire.evm_types import FullBlock

_DECIMALS_MAX = 255
_KEPT = 100_000


class FactBook:
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

    async def ask_code(self, run: Sequence[FullBlock]) -> dict[bytes, bool]:
        """Answers not known before, as of the block before the run; each is stored with the block that needs it."""
        if len(self._code) > _KEPT:
            self._code.clear()
        open_ones = []
        for address in dict.fromkeys(address for full in run for address in sorted(questions(full).code)):
            if address in self._code:
                continue
            stored = self._store.has_code(address)
            if stored is None:
                open_ones.append(address)
            else:
                self._code[address] = stored
        if not open_ones:
            return {}
        first = run[0].block
        at = first.parent_hash if first.number else first.block_hash
        codes = await self._state.codes(open_ones, at)
        asked = {address: bool(code) for address, code in zip(open_ones, codes, strict=True)}
        self._code.update(asked)
        return asked

    async def of(self, full: FullBlock) -> tuple[ContractFacts, list[tuple[bytes, int, str]]]:
        """What `derive` needs for the block, and the kinds that were not known before."""
        asked = await self._ask_kinds(full, questions(full).kinds)
        facts = ContractFacts(self._code, self._kinds, self._messenger, self.native_asset_id)
        return facts, asked

    def learn(self, code: Sequence[tuple[bytes, bool]]) -> None:
        """What a derived block changed."""
        self._code.update(code)

    async def _ask_kinds(self, full: FullBlock, wanted: Mapping[bytes, int | None]) -> list[tuple[bytes, int, str]]:
        asked = []
        for address, token_id in wanted.items():
            if address in self._kinds:
                continue
            stored = self._store.token_kind(address)
            if stored is None:
                stored = (await self._kind(address, token_id, full.block.block_hash)).value
                asked.append((address, full.block.number, stored))
            self._kinds[address] = TokenKind(stored)
        return asked

    async def _kind(self, address: bytes, token_id: int | None, at: bytes) -> TokenKind:
        (answer,) = await self._state.answers([decimals(address)], at)
        if uint_of(answer, _DECIMALS_MAX) is not None:
            return TokenKind.ERC20
        if token_id is None:
            return TokenKind.NEITHER
        (answer,) = await self._state.answers([owner_of(address, token_id)], at)
        return TokenKind.NEITHER if address_of(answer) is None else TokenKind.ERC721
