"""The body of a message to a webhook: a transaction with its transfers, as clients of the hosted service read it.

Optional keys are absent, never null, and amounts with decimals are exact. The bytes are canonical JSON.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from icefall.api.http.structs import address_text, hash_text
from icefall.errors import Unavailable
from icefall.evm.enriching.reader import TokenDetails
from icefall.evm.model import CallType
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import FullTxRead, InternalRead, TransferRead
from icefall.evm.reading.one_history import in_one_history
from icefall.evm.standards import BY_NUMBER, STANDARDS
from icefall.webhooks.delivering import StoredEvent
from icefall.webhooks.matching import EventDetail, SentLog
from icefall.webhooks.model import EVM_ACTIVITY, Message, Webhook
from icefall.webhooks.primary_matching import decode_filter
from icefall.webhooks.signing import canonical_json
from icefall.wire.evm.types import TreeCall
from icefall.wire.ids import id_text

SIZE_MAX = 512 << 10  # of a body; of a larger one, some parts are left out
_NO_TOKEN = TokenDetails()


async def webhook_body(chains: ChainDirectory, webhook: Webhook, message: Message, event: StoredEvent) -> bytes:
    """Make the body of the message about an event. Unavailable if its block has been replaced meanwhile."""
    chain = await chains.find(message.chain_id)
    made, is_cut = await in_one_history(partial(_event, chain, webhook, event))
    head = {"webhookId": webhook.id, "eventType": webhook.event_type, "messageId": message.id}
    body: dict[str, Any] = {**head, "event": made}
    if is_cut:
        body["truncated"] = True
    return _within_limit(body)


def _within_limit(body: dict[str, Any]) -> bytes:
    """Write a body without what makes it too large: logs and internal transactions first, then transfers, then the
    input."""
    raw, event = canonical_json(body), body["event"]
    transfers: dict[str, Any] = {f"{standard.table}Transfers": [] for standard in STANDARDS}
    steps: tuple[dict[str, Any], ...] = ({"internalTransactions": []}, transfers, {"input": "0x"})
    for left_out in steps:
        if len(raw) <= SIZE_MAX:
            break
        event.pop("logs", None)
        event["transaction"] |= {name: empty for name, empty in left_out.items() if name in event["transaction"]}
        raw = canonical_json(body | {"truncated": True})
    return raw


def sample_body(webhook: Webhook, message: str, now: int) -> bytes:
    """The body of a test: a transaction of zeros, so that a receiver parses it as any other."""
    head = {"webhookId": webhook.id, "eventType": webhook.event_type, "messageId": message, "test": True}
    if webhook.event_type != EVM_ACTIVITY:
        wanted = decode_filter(webhook.filter)
        event = {"subEvent": wanted.sub_events[0], "chainId": webhook.chain_id, "blockNumber": "0"}
        return canonical_json(head | {"event": event | {"blockHash": id_text(bytes(32)), "blockTimestamp": now}})
    zero = hash_text(bytes(32))
    zero_address = address_text(bytes(20))
    transaction = {
        **dict.fromkeys(("blockHash", "txHash", "receiptRoot"), zero),
        **dict.fromkeys(("from", "to"), zero_address),
        **dict.fromkeys(_AMOUNTS, "0"),
        **{f"{standard.table}Transfers": [] for standard in STANDARDS},
        **dict.fromkeys(("transactionIndex", "type"), 0),
        "blockTimestamp": now,
        "chainId": webhook.chain_id,
        "input": "0x",
        "txStatus": "1",
    }
    return canonical_json(head | {"event": {"transaction": transaction}})


_AMOUNTS = (
    "blockNumber", "gas", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "nonce", "value",
    "receiptCumulativeGasUsed", "receiptGasUsed", "receiptEffectiveGasPrice",
)  # fmt: skip


async def _event(chain: EvmChain, webhook: Webhook, event: StoredEvent) -> tuple[dict[str, Any], bool]:
    """Return the event, and whether it has so many logs, transfers or calls that some are left out."""
    assert isinstance(event.detail, EventDetail)
    full = await chain.blocks.full_tx_at(event.tx_at)
    if full is None or full.tx.location.block_hash != event.block_hash:
        raise Unavailable("the block of this event was replaced a moment ago")
    parts = await chain.transfers.parts_of_tx(event.tx_at)
    tokens = await chain.enriched.answer_tokens({row.token_ref for row in parts.transfers}, "usd")
    transaction = _transaction(chain, full, event.detail) | _transfers(parts.transfers, tokens.details)
    if webhook.include_internal_txs:
        transaction["internalTransactions"] = await _internals(chain, full, parts.internals)
    made: dict[str, Any] = {"transaction": transaction}
    if event.detail.logs is not None:
        made["logs"] = [_log(full.tx.tx_index, log) for log in event.detail.logs]
    return made, parts.truncated or event.detail.is_truncated


def _transaction(chain: EvmChain, full: FullTxRead, detail: EventDetail) -> dict[str, Any]:
    tx, token = full.tx, chain.info.token
    price = str(tx.gas_price)
    return {
        "blockHash": hash_text(tx.location.block_hash),
        "blockNumber": str(tx.location.block_number),
        "blockTimestamp": tx.location.time,
        "from": address_text(tx.sender),
        "to": address_text(tx.to),
        "gas": str(tx.gas_limit),
        "gasPrice": price,
        "maxFeePerGas": price if tx.max_fee is None else str(tx.max_fee),
        "maxPriorityFeePerGas": price if tx.max_priority_fee is None else str(tx.max_priority_fee),
        "txHash": hash_text(tx.location.tx_hash),
        "txStatus": "1" if tx.status else "0",
        "input": hash_text(full.input),
        "nonce": str(tx.nonce),
        "transactionIndex": tx.tx_index,
        "value": str(tx.value),
        "type": tx.type_id,
        "chainId": chain.info.id,
        "receiptCumulativeGasUsed": str(detail.cumulative_gas),
        "receiptGasUsed": str(tx.gas_used),
        "receiptEffectiveGasPrice": price,
        "receiptRoot": hash_text(detail.receipts_root),
        **({"contractAddress": address_text(tx.to)} if tx.call_type is CallType.CONTRACT_CREATION else {}),
        "networkToken": {
            "tokenName": token.name,
            "tokenSymbol": token.symbol,
            "tokenDecimals": token.decimals,
            "valueWithDecimals": with_decimals(tx.value, token.decimals),
        },
    }


def _transfers(rows: Sequence[TransferRead], tokens: Any) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {f"{standard.table}Transfers": [] for standard in STANDARDS}
    for row in rows:
        standard = BY_NUMBER[row.standard]
        value = row.value if standard.has_amounts else 1
        details = tokens.get(row.token_ref) or _NO_TOKEN
        decimals = details.decimals or 0
        shown: dict[str, Any] = {
            "transactionHash": hash_text(row.location.tx_hash),
            "type": standard.table.upper(),
            "from": address_text(row.sender),
            "to": address_text(row.to),
            "value": str(value),
            "blockTimestamp": row.location.time,
            "logIndex": row.log_index,
            f"{standard.table}Token": {
                "address": address_text(row.token),
                "name": details.name,
                "symbol": details.symbol,
                "decimals": decimals,
                **({} if details.is_read else {"namesRead": False}),
                "valueWithDecimals": with_decimals(value, decimals),
            },
        }
        if standard.has_ids:
            shown["tokenId"] = str(row.token_id)
        found[f"{standard.table}Transfers"].append(shown)
    return found


async def _internals(chain: EvmChain, full: FullTxRead, stored: Sequence[InternalRead]) -> list[dict[str, Any]]:
    """All calls, the first of them too, where the chain is indexed with traces; else those that are stored."""
    tx_hash = hash_text(full.tx.location.tx_hash)
    calls: Sequence[TreeCall | InternalRead] = stored
    if await chain.blocks.meta("has_calls") == "1":
        calls = await chain.raw.calls_of_tx(full.tx)
    return [_internal(call, tx_hash) for call in calls]


def _internal(call: TreeCall | InternalRead, tx_hash: str) -> dict[str, Any]:
    kind, gas = (call.opcode, call.gas) if isinstance(call, TreeCall) else (call.kind, call.gas_limit)
    return {
        "from": address_text(call.sender),
        "to": address_text(call.to) if call.to else "",
        "internalTxType": kind,
        "value": str(call.value),
        "gasUsed": str(call.gas_used),
        "gasLimit": str(gas),
        "isReverted": call.is_reverted,
        "transactionHash": tx_hash,
    }


def _log(tx_index: int, log: SentLog) -> dict[str, Any]:
    topics = {f"topic{at}": hash_text(topic) for at, topic in enumerate(log.topics)}
    return {
        "address": address_text(log.address),
        "topic0": "",
        **topics,
        "data": hash_text(log.data),
        "transactionIndex": tx_index,
        "logIndex": log.log_index,
        "removed": False,
    }


def with_decimals(value: int, decimals: int) -> str:
    """An amount in whole tokens, exactly: 1500000 with 6 decimals is 1.5."""
    if not decimals:
        return str(value)
    whole, part = divmod(value, 10**decimals)
    return f"{whole}.{part:0{decimals}d}".rstrip("0").rstrip(".")
