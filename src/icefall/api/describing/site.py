"""The description of a listener's interface: OpenAPI, and the page at /docs, which is Swagger UI.

Swagger UI's files come from the package mkdocs-swagger-ui-tag, the others are in `api/describing/ui`. Nothing is
loaded from elsewhere.
"""

from functools import cache
from importlib.resources import files

import msgspec

from icefall.api.http.structs import NoParams

_SWAGGER = "mkdocs_swagger_ui_tag"
# Everything from this listener. Swagger UI draws its icons from data: URLs, and sets style attributes.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = (("content-security-policy", POLICY), ("x-content-type-options", "nosniff"))
FILE_HEADERS = (("cache-control", "public, max-age=86400"), ("x-content-type-options", "nosniff"))


class Pages(msgspec.Struct, frozen=True):
    """The pages of a listener, generated once when the worker starts."""

    openapi: bytes
    html: str


async def openapi(_: NoParams, pages: Pages) -> bytes:
    return pages.openapi


async def docs(_: NoParams, pages: Pages) -> str:
    return pages.html


async def docs_script(_: NoParams) -> bytes:
    return _file("icefall.api.describing", "ui/docs.js")


async def docs_style(_: NoParams) -> bytes:
    return _file("icefall.api.describing", "ui/docs.css")


async def swagger_script(_: NoParams) -> bytes:
    return _file(_SWAGGER, "swagger-ui/javascripts/swagger-ui-bundle.js")


async def swagger_style(_: NoParams) -> bytes:
    return _file(_SWAGGER, "swagger-ui/stylesheets/swagger-ui.css")


@cache
def _file(package: str, path: str) -> bytes:
    return files(package).joinpath(path).read_bytes()
