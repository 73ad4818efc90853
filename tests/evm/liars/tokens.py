"""Tokens that lie: each knows what it holds, and makes the call data of transactions whose logs are true or not."""

import random
from collections.abc import Callable, Sequence

from tests.evm.liars.contracts import DECIMALS_SLOT, NAME_SLOT, Move, run_data

from icefall.evm.layouts.formulas import NAMESPACES, Order, StorageLayout
from icefall.evm.model import ERC20

ZERO = bytes(20)
_INDEX_SLOT = (5).to_bytes(32, "big")


def _layout(order: Order, base: int | bytes, offset: int = 0, bits: int = 256, shift: int = 0) -> StorageLayout:
    place = base if isinstance(base, bytes) else base.to_bytes(32, "big")
    return StorageLayout(ERC20, order, place, offset, bits, shift)


# By the name of its code: where the balances are. The last is refused by a proof: it holds shares.
LAYOUTS = {
    "openzeppelin 4": _layout(Order.KEY_FIRST, 0),
    "openzeppelin 5": _layout(Order.KEY_FIRST, NAMESPACES[0]),
    "solmate": _layout(Order.KEY_FIRST, 3),
    "vyper": _layout(Order.BASE_FIRST, 7),
    "weth9": _layout(Order.KEY_FIRST, 3),
    "solady": _layout(Order.PACKED_ADDRESS, 0x87A211A2),
    "struct": _layout(Order.KEY_FIRST, 2, offset=1),
    "packed": _layout(Order.KEY_FIRST, 1, bits=128),
    "packed high": _layout(Order.KEY_FIRST, 1, bits=128, shift=128),
    "flagged": _layout(Order.KEY_FIRST, 9, bits=255),
    "rebased by index": _layout(Order.KEY_FIRST, 0),
}
REFUSED = ("rebased by index",)


class UntrueToken:
    """One token. `is_untrue`: whether it may do anything but honest transfers."""

    def __init__(self, code: str, holders: Sequence[bytes], draw: random.Random, *, is_untrue: bool) -> None:
        self.code = code
        self.is_untrue = is_untrue
        self.layout = LAYOUTS[code]
        self._holders = holders
        self._draw = draw
        self._held: dict[bytes, int] = {}
        self._noise: dict[bytes, int] = {}
        self._index = 1
        self._renamed = 0

    @property
    def is_provable(self) -> bool:
        return self.code not in REFUSED

    # -- what it does ------------------------------------------------------------------------------------------

    def first(self) -> bytes:
        """Mint to some, so that it is known as a token, and honest."""
        some = self._holders[:4]
        slots = {_INDEX_SLOT: 1} if self.code in REFUSED else {}
        for holder in some:
            self._held[holder] = 10**9
        moves = [Move(ZERO, holder, 10**9) for holder in some]
        return run_data(slots | self._slots(some) | self._name(), moves)

    def next(self) -> bytes:
        """The next transaction: mostly an honest transfer, and a trick once in a while."""
        if not self.is_untrue or self._draw.random() < 0.7:
            return self._transfer()
        tricks: list[Callable[[], bytes]] = [
            self._credit,
            self._theft,
            self._fee,
            self._burn,
            self._approve,
            self._rename,
        ]
        tricks.append(self._rebase_by_index if self.code in REFUSED else self._rebase)
        return self._draw.choice(tricks)()

    def _transfer(self) -> bytes:
        sender, to = self._rich(), self._anyone()
        amount = self._move(sender, to)
        return run_data(self._slots([sender, to]), [Move(sender, to, amount)])

    def _fee(self) -> bytes:
        """A transfer of which a part goes to a keeper whom no log names."""
        sender, to, keeper = self._rich(), self._anyone(), self._holders[-1]
        amount = self._move(sender, to)
        fee = min(amount // 3, self._held[to])
        self._held[to] -= fee
        self._held[keeper] = self._held.get(keeper, 0) + fee
        return run_data(self._slots([sender, to, keeper]), [Move(sender, to, amount)])

    def _theft(self) -> bytes:
        """Take from one, and log the transfer of another."""
        victim, thief, other = self._rich(), self._anyone(), self._anyone()
        amount = self._move(victim, thief)
        return run_data(self._slots([victim, thief]), [Move(other, thief, amount // 2)])

    def _credit(self) -> bytes:
        """Mint without a log, perhaps to somebody whom no log has named."""
        to = self._anyone()
        self._held[to] = self._held.get(to, 0) + self._draw.randrange(1, 10**6)
        return run_data(self._slots([to]))

    def _burn(self) -> bytes:
        """Take everything from somebody without a log."""
        victim = self._rich()
        self._held[victim] = 0
        return run_data(self._slots([victim]))

    def _rebase(self) -> bytes:
        """Write the slot of every holder."""
        self._held = {holder: amount * 3 // 2 for holder, amount in self._held.items()}
        return run_data(self._slots(self._held))

    def _rebase_by_index(self) -> bytes:
        self._index += 1
        return run_data({_INDEX_SLOT: self._index})

    def _approve(self) -> bytes:
        """Change a slot of a mapping that is no balance."""
        return run_data({self._draw.randbytes(32): self._draw.randrange(10**9)})

    def _rename(self) -> bytes:
        """Another name and other decimals, with a transfer in the same transaction."""
        self._renamed += 1
        sender, to = self._rich(), self._anyone()
        amount = self._move(sender, to)
        return run_data(self._name() | self._slots([sender, to]), [Move(sender, to, amount)])

    # -- parts of it -------------------------------------------------------------------------------------------

    def _rich(self) -> bytes:
        some = [holder for holder, amount in self._held.items() if amount] or [self._holders[0]]
        return self._draw.choice(some)

    def _anyone(self) -> bytes:
        return self._draw.choice(self._holders)

    def _move(self, sender: bytes, to: bytes) -> int:
        amount = self._draw.randrange(self._held.get(sender, 0) + 1)
        self._held[sender] = self._held.get(sender, 0) - amount
        self._held[to] = self._held.get(to, 0) + amount
        return amount

    def _slots(self, holders: Sequence[bytes] | dict[bytes, int]) -> dict[bytes, int]:
        """The slots of holders, with something else in the bits that are no balance."""
        found = {}
        for holder in dict.fromkeys(holders):
            if self.layout.bits < 256:
                self._noise[holder] = self._draw.getrandbits(256)
            whole = ((1 << self.layout.bits) - 1) << self.layout.shift
            other = self._noise.get(holder, 0) & ~whole & ((1 << 256) - 1)
            found[self.layout.slot_of(holder, 0)] = other | self._held.get(holder, 0) << self.layout.shift
        return found

    def _name(self) -> dict[bytes, int]:
        name = f"T{self._renamed:03d}".encode().ljust(32, b"\0")
        return {
            NAME_SLOT.to_bytes(32, "big"): int.from_bytes(name, "big"),
            DECIMALS_SLOT.to_bytes(32, "big"): self._renamed % 19,
        }
