"""The token standards: one row for each, with everything in which they differ beyond the fields of their structs.

What is derived, stored, rolled back, counted, audited, verified and enriched of tokens reads these rows. Statements
that are the same for several standards are written once in their `.sql` file (db/statements.py): `{standard}` in a
name stands for the table of each standard, `{with_ids}` for those whose tokens have IDs, and `{by_id}` for those that
hold amounts of each ID.

A further standard needs, besides its row here: its event (wire/evm/events.py), the structs of its rows (model.py), how
they follow from the event (deriving/tokens.py, deriving/derive.py), how its holdings travel and are folded (packed.py,
deriving/packing.py, storing/folding.py), and its tables (migrations).
"""

import enum
from functools import cache
from typing import NamedTuple

from icefall.db.statements import Statements, load_repeated
from icefall.evm.model import ERC20, ERC721, ERC1155
from icefall.wire.evm.events import Erc20Moved, Erc721Moved, Erc1155Moved


class Holding(enum.Enum):
    """The form in which a standard says who holds what: it is stored so, and compared with contracts."""

    AMOUNT = "an amount for each holder"
    AMOUNT_BY_ID = "an amount for each holder and token ID"
    OWNER = "one owner for each token ID"


class TokenStandard(NamedTuple):
    """A standard. `table` is that of its transfers, and how the names of its other tables and statements begin."""

    number: int  # its bit in token.standards, and holder.standard
    name: str  # as the API writes it
    table: str
    event: type  # of a log that moves tokens
    columns: tuple[str, ...]  # of its transfers, in the order of the rows in deriving/packing.py
    holding: Holding
    holding_selector: bytes  # of the call that returns the holding: its contract is asked in audits
    uri_selector: bytes = b""  # of the call that returns the URI of a token ID; empty: tokens have no IDs
    fills_id_into_uri: bool = False  # `{id}` in that URI stands for the token ID

    @property
    def has_ids(self) -> bool:
        return self.holding is not Holding.AMOUNT

    def fields(self, placeholder: str) -> dict[str, str]:
        """The words that a statement which is written once for several standards may contain in braces."""
        return {
            placeholder: self.table,
            "number": str(self.number),
            "columns": ", ".join(self.columns),
            "marks": ", ".join("?" for _ in self.columns),
        }


STANDARDS = (
    TokenStandard(
        ERC20,
        "ERC-20",
        "erc20",
        Erc20Moved,
        ("log_at", "tx_index", "token", "sender", "recipient", "value"),
        Holding.AMOUNT,
        bytes.fromhex("70a08231"),  # balanceOf(address)
    ),
    TokenStandard(
        ERC721,
        "ERC-721",
        "erc721",
        Erc721Moved,
        ("log_at", "tx_index", "token", "sender", "recipient", "token_id", "last_id"),
        Holding.OWNER,
        bytes.fromhex("6352211e"),  # ownerOf(uint256)
        bytes.fromhex("c87b56dd"),  # tokenURI(uint256)
    ),
    TokenStandard(
        ERC1155,
        "ERC-1155",
        "erc1155",
        Erc1155Moved,
        ("log_at", "position", "tx_index", "token", "sender", "recipient", "token_id", "value"),
        Holding.AMOUNT_BY_ID,
        bytes.fromhex("00fdd58e"),  # balanceOf(address,uint256)
        bytes.fromhex("0e89341c"),  # uri(uint256)
        fills_id_into_uri=True,
    ),
)
WITH_IDS = tuple(standard for standard in STANDARDS if standard.has_ids)
BY_ID = tuple(standard for standard in STANDARDS if standard.holding is Holding.AMOUNT_BY_ID)
BY_NUMBER = {standard.number: standard for standard in STANDARDS}
_REPEATED = {"standard": STANDARDS, "with_ids": WITH_IDS, "by_id": BY_ID}


@cache
def load_statements(package: str, filename: str) -> Statements:
    """The statements of a file, those about several standards once for each."""
    repeated = {name: [standard.fields(name) for standard in rows] for name, rows in _REPEATED.items()}
    return load_repeated(package, filename, repeated)
