"""Proves on a token's code where it stores balances or owners. It needs no holder and no transfer.

For a key that was seen and for a random one, the slots that balanceOf or ownerOf reads are traced: besides the address
of a proxy's code there must be one, in the token itself, and a known formula of the key. Then the slot is overridden:
all ones and a random number must come back, as far as they are in the value's bits, whatever the time, the number of
the block and the native balance of the contract are, and nothing where the slot is zero. A comparison of values could
not tell shares from balances before the first rebase. What a proof cannot show is a constant holder in the code: so a
sample is audited all the same.
"""

import secrets
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from icefall.evm.contract_calls import holding_call, uint_of
from icefall.evm.layouts.formulas import WORD, StorageLayout, find_bits, find_layout
from icefall.evm.model import ERC721
from icefall.evm.standards import BY_NUMBER
from icefall.upstream.client import MALFORMED
from icefall.upstream.evm.client import Call, Outcome
from icefall.upstream.evm.errors import Reverted, RpcRefusal
from icefall.upstream.evm.state import At
from icefall.wire.errors import WireError
from icefall.wire.evm.hex import data, fixed
from icefall.wire.evm.rlp import keccak256
from icefall.wire.evm.trace_format import IMPLEMENTATION_SLOTS

_IMPLEMENTATION, _, _PROXIABLE = (bytes.fromhex(slot.decode()) for slot in IMPLEMENTATION_SLOTS)
_CODE_SLOTS = (_IMPLEMENTATION, _PROXIABLE)  # a beacon is upgraded in another contract
_CLONE = (bytes.fromhex("363d3d373d3d3d363d73"), bytes.fromhex("5af43d82803e903d91602b57fd5bf3"))  # EIP-1167
_ONES = (1 << 256) - 1
_OWNER_BITS = 160
_BITS_MIN = 16  # of a balance: an answer of fewer is no number of tokens
_FAR = 1 << 33  # seconds and blocks, far ahead of any chain
_CODES_CACHED = 10_000
_TEXT = msgspec.json.Decoder(str)
# Returns the time of the block: an upstream that ignores overrides does not run it, or returns another time.
_CLOCK_CODE = bytes.fromhex("4260005260206000f3")
_CLOCK_ADDRESS = keccak256(b"icefall overrides")[:20]


class _ReadAccount(msgspec.Struct):
    code: str = "0x"
    storage: dict[str, str] = {}


_PRESTATE = msgspec.json.Decoder(dict[str, _ReadAccount])


class ProofSource(Protocol):
    """The state of a chain, with calls that may change it for themselves."""

    async def outcomes(self, calls: Sequence[Call]) -> list[Outcome]: ...

    async def codes(self, addresses: Sequence[bytes], at: At) -> list[bytes]: ...


class SeenKey(NamedTuple):
    """A token, and a key for which it has a value or may have one."""

    token: bytes
    standard: int
    holder: bytes
    token_id: int


class Refused(msgspec.Struct, frozen=True):
    """The reason why a token has no layout that can be proven."""

    reason: str


class CannotProve(Exception):
    """The upstream lacks what a proof needs, now or for good: nothing is known of the token."""


class _SlotRead(NamedTuple):
    """What a call read: its layout with the bits unknown, and the key of the slot."""

    layout: StorageLayout
    slot: bytes


