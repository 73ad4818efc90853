"""A recorded primary network with webhooks: P is executed, X and C are accepted, and events are written with them."""

from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.pchain.recorded import Playback, recorded_containers, recorded_network
from tests.pchain.replay import config_of

from icefall.access.store import ReopenedStore
from icefall.api.networks.network import PrimaryNetwork
from icefall.api.networks.render.webhook_event import primary_body
from icefall.compose.served_network import served_network
from icefall.compose.stores import Stores, stores_of
from icefall.observe.log import quiet
from icefall.primary.outbox import PrimaryOutbox
from icefall.webhooks.delivering import Delivery, primary_outbox_reader
from icefall.webhooks.messages import WebhookMessages
from icefall.webhooks.model import ACTIVE, PRIMARY_ACTIVITY, VALIDATOR_ACTIVITY, Webhook
from icefall.webhooks.primary_matching import ADDRESSES, PrimaryFilter, encode_filter
from icefall.webhooks.registry import WebhookRegistry
from icefall.webhooks.secrets import SecretBox, WebhookSecrets
from icefall.wire.ids import PLATFORM_CHAIN, id_text


class PrimaryScene:
    """The stores of an installation that follows a recorded network."""

    def __init__(self, folder: Path, recording: str) -> None:
        self.folder, self.recording = folder, recording
        network = recorded_network(recording)
        genesis = network.genesis
        self.chain_ids = {"P": PLATFORM_CHAIN, "X": genesis.x_chain_id, "C": genesis.c_chain_id}
        self.avax = network.platform.avax_asset_id
        self.stores = Stores(folder)
        self.stores.access_writer().ensure()
        self.reader = self.stores.access_reader()
        self._written = ReopenedStore(self.stores.access_store)
        self.registry = WebhookRegistry(self.reader, self._written)
        self.messages = WebhookMessages(self.reader, self._written)
        self.secrets = WebhookSecrets(self.registry, SecretBox(folder / "webhook.key"))

    def playback(self, directory: Path | None = None) -> Playback:
        """The chains on a store of their own, with the outbox of this installation."""
        outbox = PrimaryOutbox(self.chain_ids, self.avax, self.registry, lambda: 1_000_000.0)
        return Playback(directory or self.folder, self.recording, outbox=outbox)

    async def play(self, directory: Path | None = None, size: int = 1000) -> Playback:
        """Accept everything, in batches of at most `size`."""
        playback = self.playback(directory)
        await playback.start()
        for name, run in groupby(recorded_containers(self.recording), key=lambda one: one.chain):
            batch = [one.fetched for one in run]
            for at in range(0, len(batch), size):
                await playback.accept(name, batch[at : at + size])
        return playback

    async def webhook(self, chain: str, keys: list[bytes], wanted: PrimaryFilter, **fields: Any) -> Webhook:
        if not await self.secrets.valid(""):
            await self.secrets.rotate("")
        kind = PRIMARY_ACTIVITY if wanted.key_type == ADDRESSES else VALIDATOR_ACTIVITY
        given: dict[str, Any] = {
            "id": f"{fields.pop('number', 1):08d}-0000-4000-8000-000000000000", "owner": "", "event_type": kind,
            "chain_id": id_text(self.chain_ids[chain]), "url": "http://127.0.0.1:1/", "name": "", "description": "",
            "status": ACTIVE, "reason": "", "include_internal_txs": 0, "include_logs": 0, "signatures": "[]",
            "confirmations": 0, "ordered": 0, "start_block": None, "created": 1,
            "filter": encode_filter(wanted).decode(),
        }  # fmt: skip
        made = Webhook(**(given | fields))
        await self.registry.add(made, keys)
        return made

    def network(self) -> PrimaryNetwork:
        config = config_of(self.recording, self.folder)
        return served_network(config, stores_of(config))

    def delivery(self, playback: Playback, send: Any) -> Delivery:
        return Delivery(
            self.registry,
            self.messages,
            self.secrets,
            lambda: [primary_outbox_reader(playback.store)],
            partial(primary_body, self.network()),
            send,
            quiet(),
        )

    def close(self) -> None:
        self._written.close()
        self.reader.close()
        self.stores.close()


def events(playback: Playback) -> list[tuple[Any, ...]]:
    """All rows of the outbox, in the order in which they were written."""
    rows = playback.store.read(
        "select id, webhook, tx_at, block_hash, tx_hash, detail from webhook_outbox order by sequence"
    )
    return [tuple(row) for row in rows]
