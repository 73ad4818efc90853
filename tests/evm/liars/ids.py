"""Tokens with IDs that lie: contracts of NFTs, and of amounts of IDs."""

import random
from collections.abc import Callable, Sequence

from tests.evm.liars.contracts import Move, run_data

from icefall.evm.contract_calls import balance_of_id, owner_of
from icefall.evm.layouts.formulas import NAMESPACES, Order, StorageLayout
from icefall.evm.model import ERC721, ERC1155
from icefall.upstream.evm.state import ContractCall

ZERO = bytes(20)
IDS = range(1, 7)
AMOUNT_MIN = 1  # of a log: its kind is the amount and 1, and 1 is an NFT


def _layout(standard: int, base: int | bytes, *, holder_first: bool = False) -> StorageLayout:
    place = base if isinstance(base, bytes) else base.to_bytes(32, "big")
    bits = 160 if standard == ERC721 else 256
    return StorageLayout(standard, Order.KEY_FIRST, place, 0, bits, 0, holder_first)


ID_LAYOUTS = {
    "erc721": _layout(ERC721, 2),
    "erc721 namespaced": _layout(ERC721, NAMESPACES[1][:-1] + b"\2"),
    "erc721 reverts": _layout(ERC721, 2),
    "erc1155": _layout(ERC1155, 0),
    "erc1155 by holder": _layout(ERC1155, 6, holder_first=True),
    "erc1155 namespaced": _layout(ERC1155, NAMESPACES[2]),
    "erc721a": _layout(ERC721, 4),  # the owner of the nearest lower ID that has one: no proof
}
_SEARCHED = "erc721a"


class UntrueIds:
    """One contract. It writes what it means to hold, and logs that or something else."""

    def __init__(self, code: str, holders: Sequence[bytes], draw: random.Random) -> None:
        self.code = code
        self.layout = ID_LAYOUTS[code]
        self._holders = holders
        self._draw = draw
        self._owners: dict[int, bytes] = {}
        self._held: dict[tuple[bytes, int], int] = {}

    @property
    def has_owners(self) -> bool:
        return self.layout.standard == ERC721

    @property
    def is_provable(self) -> bool:
        return self.code != _SEARCHED

    def first(self) -> bytes:
        """Mint the first ID, honestly; of an ERC-721A all of them, with one slot."""
        if not self.is_provable:
            self._owners = dict.fromkeys(IDS, self._holders[0])
            moves = [Move(ZERO, self._holders[0], token_id) for token_id in IDS]
            return run_data(
                {self.layout.slot_of(b"", IDS[0]): int.from_bytes(self._holders[0], "big")}, moves, nft=True
            )
        return self._moved(self._holders[0], IDS[0], ZERO, logged=(ZERO, self._holders[0], IDS[0]))

    def next(self) -> bytes:
        if not self.is_provable:
            return self._searched_move()
        token_id, to, other = self._draw.choice(IDS), self._draw.choice(self._holders), self._draw.choice(self._holders)
        sender = self._owners.get(token_id, ZERO) if self.has_owners else self._draw.choice(self._holders)
        tricks: list[Callable[[], bytes]] = [
            lambda: self._moved(to, token_id, sender, logged=(sender, to, token_id)),
            lambda: self._moved(to, token_id, sender, logged=None),  # without a log
            lambda: self._moved(to, token_id, sender, logged=(sender, other, token_id)),  # to somebody else
            lambda: run_data({}, [self._log(sender, to, token_id)], nft=self.has_owners),  # nothing moved
            lambda: self._moved(ZERO, token_id, sender, logged=None),  # burned
            lambda: run_data({self._draw.randbytes(32): self._draw.randrange(1, 10**9)}),
        ]
        return self._draw.choices(tricks, [5, 1, 1, 1, 1, 1])[0]()

    def _searched_move(self) -> bytes:
        """Move an ID of an ERC-721A, honestly: the next one gets a slot of its own, as it stays where it was."""
        token_id, to = self._draw.choice(IDS), self._draw.choice(self._holders)
        sender = self._owners[token_id]
        self._owners[token_id] = to
        slots = {self.layout.slot_of(b"", token_id): int.from_bytes(to, "big")}
        if token_id + 1 in self._owners:
            slots[self.layout.slot_of(b"", token_id + 1)] = int.from_bytes(self._owners[token_id + 1], "big")
        return run_data(slots, [Move(sender, to, token_id)], nft=True)

    def calls(self, token: bytes, holders: Sequence[bytes]) -> dict[tuple[bytes, int], ContractCall]:
        """What may be asked, by holder (none for an NFT) and ID."""
        if self.has_owners:
            return {(b"", token_id): owner_of(token, token_id) for token_id in IDS}
        return {(who, one): balance_of_id(token, who, one) for who in holders for one in IDS}

    def _log(self, sender: bytes, to: bytes, token_id: int, amount: int = AMOUNT_MIN) -> Move:
        return Move(sender, to, token_id, None if self.has_owners else amount)

    def _moved(self, to: bytes, token_id: int, sender: bytes, logged: tuple[bytes, bytes, int] | None) -> bytes:
        amount = self._draw.randrange(AMOUNT_MIN, 10**6)
        slots: dict[bytes, int] = {}
        if self.has_owners:
            self._owners[token_id] = to
            slots[self.layout.slot_of(b"", token_id)] = int.from_bytes(to, "big")
        else:
            for who, change in ((sender, -amount), (to, amount)):
                if who != ZERO:
                    self._held[who, token_id] = max(0, self._held.get((who, token_id), 0) + change)
                    slots[self.layout.slot_of(who, token_id)] = self._held[who, token_id]
        moves = [self._log(*logged, amount)] if logged is not None else []
        return run_data(slots, moves, nft=self.has_owners)
