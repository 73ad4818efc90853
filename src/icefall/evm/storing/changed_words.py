"""The words of a token's storage that a block changed, and which of them are neither a balance nor an allowance: any
other may be the token's name, symbol or decimals, wherever the contract stores them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from icefall.evm.layouts.formulas import NAMESPACES, WORD
from icefall.evm.model import ZERO_ADDRESS
from icefall.evm.packed import BalanceChanges, TokenStorage
from icefall.wire.errors import WireError
from icefall.wire.evm.rlp import keccak256
from icefall.wire.evm.storage import Words, key_of, slot_changes, word_of

KeyedWords = Sequence[tuple[str, Words]]  # words by key, before and after the block
_SMALL_KEY = "0x" + "00" * 24  # how the key of a plain variable begins
_NAMESPACE_TEXTS = frozenset("0x" + start.hex()[:-2] for start in NAMESPACES)
_STRINGS = 65  # variables whose text may be too long for a word
_STRING_WORDS = 4  # 128 characters: a longer name is cut
_EVEN = dict(zip("13579bdf", "02468ace", strict=True))


def _string_keys() -> Iterator[str]:
    """The slots in which variables have texts that are too long for a word, and the first elements of arrays."""
    for number in range(_STRINGS):
        start = int.from_bytes(keccak256(number.to_bytes(WORD, "big")), "big")
        yield from (f"0x{(start + place) % (1 << 256):064x}" for place in range(_STRING_WORDS))


_STRING_KEYS = frozenset(_string_keys())


def is_plain_variable(key: str) -> bool:
    """Tell whether a slot is that of a variable, and so not in a mapping: it has a small number, is in a known
    namespace, or has a part of a long text."""
    return key.startswith(_SMALL_KEY) or key[:-2] in _NAMESPACE_TEXTS or key in _STRING_KEYS


def changed_slots(storage: TokenStorage) -> dict[str, Words]:
    """The slots that a block changed, by key. WireError where their keys are no words."""
    found = slot_changes(storage.texts)
    if len(key_of("0x" + "".join([key[2:] for key in found]))) != WORD * len(found):
        raise WireError("storage: a key that is no word")
    if storage.layout.ignores_bit:
        found = {f"{key[:3]}{_EVEN.get(key[3], key[3])}{key[4:]}": words for key, words in found.items()}
    return found


class _Logged:
    """What logs say that the storage of one token changed by."""

    def __init__(self) -> None:
        self.supply = 0
        self.balances: Counter[int] = Counter()  # differences of balances, and of owners as numbers
        self.others: Counter[int] = Counter()  # of allowances that were spent, and of how many NFTs each has
        self.approved: Counter[int] = Counter()  # allowances as they are stored


class LoggedChanges:
    """What the logs of a block say that storage changed by. Each change that they tell explains one word."""

    def __init__(self, changes: BalanceChanges, approvals: Iterable[tuple[bytes, int]]) -> None:
        self._changes = changes
        self._approvals = approvals
        self._by_token: defaultdict[bytes, _Logged] = defaultdict(_Logged)  # made when it is needed

    def leave_some(self, token: bytes, words: KeyedWords, *, has_layout: bool) -> bool:
        """Tell whether they leave some of these words unexplained. `has_layout`: no balances of known holders are among
        the words."""
        try:
            return self._leave_some(token, words, has_layout=has_layout)
        except WireError:  # what an upstream sent cannot be read
            return True

    def _leave_some(self, token: bytes, words: KeyedWords, *, has_layout: bool) -> bool:
        if not self._by_token:
            self._read()
        logged = self._by_token.get(token) or _Logged()
        is_supply_left = True
        for key, (word_before, word_after) in words:
            after = word_of(word_after)
            change = after - word_of(word_before)
            if is_plain_variable(key):
                if not is_supply_left or change != logged.supply:
                    return True
                is_supply_left = False
            elif not (
                _taken(logged.approved, after)
                or _taken(logged.others, change)
                or (not has_layout and _taken(logged.balances, change))
            ):
                return True
        return False

    def _read(self) -> None:
        of = self._by_token
        for held in self._changes.erc20_deltas:
            if held.holder != ZERO_ADDRESS:
                logged = of[held.token]
                logged.supply += held.delta
                logged.balances[held.delta] += 1
                if held.delta < 0:
                    logged.others[held.delta] += 1
        for one in (one for changes in self._changes.id_deltas for one in changes):
            of[one.token].balances[one.delta] += 1
        counts: Counter[tuple[bytes, bytes]] = Counter()
        for nft in self._changes.nft_owners:
            change = int.from_bytes(nft.owner, "big") - int.from_bytes(nft.owner_before, "big")
            of[nft.token].balances[change] += 1
            counts[nft.token, nft.owner_before] -= 1
            counts[nft.token, nft.owner] += 1
        for (token, _), count in counts.items():
            of[token].others[count] += 1
        for token, value in self._approvals:
            of[token].approved[value] += 1


def _taken(explained: Counter[int], value: int) -> bool:
    """Take one of these away, if there is one."""
    if explained[value] <= 0:
        return False
    explained[value] -= 1
    return True
