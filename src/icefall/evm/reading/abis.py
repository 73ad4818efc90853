"""The ABIs of contracts, as a worker uses them: which there are, parsed when they are needed, and the names of their
functions.

They come from the store, where a change is seen within a second, and from a folder, which is read at the start. Where
both have one of a contract, that of the store is used.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from icefall.wire.evm.abi import AbiError
from icefall.wire.evm.abi_json import ContractAbi, read_abi

PARSED_MAX = 128  # interfaces kept
_STEP = 20  # changes that are read at once


class Change(Protocol):
    """A change: the ABI of a contract is this now. An empty text: it was removed."""

    @property
    def chain_id(self) -> str: ...
    @property
    def address(self) -> bytes: ...
    @property
    def text(self) -> str: ...
    @property
    def version(self) -> int: ...


class AbiTexts(Protocol):
    """The place where ABIs are stored, as texts that were checked before."""

    async def changed(self, version: int, count: int) -> Sequence[Change]: ...

    async def text(self, chain_id: str, address: bytes) -> str | None: ...

    async def put(self, chain_id: str, address: bytes, text: str, origin: str, now: int) -> None: ...

    async def remove(self, chain_id: str, address: bytes, now: int) -> bool: ...


class _ListedAbi(NamedTuple):
    """An ABI that there is. `version` 0: it is in the folder."""

    version: int
    names: dict[bytes, str]  # signatures of its functions by selector


class ContractAbis:
    """The ABIs of all chains. `folder`: those of files, by chain ID and address, each read when it is needed.

    `report`: takes what cannot be read, as a sentence."""

    def __init__(
        self,
        texts: AbiTexts,
        folder: Mapping[tuple[str, bytes], Callable[[], bytes]] | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._texts = texts
        self._folder = dict(folder or {})
        self._report = report
        self._known: dict[tuple[str, bytes], _ListedAbi] = {}
        self._parsed: OrderedDict[tuple[str, bytes, int], ContractAbi] = OrderedDict()
        self._version = 0
        for key in list(self._folder):
            self._read_file(key)

    def _read_file(self, key: tuple[str, bytes]) -> None:
        try:
            abi = read_abi(self._folder[key]())
        except (AbiError, OSError) as error:
            self._report(f"the ABI of 0x{key[1].hex()} on chain {key[0]} cannot be read: {error}")
            self._folder.pop(key)
            return
        self._known[key] = _ListedAbi(0, _names(abi))

    async def refresh(self) -> bool:
        """Read what has changed, and tell whether anything has."""
        is_changed = False
        while changes := await self._texts.changed(self._version, _STEP):
            for change in changes:
                self._take(change)
                await asyncio.sleep(0)  # requests go on meanwhile: a large one takes some milliseconds
            is_changed = True
        return is_changed

    def _take(self, change: Change) -> None:
        key = (change.chain_id, change.address)
        self._version = change.version
        self._known.pop(key, None)
        if change.text:
            try:
                self._known[key] = _ListedAbi(change.version, _names(read_abi(change.text)))
            except AbiError as error:  # of another release
                self._report(f"the ABI of 0x{key[1].hex()} on chain {key[0]} cannot be read: {error}")
        elif key in self._folder:
            self._read_file(key)

    def names(self, chain_id: str) -> dict[bytes, dict[bytes, str]]:
        """Return the signatures of functions by contract and selector, of all ABIs of a chain."""
        return {address: known.names for (chain, address), known in self._known.items() if chain == chain_id}

    def has(self, chain_id: str, address: bytes) -> bool:
        return (chain_id, address) in self._known

    async def of(self, chain_id: str, addresses: Iterable[bytes]) -> dict[bytes, ContractAbi]:
        """Return the ABIs of these contracts, those that there are."""
        found = {}
        for address in set(addresses):
            known = self._known.get((chain_id, address))
            abi = await self._abi(chain_id, address, known.version) if known is not None else None
            if abi is not None:
                found[address] = abi
        return found

    async def _abi(self, chain_id: str, address: bytes, version: int) -> ContractAbi | None:
        key = (chain_id, address, version)
        if key in self._parsed:
            self._parsed.move_to_end(key)
            return self._parsed[key]
        try:
            text = await self._texts.text(chain_id, address) if version else self._folder[chain_id, address]()
            abi = read_abi(text) if text else None
        except (AbiError, OSError, KeyError):  # it was changed a moment ago
            return None
        if abi is not None:
            self._parsed[key] = abi
            while len(self._parsed) > PARSED_MAX:
                self._parsed.popitem(last=False)
        return abi

    async def put(self, chain_id: str, address: bytes, text: str, origin: str, now: int) -> None:
        """Store an ABI. Other workers see it within a second."""
        await self._texts.put(chain_id, address, text, origin, now)

    async def remove(self, chain_id: str, address: bytes, now: int) -> bool:
        """Remove a stored ABI, and tell whether there was one."""
        return await self._texts.remove(chain_id, address, now)


def _names(abi: ContractAbi) -> dict[bytes, str]:
    return {selector: declared.signature for selector, declared in abi.functions.items()}
