"""The description of a listener's interface: OpenAPI, and the page at /docs."""

import msgspec

from icefall.api.params.node_binder import NoParams


class Pages(msgspec.Struct, frozen=True):
    """Generated once when the worker starts."""

    openapi: bytes
    html: str


async def openapi(_: NoParams, pages: Pages) -> bytes:
    return pages.openapi


async def docs(_: NoParams, pages: Pages) -> str:
    return pages.html
