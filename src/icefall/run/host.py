"""The address that `--http-host` names: the listeners bind to addresses, not to names."""

import ipaddress
import socket

from icefall.errors import StartRefused


def listen_host(host: str) -> str:
    """An IP address, or empty for all. Of a name with several addresses the first IPv4 one. StartRefused where there is
    none."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
        return host
    except ValueError:
        if not host:
            return host
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StartRefused(f"--http-host={host} is no address and cannot be resolved: {reason}") from None
    first = min(found, key=lambda one: one[0] != socket.AF_INET)  # of equal ones the resolver's first
    return str(first[4][0])
