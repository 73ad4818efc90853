"""Pages of messages between chains, merged from the events of each chain.

A chain lists the messages that it sent, and those that it received and whose sending no chain has. Whether that is so
is known when the events of the other chains are read: a page may be short, or empty, although more follow. The work of
a page is bounded.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from icefall.api.data.handlers.chains import has_blocks
from icefall.api.data.handlers.merging import ChainPart, MergeKey, cursor_at, merged, read_parts
from icefall.api.data.render.messages import MessageContext, TokensByChain, sides_of
from icefall.api.data.render.text import money_of
from icefall.api.data.schema.messages import AddressMessagesParams, MessagesParams
from icefall.api.dialect import Dialect
from icefall.api.http.paging import Paging, cursor_of
from icefall.evm.encoding import above
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.links import BlockchainIds
from icefall.evm.reading.messages import EventFilter, JoinedMessage, ListedEvent, Placed, joined

ROUNDS_MAX = 4  # of reading what other chains know, for one page
_CURRENCY = "usd"


class MessagePage(NamedTuple):
    messages: list[JoinedMessage]
    token: str | UnsetType


async def message_page(
    route: str,
    params: MessagesParams | AddressMessagesParams,
    chains: ChainDirectory,
    paging: Paging,
    links: BlockchainIds,
    filters: Callable[[EvmChain], Sequence[EventFilter]],
) -> MessagePage:
    """Return the newest messages whose events fit the filters of their chain."""

    async def read(chain: EvmChain, order: int, before: int | None) -> ChainPart[ListedEvent]:
        rows, end = await chain.messages.newest(filters(chain), before, params.page_size + 1)
        items = [(MergeKey(row.time, order, row.log_at), row) for row in rows]
        return ChainPart(chain, order, before, items, None if end is None else MergeKey(end[1], order, end[0]))

    parts = await read_parts(params.network, chains, cursor_of(route, params, paging), read, above)
    listed, end = merged(parts)
    every = await readable(chains) if listed else []
    found: list[JoinedMessage] = []
    at = 0
    for _ in range(ROUNDS_MAX):
        piece = listed[at : at + params.page_size - len(found)]
        if not piece:
            break
        at += len(piece)
        found += await _listed_messages(every, links, [(chain, row) for _, chain, row in piece])
    if at < len(listed):
        end = listed[at - 1][0]
    token = UNSET if end is None else paging.token(route, params, cursor_at(parts, end))
    return MessagePage(found, token)


async def readable(chains: ChainDirectory) -> list[EvmChain]:
    """The chains of which blocks are indexed."""
    return [chain for chain in chains.all() if await has_blocks(chain)]


async def _listed_messages(
    every: Sequence[EvmChain], links: BlockchainIds, listed: Sequence[tuple[EvmChain, ListedEvent]]
) -> list[JoinedMessage]:
    """The messages that are listed at these events. Only chains that may have their other side are read."""
    unlinked = [chain for chain in every if not links.blockchain_id(chain.info.id)]
    by_blockchain: dict[bytes, list[EvmChain]] = {}
    for one in every:  # settings may give two chains the same ID
        by_blockchain.setdefault(links.blockchain_id(one.info.id), []).append(one)
    wanted: dict[EvmChain, list[bytes]] = {chain: [] for chain in every}
    for chain, row in listed:
        others = by_blockchain.get(row.peer, ()) if row.peer else ()
        for one in dict.fromkeys((chain, *unlinked, *others)):
            wanted[one].append(row.message_id)
    by_id = {message.message_id: message for message in await joined_of(wanted)}
    found = []
    for chain, row in listed:
        message = by_id.get(row.message_id)
        if message is not None and (message.first.chain, message.first.event.log_at) == (chain.info.id, row.log_at):
            found.append(message)
    return found


async def joined_of(wanted: Mapping[EvmChain, Sequence[bytes]]) -> list[JoinedMessage]:
    """The messages with these IDs, from what each chain knows."""
    events = []
    for chain, message_ids in wanted.items():
        if message_ids:
            read = await chain.messages.events_of(list(dict.fromkeys(message_ids)))
            events += [Placed(chain.info.id, event) for event in read]
    return joined(events)


async def message_context(
    chains: ChainDirectory, links: BlockchainIds, dialect: Dialect, messages: Sequence[JoinedMessage]
) -> MessageContext:
    """Read what is known of the tokens that fees are paid in, which are of the chain that sent the message, and of
    chains that are not indexed."""
    by_chain: dict[str, set[bytes]] = {}
    for message in messages:
        if message.fee is not None and message.fee.amount:
            by_chain.setdefault(message.first.chain, set()).add(message.fee.token)
    tokens: TokensByChain = {}
    for chain in chains.all():
        numbers = await chain.messages.token_ids(sorted(by_chain.get(chain.info.id, ())))
        if numbers:
            details = await chain.enriched.priced_tokens(numbers.values(), _CURRENCY)
            tokens |= {
                (chain.info.id, address): details[number] for address, number in numbers.items() if number in details
            }
    await links.learn(side for message in messages for side in sides_of(links, message))
    return MessageContext(links, tokens, money_of(_CURRENCY, as_numbers=dialect.prices_are_numbers))
