"""The index of accepted containers.

A range holds up to a thousand of them, so each goes from its row to its JSON without a struct in between.
"""

from functools import lru_cache

import msgspec

from icefall.api.dialect import Dialect
from icefall.api.schema import index as schema
from icefall.errors import CallFailed
from icefall.node.index import IndexedContainer, IndexReader
from icefall.wire.errors import WireError
from icefall.wire.ids import id_text
from icefall.wire.text import checksum_hex
from icefall.wire.text.duration import SECOND_NS, rfc3339_nano

FETCH_MAX = 1024
_NUMBER_MAX = (1 << 63) - 1
_WHOLE_SECOND = len("2026-01-02T03:04:05")


async def get_container_by_id(params: schema.ContainerByIdParams, index: IndexReader) -> msgspec.Raw:
    number = await index.number_of(params.id)
    if number is None:
        raise CallFailed("not found")
    return _one(await index.run(number, 1), params.encoding)


async def get_container_by_index(params: schema.ContainerByIndexParams, index: IndexReader) -> msgspec.Raw:
    found = await index.run(params.index, 1) if params.index <= _NUMBER_MAX else []
    if not found or found[0][0] != params.index:
        raise CallFailed(f"no container at index {params.index}")
    return _one(found, params.encoding)


async def get_container_range(
    params: schema.ContainerRangeParams, index: IndexReader, dialect: Dialect
) -> msgspec.Raw | None:
    if params.num_to_fetch > FETCH_MAX or (params.num_to_fetch == 0 and not dialect.empty_range):
        raise CallFailed(
            f"numToFetch must be in [{int(not dialect.empty_range)},{FETCH_MAX}] but is {params.num_to_fetch}"
        )
    if params.num_to_fetch == 0:
        return None
    last = await index.last_number()
    if last is None:
        raise CallFailed("no containers have been accepted")
    if params.start_index > last:
        raise CallFailed(f"start index ({params.start_index}) > last accepted index ({last})")
    found = await index.run(params.start_index, params.num_to_fetch)
    listed = f"[{_listed(found, params.encoding)}]"
    return msgspec.Raw(listed if dialect.range_is_array else f'{{"containers":{listed}}}')


async def get_index(params: schema.ContainerIdParams, index: IndexReader) -> schema.IndexNumber:
    number = await index.number_of(params.id)
    if number is None:
        raise CallFailed("not found")
    return schema.IndexNumber(str(number))


async def get_last_accepted(params: schema.EncodingParams, index: IndexReader) -> msgspec.Raw:
    last = await index.last_number()
    if last is None:
        raise CallFailed("no containers have been accepted")
    return _one(await index.run(last, 1), params.encoding)


async def is_accepted(params: schema.ContainerIdParams, index: IndexReader) -> schema.IsAccepted:
    return schema.IsAccepted(await index.number_of(params.id) is not None)


def _one(found: list[IndexedContainer], encoding: str) -> msgspec.Raw:
    return msgspec.Raw(_listed(found, encoding))


def _listed(found: list[IndexedContainer], encoding: str) -> str:
    """`schema.IndexContainer` of each, as it is sent: no value holds a character that JSON escapes."""
    try:
        return ",".join(
            [
                f'{{"id":"{id_text(container_id)}","bytes":"{checksum_hex.encode(raw, encoding)}",'
                f'"timestamp":"{_time_text(accepted_ns)}","encoding":"{encoding}","index":"{number}"}}'
                for number, container_id, accepted_ns, raw in found
            ]
        )
    except WireError as error:
        raise CallFailed(str(error)) from error


def _time_text(ns_since_epoch: int) -> str:
    """`rfc3339_nano`, at a fraction of its cost where many containers were accepted within one second."""
    seconds, ns = divmod(ns_since_epoch, SECOND_NS)
    moment, zone = _second_text(seconds)
    if ns % 10:
        return f"{moment}.{ns:09d}{zone}"
    return moment + f".{ns:09d}".rstrip("0").rstrip(".") + zone


@lru_cache(maxsize=4096)
def _second_text(seconds: int) -> tuple[str, str]:
    """The text of a whole second, before and after its fraction."""
    text = rfc3339_nano(seconds * SECOND_NS)
    return text[:_WHOLE_SECOND], text[_WHOLE_SECOND:]
