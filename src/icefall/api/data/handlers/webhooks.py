"""Webhooks of the caller: of an API key, or of callers on this machine that send none."""

import time
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple, Protocol
from uuid import uuid4

import msgspec
from msgspec import UNSET, UnsetType

from icefall.access.client_address import CurrentCaller
from icefall.api.data.handlers.primary_webhooks import primary_metadata, read_request
from icefall.api.data.schema.webhooks import (
    AddressesChange,
    CreateWebhook,
    SharedSecret,
    UpdateWebhook,
    WebhookAddressesParams,
    WebhookAddressPage,
    WebhookMetadata,
    WebhookPage,
    WebhookParams,
    WebhookResult,
    WebhooksParams,
)
from icefall.api.http.paging import Paging
from icefall.api.http.structs import NoParams, address_text
from icefall.errors import BadRequest, NotFound
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.webhooks.filling import ADDRESSES_MAX as FILLED_ADDRESSES_MAX
from icefall.webhooks.filling import BLOCKS_MAX as FILLED_BLOCKS_MAX
from icefall.webhooks.model import ACTIVE, EVM_ACTIVITY, INACTIVE, Webhook
from icefall.webhooks.primary_matching import encode_filter
from icefall.webhooks.primary_names import WebhookNetworks
from icefall.webhooks.registry import ADDRESSES_MAX, WebhookRegistry
from icefall.webhooks.secrets import WebhookSecrets
from icefall.webhooks.signing import standard_secret

SHOWN_ADDRESSES_MAX = 1_000  # in a webhook; its own list has all
_ADDRESS_SIZE = 20
_WEBHOOKS, _ADDRESSES = "webhooks", "webhookAddresses"


class UrlRules(Protocol):
    """The rules for URLs that messages are sent to."""

    async def check(self, url: str) -> None:
        """Raise BadRequest for a URL that messages would not be sent to."""
        ...


class WebhookUrls:
    """The rules as a service of handlers."""

    def __init__(self, rules: UrlRules) -> None:
        self.check = rules.check


async def create_webhook(
    _: NoParams,
    body: CreateWebhook,
    registry: WebhookRegistry,
    secrets: WebhookSecrets,
    urls: WebhookUrls,
    chains: ChainDirectory,
    networks: WebhookNetworks,
    caller: CurrentCaller,
) -> WebhookResult:
    owner = caller.get().key
    about = await _evm(body, chains) if body.event_type == EVM_ACTIVITY else await _primary(body, networks)
    await urls.check(body.url)
    await secrets.ensure(owner)
    webhook = Webhook(
        id=str(uuid4()),
        owner=owner,
        event_type=body.event_type,
        chain_id=about.chain_id,
        url=body.url,
        name=body.name,
        description=body.description,
        status=ACTIVE,
        reason="",
        include_internal_txs=int(body.include_internal_txs),
        include_logs=int(body.include_logs),
        signatures=msgspec.json.encode([one.lower() for one in body.metadata.event_signatures or ()]).decode(),
        confirmations=body.confirmations,
        ordered=int(body.ordered),
        start_block=None if body.start_block is UNSET else body.start_block,
        created=time.time_ns() // 1_000_000,
        filter=about.filter,
    )
    await registry.add(webhook, about.keys)
    return _result(webhook, about.keys, networks)


class _About(NamedTuple):
    """What a webhook is about, as it is stored."""

    chain_id: str
    keys: list[bytes]
    filter: str = ""


async def _evm(body: CreateWebhook, chains: ChainDirectory) -> _About:
    if body.chain_id is UNSET or body.metadata.addresses is UNSET:
        raise BadRequest("chainId is missing" if body.chain_id is UNSET else "metadata.addresses is missing")
    chain = await _chain(chains, body.chain_id)
    addresses = _read(body.metadata.addresses)
    tip = await chain.blocks.tip() if body.start_block is not UNSET else None
    if tip is not None and body.start_block is not UNSET and body.start_block <= tip.number:
        if body.start_block < tip.number - FILLED_BLOCKS_MAX:
            raise BadRequest(f"startBlock must be at least {tip.number - FILLED_BLOCKS_MAX}")
        if len(addresses) > FILLED_ADDRESSES_MAX:
            raise BadRequest(f"a webhook that starts at an indexed block has at most {FILLED_ADDRESSES_MAX} addresses")
    return _About(chain.info.id, addresses)


