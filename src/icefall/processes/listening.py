"""The listening sockets of a program, opened before anything else: an address in use is refused at once.

Nothing is imported here that takes long, because a refusal needs no server.
"""

import ipaddress
import os
import socket
from typing import NamedTuple

import msgspec

from icefall.config.settings import Config
from icefall.errors import StartRefused

BACKLOG = 4096  # connections that the kernel keeps until a worker accepts them; it may allow fewer
SEND_BUFFER = 128 << 10  # bytes; by itself the kernel would keep megabytes for each client that does not read
_PORTS = {"node": "http_port", "data": "data_port", "metrics": "metrics_port"}
LISTENERS_OF = {"up": tuple(_PORTS), "node": ("node",), "data": ("data",), "metrics": ("metrics",)}


class Address(NamedTuple):
    host: str
    port: int

    @property
    def url(self) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(self.host, self.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{self.port}"


class ListeningSocket(NamedTuple):
    """Held for as long as the program runs; workers accept from it."""

    address: Address
    socket: socket.socket


def listen(what: str, address: Address) -> ListeningSocket:
    """StartRefused if the address is in use. Port 0 becomes a free one."""
    listening = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)  # connections inherit it
        listening.bind((address.host, address.port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        raise StartRefused(
            f"cannot listen on {address.host}:{address.port} for the {what} interface: "
            f"{getattr(error, 'strerror', None) or error}; use another --{what.replace('node', 'http')}-port"
        ) from None
    return ListeningSocket(Address(address.host, listening.getsockname()[1]), listening)


def fill_standard_files() -> None:
    """A program may be started with its standard input closed. A socket must not get that number: children read their
    messages there."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # has the lowest free number


def open_sockets(verb: str, config: Config) -> tuple[Config, dict[str, ListeningSocket]]:
    """The configuration with real ports in place of 0, and the listening socket of each listener. StartRefused names
    every address that is in use, so that all of them can be changed at once."""
    fill_standard_files()
    config = msgspec.structs.replace(config, http_host=listen_host(config.http_host))
    sockets, refusals = {}, []
    for listener in LISTENERS_OF[verb]:
        try:
            sockets[listener] = listen(listener, Address(config.http_host, getattr(config, _PORTS[listener])))
        except StartRefused as refused:
            refusals.append(str(refused))
    if refusals:
        for opened in sockets.values():
            opened.socket.close()
        raise StartRefused("; ".join(refusals))
    changed = {_PORTS[listener]: listening.address.port for listener, listening in sockets.items()}
    return msgspec.structs.replace(config, **changed), sockets


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
