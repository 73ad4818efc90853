"""Addresses in calls: a short ID in CB58, or alias-dash-bech32 of this chain, checked in the node's order."""

from icefall.errors import CallFailed
from icefall.node.chains import ALIAS_MAX, Chains
from icefall.wire.errors import WireError
from icefall.wire.ids import SHORT_ID_SIZE, id_text, short_id_from_text, sized
from icefall.wire.text.bech32 import address_from_text, address_text
from icefall.wire.text.go_text import quote

_SHORT_ID_TEXT_MAX = 40  # 24 bytes in base 58 are 33 digits
_KEPT_MAX = 4096
ADDRESS_SIZE_MAX = ALIAS_MAX + 1 + 90  # a chain's alias, a dash, bech32


class AddressParser:
    def __init__(self, chains: Chains, chain_id: bytes, name: str, hrp: str) -> None:
        self._chains = chains
        self._chain_id = chain_id
        self._name = name
        self._hrp = hrp
        self._parsed: dict[str, bytes] = {}  # of texts with a built-in name, which no administrator can change

    def text(self, address: bytes) -> str:
        return address_text(self._name, self._hrp, address)

    async def parse(self, text: str) -> bytes:
        known = self._parsed.get(text)
        if known is not None:
            return known
        if len(text) > ADDRESS_SIZE_MAX:
            raise CallFailed(f"an address may be {ADDRESS_SIZE_MAX} characters long at most, got {len(text)}")
        if len(text) <= _SHORT_ID_TEXT_MAX:
            try:
                return short_id_from_text(text)
            except WireError:
                pass
        try:
            return await self._local(text)
        except (WireError, CallFailed) as error:
            raise CallFailed(f"couldn't parse address {quote(text)}: {error}") from error

    async def _local(self, text: str) -> bytes:
        chain, hrp, payload = address_from_text(text)
        chain_id = await self._chains.lookup(chain)
        if hrp != self._hrp:
            raise CallFailed(f"expected hrp {quote(self._hrp)} but got {quote(hrp)}")
        address = sized(payload, SHORT_ID_SIZE)
        if chain_id != self._chain_id:
            raise CallFailed(f'mismatched chainIDs: expected "{id_text(self._chain_id)}" but got "{id_text(chain_id)}"')
        if self._chains.known(chain):
            if len(self._parsed) >= _KEPT_MAX:
                self._parsed.clear()
            self._parsed[text] = address
        return address
