"""The process that delivers messages to webhooks: part of `icefall up`, and `icefall webhooks` alone. Several of them
may share a server.
"""

import asyncio
import time
from contextlib import ExitStack
from functools import partial
from typing import Any

from icefall.api.data.render.webhook_body import webhook_body
from icefall.api.networks.network import PrimaryNetwork
from icefall.api.networks.render.webhook_event import primary_body
from icefall.compose.app_parts import service_logs
from icefall.compose.child import raise_file_limit, watch_stop
from icefall.compose.served_chains import ServedChains
from icefall.compose.served_network import served_network
from icefall.compose.stores import StoreName, Stores, stores_of
from icefall.compose.webhooks import WebhookParts, receiver_access
from icefall.config.settings import Config
from icefall.db.engine import BlockingReader, StoreDenied
from icefall.errors import Unavailable
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.status import decode_status
from icefall.node.store import read_meta
from icefall.observe.log import Log
from icefall.webhooks.delivering import Delivery, OutboxReader, StoredEvent, primary_outbox_reader
from icefall.webhooks.model import EVM_ACTIVITY, Message, Webhook
from icefall.wire.ids import network_name

_LOOK_EVERY_S = 5.0  # for the store of a node that was not there at the start
_STOP_LIMIT_S = 4.0  # for attempts that are being made; those that are cut off are made again


async def run_delivery(config: Config, *, supervised: bool, with_engine: bool) -> int:
    """Deliver until stopped; return the process's exit code."""
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    watch_stop(stop, supervised=supervised)
    raise_file_limit()
    log = service_logs(config, with_engine=with_engine)["main"]
    stores = stores_of(config)
    with ExitStack() as opened:
        reader = stores.access_reader()
        opened.callback(reader.close)
        parts = WebhookParts(config, stores, reader)
        opened.callback(parts.close)
        served = ServedChains(config, stores, shared=None if with_engine else reader, log=log, with_state=True)
        sources = _Sources(config, stores, served.directory, log, is_ready=with_engine)
        opened.callback(sources.close)
        access = receiver_access(config)
        delivery = Delivery(
            parts.registry,
            parts.messages,
            parts.secrets,
            sources.outboxes,
            sources.body,
            access.send,
            log,
        )
        running = asyncio.create_task(delivery.run())
        following = asyncio.create_task(served.refresh_forever())
        either: set[asyncio.Future[Any]] = {running, stopped}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        for task in (running, following):
            task.cancel()
        await asyncio.gather(running, following, return_exceptions=True)
        await asyncio.wait({asyncio.ensure_future(delivery.close())}, timeout=_STOP_LIMIT_S)
        await access.close()
        await served.directory.close()
    if stopped.done():
        return stopped.result()
    failure = running.exception()
    log.fatal("webhooks cannot be delivered", error=repr(failure))
    return 1


class _Sources:
    """What messages are made of: the chains that are served now, and the primary network from when there is a node's
    store. `is_ready`: there is one already."""

    def __init__(self, config: Config, stores: Stores, chains: ChainDirectory, log: Log, *, is_ready: bool) -> None:
        self._config = config
        self._stores = stores
        self._chains = chains
        self._log = log
        self._is_ready = is_ready
        self._network: PrimaryNetwork | None = None
        self._node: BlockingReader | None = None
        self._look_at = 0.0

    def outboxes(self) -> list[OutboxReader]:
        if self._node is None:
            self._look_for_node()
        found = [OutboxReader(one.info.id, one.reader, partial(head_of, one)) for one in self._chains.all()]
        return found if self._node is None else [*found, primary_outbox_reader(self._node)]

    def _look_for_node(self) -> None:
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_EVERY_S
        try:
            if not self._is_ready and StoreName("node") not in self._stores.names():
                return
            node = self._stores.node_reader()
            if self._is_of_this_network(node):
                self._network, self._node = served_network(self._config, self._stores), node
        except StoreDenied:  # a reader whose grants leave the node out still delivers what is about EVM chains
            self._look_at = float("inf")

    def _is_of_this_network(self, node: BlockingReader) -> bool:
        """Whether the store is of the network that is set. Addresses and assets in messages would be wrong else, so
        none is sent, and the error says what to set."""
        stored = read_meta(node, "network_id")
        if stored is None or int(stored) == self._config.network_id:
            return True
        node.close()
        name = network_name(int(stored))
        self._log.error(
            f"messages about the primary network are not sent: its store is of network {name}, "
            f"so start with --network-id={name}, and with --genesis-file where Icefall does not ship its genesis"
        )
        self._look_at = float("inf")
        return False

    async def body(self, webhook: Webhook, message: Message, event: StoredEvent) -> bytes:
        if webhook.event_type == EVM_ACTIVITY:
            return await webhook_body(self._chains, webhook, message, event)
        if self._network is None:
            raise Unavailable("the store of the node cannot be read here")
        return await primary_body(self._network, webhook, message, event)

    def close(self) -> None:
        if self._node is not None:
            self._node.close()


async def head_of(chain: EvmChain) -> int:
    """The number of the upstream's newest block, if the indexer has reported it; else of the newest stored one. Blocks
    that are to be stored are not counted: they may be the beginning of another branch, and then they confirm none of
    the stored blocks."""
    text, tip = await chain.blocks.meta("status"), await chain.blocks.tip()
    status, stored = decode_status(text) if text else None, tip.number if tip is not None else 0
    if status is None or status.head is None:
        return stored
    missing = max(status.head if status.target is None else status.target, stored) - stored
    return max(status.head - missing, stored)
