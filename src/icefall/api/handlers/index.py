"""The index of accepted containers: six questions about one series."""

from functools import lru_cache

from icefall.api.dialect import Dialect
from icefall.api.schema import index as schema
from icefall.errors import CallFailed
from icefall.node.index import IndexedContainer, IndexReader
from icefall.wire.errors import WireError
from icefall.wire.ids import id_text
from icefall.wire.text import checkhex
from icefall.wire.text.duration import SECOND_NS, rfc3339_nano

FETCH_MAX = 1024
_NUMBER_MAX = (1 << 63) - 1
_WHOLE_SECOND = len("2026-01-02T03:04:05")


async def get_container_by_id(ask: schema.ContainerByIdParams, index: IndexReader) -> schema.IndexContainer:
    number = await index.number_of(ask.id)
    if number is None:
        raise CallFailed("not found")
    return _told((await index.run(number, 1))[0], ask.encoding)


async def get_container_by_index(ask: schema.ContainerByIndexParams, index: IndexReader) -> schema.IndexContainer:
    found = await index.run(ask.index, 1) if ask.index <= _NUMBER_MAX else []
    if not found or found[0].number != ask.index:
        raise CallFailed(f"no container at index {ask.index}")
    return _told(found[0], ask.encoding)


async def get_container_range(
    ask: schema.ContainerRangeParams, index: IndexReader, dialect: Dialect
) -> list[schema.IndexContainer] | schema.Containers | None:
    if ask.num_to_fetch > FETCH_MAX or (ask.num_to_fetch == 0 and not dialect.empty_range):
        raise CallFailed(
            f"numToFetch must be in [{int(not dialect.empty_range)},{FETCH_MAX}] but is {ask.num_to_fetch}"
        )
    if ask.num_to_fetch == 0:
        return None
    last = await index.last_number()
    if last is None:
        raise CallFailed("no containers have been accepted")
    if ask.start_index > last:
        raise CallFailed(f"start index ({ask.start_index}) > last accepted index ({last})")
    told = [_told(container, ask.encoding) for container in await index.run(ask.start_index, ask.num_to_fetch)]
    return told if dialect.range_is_array else schema.Containers(told)


async def get_index(ask: schema.ContainerIdParams, index: IndexReader) -> schema.IndexNumber:
    number = await index.number_of(ask.id)
    if number is None:
        raise CallFailed("not found")
    return schema.IndexNumber(str(number))


async def get_last_accepted(ask: schema.EncodingParams, index: IndexReader) -> schema.IndexContainer:
    last = await index.last_number()
    if last is None:
        raise CallFailed("no containers have been accepted")
    return _told((await index.run(last, 1))[0], ask.encoding)


async def is_accepted(ask: schema.ContainerIdParams, index: IndexReader) -> schema.IsAccepted:
    return schema.IsAccepted(await index.number_of(ask.id) is not None)


def _told(container: IndexedContainer, encoding: str) -> schema.IndexContainer:
    try:
        text = checkhex.encode(container.raw, encoding)
    except WireError as error:
        raise CallFailed(str(error)) from error
    return schema.IndexContainer(
        id=id_text(container.container_id),
        bytes=text,
        timestamp=_time_text(container.accepted_ns),
        encoding=encoding,
        index=str(container.number),
    )


def _time_text(ns_since_epoch: int) -> str:
    """`rfc3339_nano`, at a fraction of its cost where many containers were accepted within one second."""
    seconds, ns = divmod(ns_since_epoch, SECOND_NS)
    moment, zone = _second_text(seconds)
    return moment + f".{ns:09d}".rstrip("0").rstrip(".") + zone


@lru_cache(maxsize=4096)
def _second_text(seconds: int) -> tuple[str, str]:
    """A whole second before and behind the place of its fraction."""
    text = rfc3339_nano(seconds * SECOND_NS)
    return text[:_WHOLE_SECOND], text[_WHOLE_SECOND:]