class Prover:
    """Proves layouts of one chain. Contracts with the same code, clones (EIP-1167) too, share a proof, except proxies:
    their code is not all that they run."""

    def __init__(self, source: ProofSource, ignores_bit: Callable[[], bool]) -> None:
        self._source = source
        self._ignores_bit = ignores_bit
        self._by_code: dict[tuple[int, bytes], StorageLayout] = {}
        self._has_overrides: bool | None = None  # None: not tried yet
        self.calls = 0  # since the start

    async def prove(self, seen: SeenKey, at: At) -> StorageLayout | Refused:
        """The layout of a token at a block. NoState where no upstream has its state; CannotProve where none can trace
        calls or override state."""
        if self._has_overrides is False:
            raise CannotProve("no upstream can override state")
        (code,) = await self._source.codes([seen.token], at)
        self.calls += 1
        known = seen.standard, code
        if known in self._by_code:
            return self._by_code[known]
        if not code:
            return Refused("there is no code")
        found = await self._proven(seen, code, at)
        if (
            isinstance(found, StorageLayout) and not found.is_proxy
        ):  # it reads one slot and nothing else, whatever its storage
            if len(self._by_code) >= _CODES_CACHED:
                self._by_code.clear()
            self._by_code[known] = found
        return found

    async def _proven(self, seen: SeenKey, code: bytes, at: At) -> StorageLayout | Refused:
        keys = [seen, _random_key(seen)]
        traces = await self._ask([_trace(key, at) for key in keys])
        if self._has_overrides is None:
            await self._try_overrides(at)
        target = _clone_target(code)
        reads = []
        for key, trace in zip(keys, traces, strict=True):
            read = self._read(key, trace, target)
            if isinstance(read, Refused):
                return read
            reads.append(read)
        layout = reads[0].layout
        if reads[1].layout != layout:
            return Refused("the slot of a random key is found by another formula")
        words = [secrets.randbits(256) for _ in keys]
        trials = [_trials(key, read.slot, word, at) for key, read, word in zip(keys, reads, words, strict=True)]
        answers = await self._ask([call for calls in trials for call in calls])
        size = len(trials[0])
        bits = {_bits_of(answers[place * size : (place + 1) * size], word) for place, word in enumerate(words)}
        if not all(_is_nothing(answers[end - 1], seen.standard) for end in (size, 2 * size)):
            return Refused("a slot of zero is not nothing")
        found = bits.pop()
        if bits or found is None:
            return Refused("the answer is not what the slot holds, or depends on something else too")
        width, shift = found
        if width != _OWNER_BITS if seen.standard == ERC721 else width < _BITS_MIN:
            return Refused(f"the answer has {width} bits of the slot")
        return msgspec.structs.replace(layout, bits=width, shift=shift)

    async def _ask(self, calls: Sequence[Call]) -> list[Outcome]:
        outcomes = await self._source.outcomes(calls)
        self.calls += len(calls)
        for outcome in outcomes:
            if isinstance(outcome, RpcRefusal) and not isinstance(outcome, Reverted):
                raise CannotProve(str(outcome))
        return outcomes

    async def _try_overrides(self, at: At) -> None:
        call = {"to": _hex(_CLOCK_ADDRESS), "data": "0x"}
        given = {_hex(_CLOCK_ADDRESS): {"code": _hex(_CLOCK_CODE)}}
        outcomes = await self._source.outcomes([Call("eth_call", (call, _block(at), given, {"time": hex(_FAR)}))])
        self._has_overrides = uint_of(_answer(outcomes[0])) == _FAR
        if not self._has_overrides:
            raise CannotProve("the upstream does not override state and time")

    def _read(self, key: SeenKey, trace: Outcome, target: bytes | None) -> _SlotRead | Refused:
        """The one slot that a call read, if it is a known formula of its key."""
        try:
            accounts = {fixed(address, 20): account for address, account in _PRESTATE.decode(trace).items()}  # type: ignore[arg-type]
            slots = {fixed(slot, WORD): fixed(word, WORD) for slot, word in _storage(accounts, key.token).items()}
        except (*MALFORMED, WireError) as error:
            raise CannotProve(f"debug_traceCall: {error}") from error
        code = {slots.pop(slot)[-20:] for slot in _CODE_SLOTS if slot in slots} - {bytes(20)}
        allowed = {key.token, *code, *({target} if target else ())}
        for address, account in accounts.items():
            if address not in allowed and (account.storage or len(account.code) > len("0x")):
                return Refused(f"it asks another contract, {_hex(address)}")
            if address != key.token and account.storage:
                return Refused(f"it reads the storage of another contract, {_hex(address)}")
        if len(slots) != 1:
            return Refused(f"it reads {len(slots)} slots")
        (slot,) = slots
        layout = find_layout(key.standard, slot, key.holder, key.token_id, ignores_bit=self._ignores_bit())
        if layout is None:
            return Refused("its slot is no known formula of the key")
        return _SlotRead(msgspec.structs.replace(layout, is_proxy=bool(code)), slot)


def _storage(accounts: dict[bytes, _ReadAccount], token: bytes) -> dict[str, str]:
    return accounts[token].storage if token in accounts else {}


def _random_key(seen: SeenKey) -> SeenKey:
    return SeenKey(seen.token, seen.standard, secrets.token_bytes(20), secrets.randbits(256))


def _clone_target(code: bytes) -> bytes | None:
    """The contract whose code a minimal clone runs."""
    start, end = _CLONE
    is_clone = len(code) == len(start) + 20 + len(end) and code.startswith(start) and code.endswith(end)
    return code[len(start) : len(start) + 20] if is_clone else None


def _call_params(key: SeenKey) -> dict[str, str]:
    call = holding_call(BY_NUMBER[key.standard], key.token, key.holder, key.token_id)
    return {"to": _hex(call.to), "data": _hex(call.data)}


def _trace(key: SeenKey, at: At) -> Call:
    return Call("debug_traceCall", (_call_params(key), _block(at), {"tracer": "prestateTracer"}))


def _trials(key: SeenKey, slot: bytes, word: int, at: At) -> list[Call]:
    """The calls with an overridden slot: all ones and a word, now and far ahead, the word once more with another native
    balance, and zero."""
    params = _call_params(key)

    def trial(value: int, ahead: bool, **account: Any) -> Call:
        state = {_hex(key.token): {"stateDiff": {_hex(slot): f"0x{value:064x}"}, **account}}
        block = ({"time": hex(_FAR), "number": hex(_FAR)},) if ahead else ()
        return Call("eth_call", (params, _block(at), state, *block))

    calls = [trial(value, ahead) for ahead in (False, True) for value in (_ONES, word)]
    return [*calls, trial(word, False, balance=hex(secrets.randbits(96))), trial(0, False)]


def _bits_of(answers: Sequence[Outcome], word: int) -> tuple[int, int] | None:
    ones, value, *again, _ = (uint_of(_answer(outcome)) for outcome in answers)
    if ones is None or value is None or again != [ones, value, value]:
        return None
    return find_bits(ones, word, value)


def _is_nothing(outcome: Outcome, standard: int) -> bool:
    """Tell whether this is no amount, or no owner: ownerOf of an ID without an owner may revert."""
    answer = _answer(outcome)
    return uint_of(answer) == 0 or (standard == ERC721 and isinstance(answer, Reverted))


def _answer(outcome: Outcome) -> bytes | Reverted:
    if isinstance(outcome, Reverted):
        return outcome
    if isinstance(outcome, RpcRefusal):
        raise CannotProve(str(outcome))
    try:
        return data(_TEXT.decode(outcome))
    except (*MALFORMED, WireError) as error:
        raise CannotProve(f"eth_call: {error}") from error


def _block(at: At) -> str | dict[str, str]:
    return hex(at) if isinstance(at, int) else {"blockHash": _hex(at)}


def _hex(raw: bytes) -> str:
    return "0x" + raw.hex()
