"""The names that callers use for the primary network in webhooks: networks, chains, addresses and IDs."""

from collections.abc import Awaitable, Callable

import msgspec

from icefall.errors import BadRequest
from icefall.wire.errors import WireError
from icefall.wire.ids import SHORT_ID_SIZE, id_from_text, node_id_from_text
from icefall.wire.text import bech32

_ACCOUNT_SIZE = 42  # 0x and the digits


class PrimaryNames(msgspec.Struct, frozen=True):
    """`networks` and `chains` are what a caller may write; a chain is P, X or C. `chain_ids` are by that."""

    network: str
    networks: frozenset[str]
    chains: dict[str, str]
    chain_ids: dict[str, str]
    hrp: str
    hrps: frozenset[str]
    next_height: Callable[[str], Awaitable[int]]

    def chain(self, written: str) -> str:
        found = self.chains.get(written)
        if found is None:
            raise BadRequest("chainId must be p-chain, x-chain or c-chain, or the ID of one")
        return found

    def address(self, chain: str, written: str) -> bytes:
        """Read an address of a chain; on C also an account."""
        try:
            if chain == "C" and len(written) == _ACCOUNT_SIZE and written[:2] == "0x":
                return bytes.fromhex(written[2:])
            hrp, address = bech32.decode(written.removeprefix(f"{chain}-"))
        except (WireError, ValueError):
            raise BadRequest(f"metadata.keys: {written[:100]} is not an address of the {chain}-Chain") from None
        if hrp not in self.hrps or len(address) != SHORT_ID_SIZE:
            raise BadRequest(f"metadata.keys: addresses must begin with {self.hrp}1, got {written[:100]}")
        return address

    def address_text(self, chain: str, address: bytes) -> str:
        return f"0x{address.hex()}" if chain == "C" else bech32.address_text("", self.hrp, address)[1:]


class WebhookNetworks:
    """The primary network as a service of handlers; None where this program has none."""

    def __init__(self, names: PrimaryNames | None) -> None:
        self._names = names

    @property
    def known(self) -> PrimaryNames:
        if self._names is None:
            raise BadRequest("this program neither runs nor follows a primary network: `icefall up` does")
        return self._names

    def named(self, network: str) -> PrimaryNames:
        if network.lower() not in self.known.networks:
            raise BadRequest(f"network {network[:64]} is not served here, {self.known.network} is")
        return self.known


def read_node_id(written: str) -> bytes:
    try:
        return node_id_from_text(written)
    except WireError:
        raise BadRequest(f"{written[:100]} is not the ID of a node") from None


def read_subnet_id(written: str) -> bytes:
    try:
        return id_from_text(written)
    except WireError:
        raise BadRequest(f"{written[:100]} is not the ID of a subnet") from None
