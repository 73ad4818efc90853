"""The process that delivers messages to webhooks: part of `icefall up`, and `icefall webhooks` alone. Several of them
may share a server.
"""

import asyncio
from contextlib import ExitStack
from functools import partial
from typing import Any

from icefall.api.data.render.webhook_body import webhook_body
from icefall.api.networks.network import PrimaryNetwork
from icefall.api.networks.render.webhook_event import primary_body
from icefall.compose.app_parts import service_logs
from icefall.compose.child import watch_stop
from icefall.compose.served_chains import ServedChains
from icefall.compose.served_network import served_network
from icefall.compose.stores import StoreName, Stores, stores_of
from icefall.compose.webhooks import ReceiverAccess, WebhookParts
from icefall.config.settings import Config
from icefall.db.engine import StoreDenied
from icefall.errors import Unavailable
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.status import decode_status
from icefall.webhooks.delivering import Delivery, OutboxReader, StoredEvent, primary_outbox_reader
from icefall.webhooks.model import EVM_ACTIVITY, Message, Webhook

_STOP_LIMIT_S = 4.0  # for attempts that are being made; those that are cut off are made again


async def run_delivery(config: Config, *, supervised: bool, with_engine: bool) -> int:
    """Deliver until stopped; return the process's exit code."""
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    watch_stop(stop, supervised=supervised)
    log = service_logs(config, with_engine=with_engine)["main"]
    stores = stores_of(config)
    with ExitStack() as opened:
        reader = stores.access_reader()
        opened.callback(reader.close)
        parts = WebhookParts(config, stores, reader)
        opened.callback(parts.close)
        chains = ServedChains(config, stores, with_state=True).directory
        outboxes = [OutboxReader(chain.info.id, chain.reader, partial(head_of, chain)) for chain in chains.all()]
        network = _network(config, stores, with_engine=with_engine)
        if network is not None:
            node = stores.node_reader()
            opened.callback(node.close)
            outboxes.append(primary_outbox_reader(node))
        delivery = Delivery(
            parts.registry,
            parts.messages,
            parts.secrets,
            outboxes,
            partial(_body, chains, network),
            ReceiverAccess(config).send,
            log,
        )
        running = asyncio.create_task(delivery.run())
        either: set[asyncio.Future[Any]] = {running, stopped}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.wait({asyncio.ensure_future(delivery.close())}, timeout=_STOP_LIMIT_S)
        await chains.close()
    if stopped.done():
        return stopped.result()
    failure = running.exception()
    log.fatal("webhooks cannot be delivered", error=repr(failure))
    return 1


def _network(config: Config, stores: Stores, *, with_engine: bool) -> PrimaryNetwork | None:
    """The primary network, where there is a node's store; None: only EVM chains have webhooks."""
    if not with_engine and StoreName("node") not in stores.names():
        return None
    try:
        return served_network(config, stores)
    except StoreDenied:  # a reader whose grants leave the node out still delivers what is about EVM chains
        return None


async def _body(
    chains: ChainDirectory, network: PrimaryNetwork | None, webhook: Webhook, message: Message, event: StoredEvent
) -> bytes:
    if webhook.event_type == EVM_ACTIVITY:
        return await webhook_body(chains, webhook, message, event)
    if network is None:
        raise Unavailable("the store of the node cannot be read here")
    return await primary_body(network, webhook, message, event)


async def head_of(chain: EvmChain) -> int:
    """The number of the upstream's newest block, if the indexer has reported it; else of the newest stored one."""
    text, tip = await chain.blocks.meta("status"), await chain.blocks.tip()
    head = decode_status(text).head if text else None
    return max(head or 0, tip.number if tip is not None else 0)
