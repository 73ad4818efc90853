"""The EVM chains a worker serves: their configured properties, their readers, and lookup by name."""

import ipaddress
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from icefall.db.changes import StampedCache
from icefall.db.engine import (
    MigratedReader,
    Reader,
    Row,
    StatementParams,
    StoreCorrupt,
    StoreError,
    StoreOfOtherRelease,
)
from icefall.db.migrate import FIRST, development_text
from icefall.db.replicas import Replicas
from icefall.errors import NotFound
from icefall.evm.enriching.reader import EnrichReader, TokenDetails
from icefall.evm.reading.abis import ContractAbis
from icefall.evm.reading.balances import BalanceReader, HistoryReader, StateReader
from icefall.evm.reading.chain import ChainReader
from icefall.evm.reading.contract_state import ContractStateReader
from icefall.evm.reading.contracts import ContractDecoder, MethodNames
from icefall.evm.reading.holders import HolderReader
from icefall.evm.reading.lists.cached import CachedLists
from icefall.evm.reading.lists.joined import JoinedLists
from icefall.evm.reading.lists.per_table import ListsPerTable
from icefall.evm.reading.lists.rows import AddressLists
from icefall.evm.reading.live import LiveBlocks
from icefall.evm.reading.messages import MessageReader
from icefall.evm.reading.one_history import CheckedReader, Standbys
from icefall.evm.reading.proxies import ContractSource, ProxyReader
from icefall.evm.reading.ranking import TokenRanking
from icefall.evm.reading.raw import RawReader, RawSource
from icefall.evm.reading.tokens import TokenReader
from icefall.evm.reading.transfers import LargeAnswers, TransferReader
from icefall.wire.evm.abi_json import ContractAbi

_CB58_MIN = 40  # a shorter name is not a blockchain ID
_STORE_BITS = 64  # of the version of a store
LINK_CHECK_S = 1.0  # a chain's blockchain ID is found by its indexer, maybe later
RELEASE_CHECK_S = 1.0  # an indexer of another release may migrate a store that is read


class TokenInfo(msgspec.Struct, frozen=True):
    """A chain's native token."""

    name: str
    symbol: str
    decimals: int
    logo_uri: str = ""
    description: str = ""


class ChainInfo(msgspec.Struct, frozen=True):
    """What the API shows of a chain. IDs are strings: `id` is the EVM chain ID, the others are CB58 or empty."""

    id: str
    name: str
    token: TokenInfo
    description: str = ""
    aliases: tuple[str, ...] = ()
    blockchain_id: str = ""
    subnet_id: str = ""
    vm_id: str = ""
    explorer_url: str = ""
    rpc_url: str = ""  # public: never one that may contain a key
    ws_url: str = ""
    logo: str = ""
    testnet: bool = False
    private: bool = False
    features: tuple[str, ...] = ()
    multicall: str = ""

    @property
    def shown_name(self) -> str:
        return self.name or f"Chain {self.id}"


def shown_rpc_url(public_url: str, upstream: str) -> str:
    """The URL the API shows: the configured one, else that of a loopback upstream without credentials."""
    url = urlsplit(upstream)
    try:
        is_loopback = url.hostname == "localhost" or ipaddress.ip_address(url.hostname or "").is_loopback
    except ValueError:  # a host name
        is_loopback = False
    return public_url or (upstream if is_loopback and not (url.username or url.password or url.query) else "")


