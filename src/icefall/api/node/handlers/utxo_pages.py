"""A page of unspent outputs as both getUTXOs calls request it: checked in the node's order, then read."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from icefall.api.node.addresses import AddressParser
from icefall.errors import CallFailed
from icefall.node.chains import Chains
from icefall.wire.errors import WireError
from icefall.wire.ids import id_from_text
from icefall.wire.text import checksum_hex
from icefall.wire.text.go_text import quote
from icefall.xchain.paging import ExportedUtxos, OwnUtxos, UtxoCursor, UtxoLists, UtxoPage, UtxoReader, page_of
from icefall.xchain.store import StoredUtxo

PAGE_MAX = 1024
ADDRESSES_MAX = 1024
_SMALL_SIZE = 512  # bytes of an output whose text is kept: nearly all are smaller
_text_of_small = lru_cache(maxsize=4096)(checksum_hex.encode)  # the outputs of an address are asked for again and again


class PageParams(Protocol):
    """The parameters that the asset chain and the platform chain share."""

    @property
    def addresses(self) -> list[str]: ...
    @property
    def source_chain(self) -> str: ...
    @property
    def start_index(self) -> tuple[str, str]: ...
    @property
    def limit(self) -> int: ...


async def requested_page(
    params: PageParams, chain: UtxoReader, chain_id: bytes, addresses: AddressParser, chains: Chains
) -> UtxoPage:
    if not params.addresses:
        raise CallFailed("no addresses provided")
    if len(params.addresses) > ADDRESSES_MAX:
        raise CallFailed(f"number of addresses given, {len(params.addresses)}, exceeds maximum, {ADDRESSES_MAX}")
    lists = await _lists(params.source_chain, chain, chain_id, chains)
    owners = [await addresses.parse(text) for text in params.addresses]
    start = await _start(params.start_index, addresses)
    limit = params.limit if 0 < params.limit <= PAGE_MAX else PAGE_MAX
    return await page_of(lists, owners, start, limit)


def output_texts(utxos: Sequence[StoredUtxo], encoding: str) -> list[str]:
    """Write outputs in an encoding of bytes."""
    return [
        _text_of_small(utxo.raw, encoding) if len(utxo.raw) <= _SMALL_SIZE else checksum_hex.encode(utxo.raw, encoding)
        for utxo in utxos
    ]


async def _lists(source: str, chain: UtxoReader, chain_id: bytes, chains: Chains) -> UtxoLists:
    if not source:
        return OwnUtxos(chain)
    try:
        source_id = await chains.lookup(source)
    except CallFailed as error:
        raise CallFailed(f"problem parsing source chainID {quote(source)}: {error}") from error
    return OwnUtxos(chain) if source_id == chain_id else ExportedUtxos(chain, source_id)


async def _start(start: tuple[str, str], addresses: AddressParser) -> UtxoCursor:
    address_text, utxo_text = start
    if not address_text and not utxo_text:
        return UtxoCursor()
    try:
        address = await addresses.parse(address_text)
    except CallFailed as error:
        raise CallFailed(f"couldn't parse start index address {quote(address_text)}: {error}") from error
    try:
        return UtxoCursor(address, id_from_text(utxo_text))
    except WireError as error:
        raise CallFailed(f"couldn't parse start index utxo: {error}") from error