async def _primary(body: CreateWebhook, networks: WebhookNetworks) -> _About:
    wanted = read_request(body, networks)
    if body.start_block is not UNSET:
        _check_start(body, await wanted.names.next_height(wanted.filter.chain))
    return _About(wanted.chain_id, wanted.keys, encode_filter(wanted.filter).decode())


def _check_start(body: CreateWebhook, first: int) -> None:
    if body.start_block is not UNSET and body.start_block < first:
        raise BadRequest(f"startBlock of the primary network must be above the newest block, which is {first - 1}")


async def list_webhooks(
    params: WebhooksParams,
    registry: WebhookRegistry,
    networks: WebhookNetworks,
    caller: CurrentCaller,
    paging: Paging,
) -> WebhookPage:
    owner, cursor = caller.get().key, paging.after(_WEBHOOKS, params)
    after = (int.from_bytes(cursor[:8], "big"), cursor[8:].decode()) if cursor else None
    found = await registry.page(owner, params.status or "", after, params.page_size + 1)
    page = found[: params.page_size]
    token: str | UnsetType = UNSET
    if len(found) > len(page):
        token = paging.token(_WEBHOOKS, params, page[-1].created.to_bytes(8, "big") + page[-1].id.encode())
    return WebhookPage(next_page_token=token, webhooks=[await _shown(registry, networks, one) for one in page])


async def get_webhook(
    params: WebhookParams, registry: WebhookRegistry, networks: WebhookNetworks, caller: CurrentCaller
) -> WebhookResult:
    return await _shown(registry, networks, await registry.owned(caller.get().key, params.id))


async def update_webhook(
    params: WebhookParams,
    body: UpdateWebhook,
    registry: WebhookRegistry,
    networks: WebhookNetworks,
    urls: WebhookUrls,
    caller: CurrentCaller,
) -> WebhookResult:
    webhook = await registry.owned(caller.get().key, params.id)
    if body.url is not UNSET and body.url != webhook.url:
        await urls.check(body.url)
    given = {name: value for name, value in msgspec.structs.asdict(body).items() if value is not UNSET}
    flags = {name: int(value) for name, value in given.items() if isinstance(value, bool)}
    reason = {"reason": ""} if "status" in given else {}
    changed = await registry.change(webhook.id, time.time(), **(given | flags | reason))
    return await _shown(registry, networks, changed)


async def deactivate_webhook(
    params: WebhookParams, registry: WebhookRegistry, networks: WebhookNetworks, caller: CurrentCaller
) -> WebhookResult:
    webhook = await registry.owned(caller.get().key, params.id)
    changed = await registry.change(webhook.id, time.time(), status=INACTIVE, reason="")
    return await _shown(registry, networks, changed)


# -- addresses ---------------------------------------------------------------------------------------------------


async def _with_addresses(registry: WebhookRegistry, caller: CurrentCaller, webhook_id: str) -> Webhook:
    """Find a webhook whose addresses can be listed and changed: one of an EVM chain."""
    webhook = await registry.owned(caller.get().key, webhook_id)
    if webhook.event_type != EVM_ACTIVITY:
        raise BadRequest(f"webhooks of {webhook.event_type} have no list of addresses")
    return webhook


async def list_addresses(
    params: WebhookAddressesParams, registry: WebhookRegistry, caller: CurrentCaller, paging: Paging
) -> WebhookAddressPage:
    """The total is counted for the first page: of 100,000 addresses that takes forty times as long as a page."""
    webhook = await _with_addresses(registry, caller, params.id)
    cursor = paging.after(_ADDRESSES, params) or b""
    after, counted = cursor[:_ADDRESS_SIZE], cursor[_ADDRESS_SIZE:]
    found = await registry.addresses(webhook.id, after, params.page_size + 1)
    page = found[: params.page_size]
    total = int.from_bytes(counted, "big") if counted else await registry.count_addresses(webhook.id)
    token: str | UnsetType = UNSET
    if len(found) > len(page):
        token = paging.token(_ADDRESSES, params, page[-1] + total.to_bytes(4, "big"))
    return WebhookAddressPage(
        next_page_token=token, addresses=[address_text(one) for one in page], total_addresses=total
    )