class LazyChainReader:
    """A reader of a store that may not exist yet: opened at the first query after the indexer has created it. Not
    answered with rows that an indexer of another release has given another meaning.

    `open_reader` returns None while there is no store. `known`: the number of the schema that this program knows.
    """

    def __init__(self, open_reader: Callable[[], MigratedReader | None], name: str, known: int) -> None:
        self._open_reader = open_reader
        self._name = name
        self._known = known
        self._reader: MigratedReader | None = None
        self._check_at = 0.0

    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        try:
            return await (await self._checked()).rows(statement, params)
        except StoreCorrupt:
            self.close()  # the next query opens the file that may have taken its place
            raise

    async def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        try:
            return await (await self._checked()).rows_of_each(statement, keys)
        except StoreCorrupt:
            self.close()
            raise

    @property
    def is_embedded(self) -> bool:
        return self._reader is not None and self._reader.is_embedded

    @property
    def joins_are_slow(self) -> bool:
        return self._reader is not None and self._reader.joins_are_slow

    @property
    def generation(self) -> int:
        return self._reader.generation if self._reader is not None else 0

    def version(self) -> int | None:
        try:
            return self._reader.version() if self._reader is not None else None
        except StoreCorrupt:
            self.close()
            raise

    async def current_version(self) -> int | None:
        try:
            return await self._reader.current_version() if self._reader is not None else None
        except StoreCorrupt:
            self.close()
            raise

    async def _checked(self) -> MigratedReader:
        if self._reader is not None and time.monotonic() < self._check_at:
            return self._reader
        reader = self._reader or self._open_reader()
        if reader is None:
            raise StoreError(self._not_yet())
        self._check_at = time.monotonic() + RELEASE_CHECK_S  # one check for all requests of an open store
        try:
            self._check_release(await reader.schema_number())
        except StoreError:
            reader.close()
            self._reader = None
            raise
        self._reader = reader
        return reader

    def _check_release(self, number: int) -> None:
        if number == 0:
            raise StoreError(self._not_yet())
        if number < FIRST:
            raise StoreOfOtherRelease(development_text(self._name))
        numbers = f"schema {number}, this program knows {self._known}"
        if number > self._known:
            raise StoreOfOtherRelease(f"{self._name} was written by a newer Icefall ({numbers}): upgrade this one too")
        if number < self._known:
            raise StoreOfOtherRelease(
                f"{self._name} was written by an older Icefall ({numbers}): it is served once its indexer is upgraded"
            )

    def _not_yet(self) -> str:
        return f"{self._name} is not indexed yet: try again when its indexer has started"

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def lists_of(reader: Reader) -> AddressLists:
    """Choose the form of the lists: the only place that does. A store that is not open yet takes joins: each engine
    has them."""
    if reader.is_embedded:
        return CachedLists(reader)
    return ListsPerTable(reader) if reader.joins_are_slow else JoinedLists(reader)


class EvmChain:
    """One chain and its readers. `state`, `raw`, `source` None: there is no upstream. `standbys` None: only `reader` is
    read."""

    def __init__(
        self,
        info: ChainInfo,
        reader: Reader,
        state: StateReader | None = None,
        method_names: Mapping[bytes, str] | None = None,
        raw: RawSource | None = None,
        standbys: Standbys | None = None,
        abis: ContractAbis | None = None,
        source: ContractSource | None = None,
    ) -> None:
        self.info = info
        self._link, self._link_until = "", 0.0
        self._abis = abis
        self.reader = CheckedReader(reader, standbys)
        self._lists = StampedCache(partial(lists_of, self.reader))
        self.blocks = ChainReader(self.reader)
        self.live = LiveBlocks(self.blocks.tip)
        self.transfers = TransferReader(self.reader)
        self.balances = BalanceReader(self.reader, state)
        self.tokens = TokenReader(self.reader)
        self.history = HistoryReader(self.reader)
        self.holders = HolderReader(self.reader)
        self.ranking = TokenRanking(self.reader)
        self.messages = MessageReader(self.reader)
        self.raw = RawReader(self.reader, raw)
        self.enriched = EnrichReader(self.reader, self._token_details)
        self.proxies = ProxyReader(self.blocks, source)
        self.contract_state = ContractStateReader(source)
        self._common_names = method_names or {}
        self.contracts = ContractDecoder(self._common_names)
        self.use_abi_names()

    def use_abi_names(self) -> None:
        """Take the names of functions of the ABIs that there are now."""
        own = self._abis.names(self.info.id) if self._abis is not None else {}
        self.method_names = MethodNames(self._common_names, own, self.proxies.implementation)

    async def learn_proxies(self, addresses: Iterable[bytes]) -> None:
        """Read which of these contracts are proxies, if there is any ABI that could be of an implementation."""
        if self.method_names.has_own:
            await self.proxies.learn(addresses)

    async def abis(self, addresses: Iterable[bytes]) -> dict[bytes, ContractAbi]:
        """Return what these contracts are decoded by: their ABIs, and those of the implementations of proxies."""
        if self._abis is None or not self.method_names.has_own:
            return {}
        wanted = set(addresses)
        await self.proxies.learn(wanted)
        targets = {one: target for one in wanted if (target := self.proxies.implementation(one))}
        found = await self._abis.of(self.info.id, wanted | set(targets.values()))
        merged = {one: abi for one, abi in found.items() if one in wanted}
        for one, target in targets.items():
            if target in found:
                merged[one] = merged[one].joined(found[target]) if one in merged else found[target]
        return merged

    async def own_abi(self, address: bytes) -> ContractAbi | None:
        """Return the ABI that was given for a contract itself."""
        return (await self._abis.of(self.info.id, [address])).get(address) if self._abis is not None else None

    @property
    def state_reads(self) -> int:
        """How often state was read so far, by any request."""
        return self.balances.state_reads + self.proxies.state_reads + self.contract_state.state_reads

    @property
    def lists(self) -> AddressLists:
        """The lists of an address, in the form that suits the store. It is chosen each time the store is opened, or a
        node that joins faster is found."""
        return self._lists.of(2 * self.reader.generation + self.reader.joins_are_slow)

    async def _token_details(self, tokens: list[int], currency: str) -> dict[int, TokenDetails]:
        return await self.lists.token_details(tokens, currency)

    async def blockchain_id(self) -> str:
        """Return what the indexer has found to be proven best, else the configured one; empty while it is unknown."""
        now = time.monotonic()
        if not self._link or now >= self._link_until:
            try:
                self._link = await self.blocks.meta("blockchain_id") or ""
            except StoreError:
                self._link = ""
            self._link_until = now + LINK_CHECK_S
        return self._link or self.info.blockchain_id


