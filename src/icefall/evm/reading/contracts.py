"""What contracts were called with, emitted and returned as errors, decoded by their ABI, else by signatures that are
shipped or configured.
"""

from collections.abc import Callable, Mapping

import msgspec

from icefall.wire.evm.abi import AbiError, Declaration, declaration
from icefall.wire.evm.abi_decoding import DecodedValue, decode_call, decode_event
from icefall.wire.evm.abi_json import ContractAbi
from icefall.wire.evm.abi_shipped import ERRORS_BY_SELECTOR, EVENTS_BY_TOPIC

_SELECTOR = 4
DATA_MAX = 1 << 14  # bytes; a page has up to 200 of them, and longer ones are shown as they are


class MethodNames:
    """The names of functions. Those of a contract's own ABI name its methods alone: a selector of another contract may
    be of another function. `own`: signatures by contract and selector; `common`: signatures that many contracts share.
    `implementation`: returns that of a proxy, as far as it is known.
    """

    def __init__(
        self,
        common: Mapping[bytes, str] | None = None,
        own: Mapping[bytes, Mapping[bytes, str]] | None = None,
        implementation: Callable[[bytes], bytes | None] = lambda _: None,
    ) -> None:
        self._common = common or {}
        self._own = own or {}
        self._implementation = implementation

    @property
    def has_own(self) -> bool:
        return bool(self._own)

    def of(self, contract: bytes, selector: bytes) -> str | None:
        """Return the signature of the function of a contract that a selector chooses; None where it is not known."""
        return (self._own and self._of_abis(contract, selector)) or self._common.get(selector)

    def _of_abis(self, contract: bytes, selector: bytes) -> str | None:
        target = self._implementation(contract)
        return self._own.get(contract, {}).get(selector) or self._own.get(target or b"", {}).get(selector)


class Decoded(msgspec.Struct, frozen=True):
    """A declaration, and the values for it."""

    declared: Declaration
    values: list[DecodedValue]


class ContractDecoder:
    """Decodes what contracts do. Data that is of no known declaration, or not exactly of its types, gives None."""

    def __init__(self, common_names: Mapping[bytes, str]) -> None:
        self._common_names = common_names
        self._methods: dict[bytes, Declaration | None] = {}  # those of common_names that were asked for

    def event(self, topics: tuple[bytes, ...], data: bytes, abi: ContractAbi | None = None) -> Decoded | None:
        if not topics or len(data) > DATA_MAX:
            return None
        own = abi.events.get(topics[0], ()) if abi is not None else ()
        for declared in (*own, *EVENTS_BY_TOPIC.get(topics[0], ())):
            values = decode_event(declared, topics, data)
            if values is not None:
                return Decoded(declared, values)
        return None

    def call(self, data: bytes, abi: ContractAbi | None = None) -> Decoded | None:
        own = abi.functions.get(data[:_SELECTOR]) if abi is not None else None
        return _called(own, data) or _called(self._method(data[:_SELECTOR]), data)

    def error(self, data: bytes, abi: ContractAbi | None = None) -> Decoded | None:
        """Decode what a reverted call returned. A contract passes on errors of those it calls, too."""
        own = abi.errors.get(data[:_SELECTOR]) if abi is not None else None
        return _called(own, data) or _called(ERRORS_BY_SELECTOR.get(data[:_SELECTOR]), data)

    def name(self, data: bytes, abi: ContractAbi | None = None) -> str | None:
        """Return the signature of the function that call data selects, where it is known."""
        own = abi.functions.get(data[:_SELECTOR]) if abi is not None else None
        return own.signature if own is not None else self._common_names.get(data[:_SELECTOR])

    def _method(self, selector: bytes) -> Declaration | None:
        """The declaration of a known signature, whose parameters have no names."""
        text = self._common_names.get(selector)
        if text is None:
            return None
        if selector not in self._methods:
            try:
                self._methods[selector] = declaration("function", text)
            except AbiError:  # a type that is not decoded, such as fixed128x18
                self._methods[selector] = None
        return self._methods[selector]


def _called(declared: Declaration | None, data: bytes) -> Decoded | None:
    if declared is None or len(data) > DATA_MAX:
        return None
    values = decode_call(declared, data)
    return None if values is None else Decoded(declared, values)
