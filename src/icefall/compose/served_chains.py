"""The chains that a worker serves, as its configuration and the store have them: also those that are added, changed and
forgotten while it runs.
"""

import asyncio
import time
from collections.abc import Mapping
from functools import partial

import msgspec

from icefall.access.store import read_chain_configs, stored_chain_configs
from icefall.compose.shared_chains import with_chain_texts
from icefall.compose.stored_platform import StoredPlatform
from icefall.compose.stores import Stores
from icefall.config.settings import ChainConfig, Config
from icefall.db.engine import BlockingReader, StoreError
from icefall.errors import StartRefused
from icefall.evm.reading.abis import ContractAbis
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain, shown_rpc_url
from icefall.evm.reading.state import TIMEOUT_S, RequestState
from icefall.observe.log import Log

REFRESH_S = 1.0
_RETIRED_S = 2 * TIMEOUT_S  # requests that have begun may still ask the old upstreams


class _Served:
    """A chain and what it was made of."""

    def __init__(self, config: ChainConfig, chain: EvmChain, state: RequestState | None) -> None:
        self.config = config
        self.chain = chain
        self.state = state


class ServedChains:
    """Makes the chains of a worker. Each store is opened at its first query.

    `shared`: the access store, whose chains are served besides those of the configuration, which win chain by chain.
    `with_state`: upstreams are called for what is not indexed. `abis`: the interfaces of contracts.
    """

    def __init__(
        self,
        config: Config,
        stores: Stores,
        method_names: Mapping[bytes, str] | None = None,
        shared: BlockingReader | None = None,
        log: Log | None = None,
        *,
        with_state: bool = False,
        abis: ContractAbis | None = None,
    ) -> None:
        self._config = config
        self._stores = stores
        self._method_names = method_names
        self._shared = shared
        self._log = log
        self._with_state = with_state
        self._abis = abis
        self._texts: list[str] = []
        self._served: dict[str, _Served] = {}
        self._retired: list[tuple[float, RequestState]] = []
        self._platform = StoredPlatform(stores)
        self.directory = ChainDirectory([], self._close, stores.replicas, self._platform)
        if stores.replicas is not None and log is not None:
            stores.replicas.report = partial(_report_replica, log)
        if shared is not None:
            try:
                self._texts = stored_chain_configs(shared)
            except StoreError:  # the first start
                self._texts = []
        self._serve(with_chain_texts(config, self._texts).chain)

    async def refresh_forever(self) -> None:
        """Follow the settings and the ABIs of the store. While it cannot be read, the chains stay as they are."""
        while self._shared is not None or self._abis is not None:
            try:
                if self._abis is not None and await self._abis.refresh():
                    self.directory.take_abis()
                await asyncio.sleep(REFRESH_S)
                if self._shared is not None:
                    await self.refresh(self._shared)
            except StoreError:  # requests report it
                await asyncio.sleep(REFRESH_S)
            except (StartRefused, msgspec.MsgspecError, KeyError) as error:  # of another release
                self._tell("the settings of chains in the store cannot be read, those before are used", str(error))

    async def refresh(self, shared: BlockingReader) -> None:
        await self._close_retired(time.monotonic())
        texts = await read_chain_configs(shared)
        if texts != self._texts:
            self._texts = texts
            configs = with_chain_texts(self._config, texts).chain
            self._serve(configs)
            self._tell("the chains that are served have changed", ", ".join(one.name or one.id for one in configs))

    def _tell(self, message: str, what: str) -> None:
        if self._log is not None:
            self._log.info(message, chains=what)

    def _serve(self, configs: tuple[ChainConfig, ...]) -> None:
        """Serve these chains. Those whose settings are the same stay as they are, with what they have cached."""
        before, self._served = self._served, {}
        for config in configs:
            known = before.get(config.id)
            self._served[config.id] = known if known is not None and known.config == config else self._made(config)
        kept = {id(one) for one in self._served.values()}
        for old in (one for one in before.values() if id(one) not in kept):
            old.chain.reader.close()  # a request that has begun opens it again
            if old.state is not None:
                self._retired.append((time.monotonic() + _RETIRED_S, old.state))
        self.directory.replace([one.chain for one in self._served.values()])

    def _made(self, config: ChainConfig) -> _Served:
        state = RequestState(config.rpc, int(config.id)) if self._with_state else None
        reader, standbys = self._stores.chain_reader(config.id), self._stores.chain_standbys(config.id)
        chain = EvmChain(_chain_info(config), reader, state, self._method_names, state, standbys, self._abis, state)
        return _Served(config, chain, state)

    async def _close_retired(self, now: float) -> None:
        over = [state for until, state in self._retired if until <= now]
        self._retired = [one for one in self._retired if one[0] > now]
        for state in over:
            await state.close()

    async def _close(self) -> None:
        """Close the connections to upstreams, and those that the readers of stores share."""
        await self._close_retired(float("inf"))
        for one in self._served.values():
            if one.state is not None:
                await one.state.close()
        self._platform.close()
        self._stores.close()


def _chain_info(chain: ChainConfig) -> ChainInfo:
    info = msgspec.convert(chain, ChainInfo, from_attributes=True)
    return msgspec.structs.replace(info, rpc_url=shown_rpc_url(chain.public_rpc_url, chain.rpc[0]))


def _report_replica(log: Log, name: str, problem: str) -> None:
    if problem:
        log.warn("a replica is not read", replica=name, why=problem)
    else:
        log.info("a replica is read again", replica=name)