class PlatformChains(Protocol):
    """The EVM chains that the P-Chain has created, as far as it is stored here; also those that are not indexed."""

    async def blockchain_ids(self, evm_chain_id: int) -> Sequence[bytes]:
        """The blockchains whose genesis has this EVM chain ID, oldest first."""
        ...

    async def evm_chain_ids(self, chain_ids: Sequence[bytes]) -> Mapping[bytes, str]:
        """The EVM chain IDs of these blockchains."""
        ...


class ChainVersion(NamedTuple):
    """What an answer about a chain is made from: its store, and state if more of it was read meanwhile."""

    store: int
    is_of_server: bool
    chain: EvmChain
    state_reads: int

    def is_without_state(self) -> bool:
        """Whether no state was read since, by this request or another."""
        return self.chain.state_reads == self.state_reads


class ChainDirectory:
    """Chains by EVM chain ID and blockchain ID, which are case-sensitive, and by alias, which is not."""

    def __init__(
        self,
        chains: Iterable[EvmChain],
        close: Callable[[], Awaitable[None]] | None = None,
        replicas: Replicas | None = None,
        platform: PlatformChains | None = None,
    ) -> None:
        """`close`: closes in the end what the chains share. `replicas`: the standbys from which they are read.
        `platform`: names chains that are not indexed."""
        self._close = close
        self.platform = platform
        self.replicas = replicas
        self.large_answers = LargeAnswers()
        self._changes = -1
        self.replace(chains)

    def replace(self, chains: Iterable[EvmChain]) -> None:
        """Serve these chains from the next request on."""
        self._changes += 1
        self._chains = list(chains)
        self._by_name: dict[str, EvmChain] = {}
        self._by_alias: dict[str, EvmChain] = {}
        for chain in self._chains:
            self._by_name[chain.info.id] = chain
            if chain.info.blockchain_id:
                self._by_name[chain.info.blockchain_id] = chain
            for alias in chain.info.aliases:
                self._by_alias.setdefault(alias.casefold(), chain)

    def take_abis(self) -> None:
        """Use the ABIs that there are now, from the next request on."""
        self._changes += 1
        for chain in self._chains:
            chain.use_abi_names()

    async def find(self, name: str) -> EvmChain:
        """NotFound if there is none. A blockchain ID that is not configured is the one the indexer has found."""
        found = self._by_name.get(name) or self._by_alias.get(name.casefold())
        if found is not None:
            return found
        for chain in self._chains:
            if len(name) > _CB58_MIN and await chain.blockchain_id() == name:
                return chain
        raise NotFound(f"chain {name[:100]} is not indexed here: see the list of chains")

    async def version(self, values: tuple[str, ...]) -> ChainVersion | None:
        """Return the version of the chain that the first value in a path names; None if it is not known."""
        chain = self._by_name.get(values[0])
        if chain is None:
            return None
        store, is_of_server = chain.reader.version(), False
        if store is None:
            store, is_of_server = await chain.reader.current_version(), True
        if store is None:
            return None
        store += self._changes << _STORE_BITS  # answers also show settings
        return ChainVersion(store, is_of_server, chain, chain.state_reads)

    async def close(self) -> None:
        """Close the readers of the stores, and what the chains share."""
        for chain in self._chains:
            chain.reader.close()
        if self._close is not None:
            await self._close()

    def all(self) -> list[EvmChain]:
        """Return all chains in the order of the configuration."""
        return self._chains
