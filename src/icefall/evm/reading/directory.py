"""The EVM chains a worker serves: what is configured of each, its readers, and how a request names one."""

import ipaddress
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from icefall.db.engine import Reader, Row, StatementParams, StoreError
from icefall.db.sqlite import SqliteReader
from icefall.errors import NotFound
from icefall.evm.enriching.reader import EnrichReader
from icefall.evm.reading.balances import BalanceReader, StateReader
from icefall.evm.reading.chain import SQL as CHAIN_SQL
from icefall.evm.reading.chain import ChainReader
from icefall.evm.reading.contracts import ContractReader
from icefall.evm.reading.transfers import TransferReader
from icefall.evm.storing.store import store_path

_CB58_MIN = 40  # shorter names are no blockchain ID


class TokenInfo(msgspec.Struct, frozen=True):
    """A chain's native token."""

    name: str
    symbol: str
    decimals: int
    logo_uri: str = ""
    description: str = ""


class ChainInfo(msgspec.Struct, frozen=True):
    """What is told of a chain. IDs are texts: `id` the EVM chain ID, the others CB58 or empty."""

    id: str
    name: str
    token: TokenInfo
    description: str = ""
    aliases: tuple[str, ...] = ()
    blockchain_id: str = ""
    subnet_id: str = ""
    vm_id: str = ""
    explorer_url: str = ""
    rpc_url: str = ""  # fit to be told: never one that may carry a key
    ws_url: str = ""
    logo: str = ""
    testnet: bool = False
    private: bool = False
    features: tuple[str, ...] = ()
    multicall: str = ""

    @property
    def shown_name(self) -> str:
        return self.name or f"Chain {self.id}"


def told_rpc_url(public_url: str, upstream: str) -> str:
    """The address callers are told: the configured one, else the upstream's if it is of this machine and holds no
    secret, else none."""
    told = urlsplit(upstream)
    try:
        is_here = told.hostname == "localhost" or ipaddress.ip_address(told.hostname or "").is_loopback
    except ValueError:  # a name: it may be anywhere
        is_here = False
    return public_url or (upstream if is_here and not (told.username or told.password or told.query) else "")


class ChainFile:
    """A reader of a file that may not be there yet: the indexer makes it, workers find it when it is."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._open: SqliteReader | None = None

    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        reader = self._open
        if reader is None:
            reader = self._open = self._opened()
        return reader.read(statement, params)

    def _opened(self) -> SqliteReader:
        not_yet = f"{self._name} is not indexed yet: try again when its indexer has begun"
        if not self._path.exists():
            raise StoreError(not_yet)
        reader = SqliteReader(self._path)
        try:
            reader.read(CHAIN_SQL.tip)
        except StoreError as error:  # a file without tables: its indexer has only just begun
            reader.close()
            raise StoreError(not_yet) from error
        return reader

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


class EvmChain:
    """One chain and everything that can be asked of it. `state` None: there is no upstream to ask."""

    def __init__(
        self,
        info: ChainInfo,
        reader: Reader,
        state: StateReader | None = None,
        method_names: Mapping[bytes, str] | None = None,
    ) -> None:
        self.info = info
        self.reader = reader
        self.chain = ChainReader(reader)
        self.transfers = TransferReader(reader)
        self.balances = BalanceReader(reader, state)
        self.contracts = ContractReader(reader)
        self.facts = EnrichReader(reader)
        self.method_names = method_names or {}

    async def blockchain_id(self) -> str:
        """As configured, or as the indexer learnt it of the chain itself; empty while nobody knows."""
        if self.info.blockchain_id:
            return self.info.blockchain_id
        try:
            return await self.chain.fact("blockchain_id") or ""
        except StoreError:
            return ""


def open_chain(
    info: ChainInfo, data_dir: Path, state: StateReader | None = None, method_names: Mapping[bytes, str] | None = None
) -> EvmChain:
    """Nothing is opened before the first question."""
    return EvmChain(info, ChainFile(store_path(data_dir, info.id), f"chain {info.id}"), state, method_names)


class ChainDirectory:
    """Chains by EVM chain ID and blockchain ID, as they are, and by alias, in any case."""

    def __init__(self, chains: Iterable[EvmChain]) -> None:
        self._chains = list(chains)
        self._by_name: dict[str, EvmChain] = {}
        self._by_alias: dict[str, EvmChain] = {}
        for chain in self._chains:
            self._by_name[chain.info.id] = chain
            if chain.info.blockchain_id:
                self._by_name[chain.info.blockchain_id] = chain
            for alias in chain.info.aliases:
                self._by_alias.setdefault(alias.casefold(), chain)

    async def find(self, name: str) -> EvmChain:
        """NotFound if there is none. A blockchain ID that nobody configured is the one the indexer has learnt."""
        found = self._by_name.get(name) or self._by_alias.get(name.casefold())
        if found is not None:
            return found
        for chain in self._chains:
            if len(name) > _CB58_MIN and not chain.info.blockchain_id and await chain.blockchain_id() == name:
                return chain
        raise NotFound(f"chain {name[:100]} is not indexed here: the list of chains names those that are")

    def all(self) -> list[EvmChain]:
        """In the order in which they are configured."""
        return self._chains
