"""Single contracts: their token standard, names, and whether there is code at the address."""

import msgspec

from icefall.db.engine import Reader
from icefall.db.statements import load
from icefall.evm.model import ERC20, ERC721, ERC1155, TokenKind

SQL = load("icefall.evm.reading", "contracts.sql")
_STANDARDS = ((ERC20, "ERC-20"), (ERC721, "ERC-721"), (ERC1155, "ERC-1155"))


class ContractRead(msgspec.Struct, frozen=True, gc=False):
    """`erc_type` is empty for a contract without transfers; `decimals` None: its `decimals()` does not decode."""

    erc_type: str
    name: str
    symbol: str
    decimals: int | None
    has_code: bool


class ContractReader:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def contract(self, address: bytes) -> ContractRead | None:
        """None if the address does not occur in the index."""
        rows = await self._reader.rows(SQL.contract, {"address": address})
        if not rows:
            return None
        standards, kind, name, symbol, decimals, has_code = rows[0]
        return ContractRead(erc_type(standards or 0, kind), name or "", symbol or "", decimals, bool(has_code))


def erc_type(standards: int, kind: str | None) -> str:
    """The standard found by calling the contract, else the first standard of its transfers."""
    if standards and kind in (TokenKind.ERC20.value, TokenKind.ERC721.value):
        return kind
    return next((name for bit, name in _STANDARDS if standards & bit), "")
