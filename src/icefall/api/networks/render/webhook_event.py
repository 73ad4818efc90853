"""The body of a message about the primary network: what happened, with its transaction as the other calls show it."""

from typing import Any

import msgspec

from icefall.api.networks.network import PrimaryNetwork
from icefall.api.networks.render.c_chain import c_transactions
from icefall.api.networks.render.details import node_text
from icefall.api.networks.render.transactions import rendered_txs
from icefall.api.networks.render.x_chain import x_transactions
from icefall.errors import Unavailable
from icefall.webhooks.delivering import StoredEvent
from icefall.webhooks.model import Message, Webhook
from icefall.webhooks.primary_matching import PrimaryDetail
from icefall.webhooks.signing import canonical_json
from icefall.wire.ids import id_text

SIZE_MAX = 512 << 10  # of a body; a larger one goes without its transaction


async def primary_body(network: PrimaryNetwork, webhook: Webhook, message: Message, event: StoredEvent) -> bytes:
    """Make the body of the message about an event."""
    made = await _event(network, webhook, message, event)
    body = {"webhookId": webhook.id, "eventType": webhook.event_type, "messageId": message.id, "event": made}
    raw = canonical_json(body)
    if len(raw) <= SIZE_MAX:
        return raw
    made.pop("transaction", None)
    return canonical_json(body | {"truncated": True})


async def _event(network: PrimaryNetwork, webhook: Webhook, message: Message, event: StoredEvent) -> dict[str, Any]:
    detail = event.detail
    assert isinstance(detail, PrimaryDetail)
    is_core = detail.chain == "C"
    made: dict[str, Any] = {
        "subEvent": detail.sub_event,
        "network": network.public_name,
        "chainId": webhook.chain_id,
        "blockNumber": str(message.block),
        "blockHash": f"0x{event.block_hash.hex()}" if is_core else id_text(event.block_hash),
        "blockTimestamp": detail.time,
    }
    if event.tx_hash:
        made["txHash"] = id_text(event.tx_hash)
        made["transaction"] = await _transaction(network, detail.chain, event.tx_hash)
    if detail.addresses:
        shown = [f"0x{one.hex()}" for one in detail.addresses] if is_core else network.addresses(detail.addresses)
        made["addresses"] = shown
    if detail.validators:
        made["validators"] = [
            {
                "nodeId": node_text(one.node_id),
                "subnetId": id_text(one.subnet_id),
                **({"validationId": id_text(one.validation_id)} if one.validation_id else {}),
            }
            for one in detail.validators
        ]
    if detail.balances:
        made["balances"] = [
            {
                **(
                    {"address": network.address(one.key), "balanceType": detail.balance_type}
                    if detail.balance_type
                    else {"validationId": id_text(one.key)}
                ),
                "before": str(one.before),
                "after": str(one.after),
            }
            for one in detail.balances
        ]
    return made


async def _transaction(network: PrimaryNetwork, chain: str, txid: bytes) -> Any:
    """A transaction as its own call answers. Unavailable while its lists are not complete."""
    found: list[Any] = []
    if chain == "P":
        found = await rendered_txs(network, list((await network.lists.txs_with_ids([txid])).values()))
    elif chain == "X":
        row = await network.x_lists.tx(txid)
        found = await x_transactions(network, [row]) if row is not None else []
    else:
        core = await network.c_lists.tx(txid)
        found = await c_transactions(network, [core]) if core is not None else []
    if not found:
        raise Unavailable("the transaction of this event is not listed yet")
    return msgspec.to_builtins(found[0])