async def add_addresses(
    params: WebhookParams,
    body: AddressesChange,
    registry: WebhookRegistry,
    networks: WebhookNetworks,
    caller: CurrentCaller,
) -> WebhookResult:
    webhook = await _with_addresses(registry, caller, params.id)
    await registry.change_addresses(webhook.id, _read(body.addresses))
    return await _shown(registry, networks, webhook)


async def remove_addresses(
    params: WebhookParams,
    body: AddressesChange,
    registry: WebhookRegistry,
    networks: WebhookNetworks,
    caller: CurrentCaller,
) -> WebhookResult:
    webhook = await _with_addresses(registry, caller, params.id)
    await registry.change_addresses(webhook.id, (), _read(body.addresses))
    return await _shown(registry, networks, webhook)


# -- secrets -----------------------------------------------------------------------------------------------------


async def rotate_secret(_: NoParams, secrets: WebhookSecrets, caller: CurrentCaller) -> SharedSecret:
    return _secret(await secrets.rotate(caller.get().key))


async def get_secret(_: NoParams, secrets: WebhookSecrets, caller: CurrentCaller) -> SharedSecret:
    found = await secrets.valid(caller.get().key)
    if not found:
        raise NotFound("there is no shared secret yet: POST /v1/webhooks:generateOrRotateSharedSecret makes one")
    return _secret(found[0])


def _secret(secret: bytes) -> SharedSecret:
    return SharedSecret(secret=secret.hex(), standard_secret=standard_secret(secret))


# -- shapes ------------------------------------------------------------------------------------------------------


async def _chain(chains: ChainDirectory, name: str) -> EvmChain:
    try:
        return await chains.find(name)
    except NotFound as error:
        raise BadRequest(f"chainId: {error}") from None


def _read(addresses: Sequence[str]) -> list[bytes]:
    if len(addresses) > ADDRESSES_MAX:
        raise BadRequest(f"a webhook has at most {ADDRESSES_MAX} addresses")
    return sorted({bytes.fromhex(one[2:]) for one in addresses})


async def _shown(registry: WebhookRegistry, networks: WebhookNetworks, webhook: Webhook) -> WebhookResult:
    return _result(webhook, await registry.addresses(webhook.id, count=SHOWN_ADDRESSES_MAX), networks)


def _result(webhook: Webhook, keys: Iterable[bytes], networks: WebhookNetworks) -> WebhookResult:
    shown, is_evm = list(islice(keys, SHOWN_ADDRESSES_MAX)), webhook.event_type == EVM_ACTIVITY
    if is_evm:
        signatures = msgspec.json.decode(webhook.signatures, type=list[str])
        addresses = [address_text(one) for one in shown]
        metadata = WebhookMetadata(addresses=addresses, event_signatures=signatures or UNSET)
    else:
        metadata = primary_metadata(webhook, shown, networks)
    return WebhookResult(
        id=webhook.id,
        event_type=webhook.event_type,  # type: ignore[arg-type]
        url=webhook.url,
        chain_id=webhook.chain_id,
        status=webhook.status,  # type: ignore[arg-type]
        status_reason=webhook.reason or UNSET,
        created_at=webhook.created,
        name=webhook.name,
        description=webhook.description,
        metadata=metadata,
        include_internal_txs=bool(webhook.include_internal_txs) if is_evm else UNSET,
        include_logs=bool(webhook.include_logs) if is_evm else UNSET,
        confirmations=webhook.confirmations,
        ordered=bool(webhook.ordered),
        start_block=UNSET if webhook.start_block is None else str(webhook.start_block),
    )
