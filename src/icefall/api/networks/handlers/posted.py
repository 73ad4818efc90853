"""Addresses that come in the body of a request, because there are too many of them for a path."""

from icefall.api.http.structs import InvalidValue
from icefall.api.networks.params import POSTED_ADDRESSES_MAX, read_addresses
from icefall.api.networks.schema.c_chain import AddressesBody
from icefall.errors import BadRequest


def posted_addresses(body: AddressesBody) -> tuple[tuple[str, bytes], ...]:
    try:
        return read_addresses(body.addresses, POSTED_ADDRESSES_MAX)
    except InvalidValue as invalid:
        raise BadRequest(f"addresses must be {invalid}") from None
