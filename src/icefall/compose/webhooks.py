"""The parts of webhooks that several processes use: the registry in the access store, the outbox of a chain, the rules
for URLs, and the way out to receivers.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from icefall.access.store import ReopenedStore
from icefall.api.data.handlers.webhooks import WebhookUrls
from icefall.api.networks.network import C_CHAIN, P_CHAIN, X_CHAIN, PrimaryNetwork
from icefall.compose.stores import Stores
from icefall.config.settings import Config
from icefall.db.engine import BlockingReader
from icefall.errors import BadRequest
from icefall.primary.network import Network
from icefall.primary.outbox import PrimaryOutbox
from icefall.webhooks.messages import WebhookMessages
from icefall.webhooks.outbox import Outbox
from icefall.webhooks.primary_names import PrimaryNames, WebhookNetworks
from icefall.webhooks.registry import WebhookRegistry
from icefall.webhooks.retrying import ATTEMPT_S, Outcome
from icefall.webhooks.secrets import SecretBox, WebhookSecrets, key_path
from icefall.wire.ids import PLATFORM_CHAIN, id_text
from icefall.xchain.store import NEWEST

if TYPE_CHECKING:
    from icefall.evm.enriching.guarded_fetcher import GuardedFetcher

_AT_ONCE = 1024  # as many as delivery makes; so no name that is not answered delays the lookup of another
_WEB_PORTS = (80, 443)


class ReceiverAccess:
    """The only way out to receivers, and the rules for their URLs. `networks`: those that the operator allows; nothing
    is sent to `own_ports`."""

    def __init__(self, networks: Sequence[str], own_ports: Collection[int] = ()) -> None:
        self._networks = networks
        self._own_ports = own_ports

    @cached_property
    def _fetcher(self) -> "GuardedFetcher":
        from icefall.evm.enriching.allowed_addresses import JoinedLookup, SystemLookup  # noqa: PLC0415 - only with webhooks
        from icefall.evm.enriching.guarded_fetcher import FetchLimits, GuardedFetcher  # noqa: PLC0415 - as above

        limits = FetchLimits(total_s=ATTEMPT_S, at_once=_AT_ONCE)
        lookup = JoinedLookup(SystemLookup(_AT_ONCE))
        return GuardedFetcher(allow=self._networks, refused_ports=self._own_ports, limits=limits, lookup=lookup)

    async def check(self, url: str) -> None:
        """Raise BadRequest for a URL that messages would not be sent to."""
        from icefall.evm.enriching.guarded_fetcher import AddressForbidden, FetchFailed  # noqa: PLC0415 - as above

        try:
            await self._fetcher.check(url)
        except AddressForbidden:
            raise BadRequest(
                "url must be https, without credentials, on the default port of a public address; others only in "
                "networks that the operator allows with --webhook-networks"
            ) from None
        except (FetchFailed, TimeoutError):
            raise BadRequest("url must name a host that can be found") from None

    async def close(self) -> None:
        """Close the connections that are left open."""
        if "_fetcher" in self.__dict__:
            await self._fetcher.close()

    async def send(self, url: str, body: bytes, headers: Mapping[str, str], owner: str = "") -> Outcome:
        """Make one attempt. What the answer holds is not used, and the reason to refuse an address stays here.
        Connections are reused for webhooks of the same owner, which have the same secret."""
        from icefall.evm.enriching.guarded_fetcher import AddressForbidden, FetchFailed  # noqa: PLC0415 - as above

        try:
            answer = await self._fetcher.post(url, body, {**headers, "content-type": "application/json"}, owner)
        except AddressForbidden:
            return Outcome(0, "the URL leads to an address, port or scheme that is not allowed")
        except FetchFailed as error:
            return Outcome(0, str(error))
        is_taken = 200 <= answer.status < 300
        return Outcome(answer.status, "" if is_taken else f"it answered {answer.status}", answer.retry_after_s)


def receiver_access(config: Config) -> ReceiverAccess:
    """The way out of an installation: never to its own listeners and to the nodes that it reads, which may be in an
    allowed network."""
    nodes = [*config.upstream, *(url for chain in config.chain for url in chain.rpc)]
    ports = {config.http_port, config.data_port, config.metrics_port, *(urlsplit(url).port for url in nodes)}
    return ReceiverAccess(config.webhook_networks, {one for one in ports if one and one not in _WEB_PORTS})


class WebhookParts:
    """The registry, messages and secrets of an installation. `close` closes what was opened to write."""

    def __init__(self, config: Config, stores: Stores, reader: BlockingReader) -> None:
        self._store = ReopenedStore(stores.access_store)
        self.registry = WebhookRegistry(reader, self._store)
        self.messages = WebhookMessages(reader, self._store)
        box = SecretBox(key_path(Path(config.data_dir), config.webhook_key_file))
        self.secrets = WebhookSecrets(self.registry, box)

    def close(self) -> None:
        self._store.close()


def webhook_services(config: Config, parts: WebhookParts, network: PrimaryNetwork | None) -> dict[type, Any]:
    """The services that the handlers of webhooks take."""
    return {
        WebhookNetworks: WebhookNetworks(primary_names(network) if network is not None else None),
        WebhookRegistry: parts.registry,
        WebhookMessages: parts.messages,
        WebhookSecrets: parts.secrets,
        WebhookUrls: WebhookUrls(receiver_access(config)),
    }


def primary_names(network: PrimaryNetwork) -> PrimaryNames:
    """The names of the primary network that webhooks use."""
    letters = {P_CHAIN: "P", X_CHAIN: "X", C_CHAIN: "C"}

    async def next_height(chain: str) -> int:
        if chain == "C":
            return await network.c_lists.block_count()
        if chain == "X":
            return (await network.x_lists.counts())[0]
        newest = await network.lists.blocks(0, NEWEST, 1)
        return newest[0].height + 1 if newest else 0

    return PrimaryNames(
        network.public_name,
        network.names,
        {written: letters[chain] for written, chain in network.chains.items()},
        {letter: id_text(network.chain_id(chain)) for chain, letter in letters.items()},
        network.hrp,
        network.hrps,
        next_height,
    )


def primary_outbox(config: Config, stores: Stores, network: Network) -> PrimaryOutbox:
    """The outbox of the primary network for the engine."""
    stores.access_writer().ensure()
    reader = stores.access_reader()
    parts = WebhookParts(config, stores, reader)

    def close() -> None:
        parts.close()
        reader.close()

    genesis = network.genesis
    chain_ids = {"P": PLATFORM_CHAIN, "X": genesis.x_chain_id, "C": genesis.c_chain_id}
    return PrimaryOutbox(chain_ids, network.platform.avax_asset_id, parts.registry, close=close)


def chain_outbox(config: Config, stores: Stores, chain_id: str) -> Outbox:
    """The outbox of a chain for the process that indexes it. It creates or migrates the access store if need be: chains
    may be indexed before anything is served."""
    stores.access_writer().ensure()
    reader = stores.access_reader()
    parts = WebhookParts(config, stores, reader)

    def close() -> None:
        parts.close()
        reader.close()

    return Outbox(chain_id, parts.registry, close=close, fills=parts.registry)
