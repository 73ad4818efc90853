"""Handlers of messages between chains (ICM, Teleporter), over all indexed chains."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from msgspec import UnsetType

from icefall.api.data.handlers.message_pages import joined_of, message_context, message_page, readable
from icefall.api.data.render.messages import MessageContext, icm_message, teleporter_message
from icefall.api.data.schema.messages import (
    AddressMessagesParams,
    IcmMessagePage,
    IcmMessageResult,
    MessageParams,
    MessagesParams,
    TeleporterMessagePage,
    TeleporterMessageResult,
)
from icefall.api.dialect import Dialect
from icefall.api.http.paging import Paging
from icefall.errors import NotFound
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.links import BlockchainIds, links_of
from icefall.evm.reading.messages import EventFilter, JoinedMessage
from icefall.wire.evm.messages import RECEIVED, SENT

T = TypeVar("T")
Show = Callable[[MessageContext, JoinedMessage], T]


async def get_icm(params: MessageParams, chains: ChainDirectory, dialect: Dialect) -> IcmMessageResult:
    return await _get(params, chains, dialect, icm_message)


async def get_teleporter(params: MessageParams, chains: ChainDirectory, dialect: Dialect) -> TeleporterMessageResult:
    return await _get(params, chains, dialect, teleporter_message)


async def list_icm(params: MessagesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect) -> IcmMessagePage:
    messages, token = await _list(params, chains, paging, dialect, icm_message)
    return IcmMessagePage(next_page_token=token, messages=messages)


async def list_teleporter(
    params: MessagesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> TeleporterMessagePage:
    messages, token = await _list(params, chains, paging, dialect, teleporter_message)
    return TeleporterMessagePage(next_page_token=token, messages=messages)


async def icm_of_address(
    params: AddressMessagesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> IcmMessagePage:
    messages, token = await _of_address(params, chains, paging, dialect, icm_message)
    return IcmMessagePage(next_page_token=token, messages=messages)


async def teleporter_of_address(
    params: AddressMessagesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> TeleporterMessagePage:
    messages, token = await _of_address(params, chains, paging, dialect, teleporter_message)
    return TeleporterMessagePage(next_page_token=token, messages=messages)


async def _get(params: MessageParams, chains: ChainDirectory, dialect: Dialect, show: Show[T]) -> T:
    found = await joined_of({chain: [params.message_id] for chain in await readable(chains)})
    if not found:
        raise NotFound(f"no indexed chain has a message {params.message_id.hex()}")
    links = await links_of(chains)
    return show(await message_context(chains, links, dialect, found), found[0])


async def _list(
    params: MessagesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect, show: Show[T]
) -> tuple[list[T], str | UnsetType]:
    links = await links_of(chains)
    sides = _Sides(
        await _side(params.source_blockchain_id, chains, links),
        await _side(params.destination_blockchain_id, chains, links),
        await _side(params.blockchain_id, chains, links),
    )

    def filters(chain: EvmChain) -> list[EventFilter]:
        peers = {kind: sides.peers(kind, chain, links) for kind in (SENT, RECEIVED)}
        return [
            EventFilter(kind, next(iter(others), None), params.from_, params.to)
            for kind, others in peers.items()
            if others is not None and len(others) <= 1
        ]

    page = await message_page("messages", params, chains, paging, links, filters)
    context = await message_context(chains, links, dialect, page.messages)
    return [show(context, message) for message in page.messages], page.token


async def _of_address(
    params: AddressMessagesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect, show: Show[T]
) -> tuple[list[T], str | UnsetType]:
    links = await links_of(chains)
    filters = [
        one
        for kind in (SENT, RECEIVED)
        for one in (EventFilter(kind, sender=params.address), EventFilter(kind, recipient=params.address))
    ]
    page = await message_page("addressMessages", params, chains, paging, links, lambda _: filters)
    context = await message_context(chains, links, dialect, page.messages)
    return [show(context, message) for message in page.messages], page.token


# -- the chains of a list ----------------------------------------------------------------------------------------------


class _Side(NamedTuple):
    """A chain that a list is limited to. `chain`: its EVM chain ID, if it is indexed."""

    blockchain_id: bytes
    chain: str = ""

    def is_chain(self, chain: EvmChain, links: BlockchainIds) -> bool:
        own = links.blockchain_id(chain.info.id)
        return chain.info.id == self.chain or (bool(own) and own == self.blockchain_id)


class _Sides(NamedTuple):
    """The chains that a list is limited to; None: any."""

    source: _Side | None
    destination: _Side | None
    either: _Side | None

    def peers(self, kind: int, chain: EvmChain, links: BlockchainIds) -> set[bytes] | None:
        """The blockchain IDs that the other chain must have in events of a kind of this chain: all of them. None: none
        of these events is in the list."""
        own, other = (self.source, self.destination) if kind == SENT else (self.destination, self.source)
        if own is not None and not own.is_chain(chain, links):
            return None
        found = {other.blockchain_id} if other is not None else set()
        if self.either is not None and not self.either.is_chain(chain, links):
            found.add(self.either.blockchain_id)
        return found


async def _side(name: str | None, chains: ChainDirectory, links: BlockchainIds) -> _Side | None:
    return None if name is None else _Side(*await links.find(name, chains))
