"""The token standards: one row for each, with everything in which they differ beyond the fields of their structs.

What is derived, stored, rolled back, counted, audited, verified, enriched, read and served of tokens reads these rows.
Statements that are the same for several standards are written once in their `.sql` file (db/statements.py):
`{standard}` in a name stands for the table of each standard, `{with_ids}` for those whose tokens have IDs, `{by_id}`
for those that hold amounts of each ID, `{single}` for those whose logs are one transfer each (`{single_nft}`: those
with IDs), and `{batched}` for those whose logs may be several.

docs/decisions/0030-token-standards.md lists the files that a further standard touches.
"""

import enum
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from icefall.db.statements import Repeated, Statements, load_repeated
from icefall.evm.model import ERC20, ERC721, ERC1155
from icefall.wire.evm.events import Erc20Moved, Erc721Moved, Erc1155Moved


class Holding(enum.Enum):
    """The form in which a standard says who holds what: it is stored so, and compared with contracts."""

    AMOUNT = "an amount for each holder"
    AMOUNT_BY_ID = "an amount for each holder and token ID"
    OWNER = "one owner for each token ID"


# The columns of a transfer in the order in which reading/lists/rows.py reads them, and what stands for one that a
# standard does not have.
_STORED = ("position", "tx_index", "token_id", "value", "token", "sender", "recipient")
_ABSENT = {"position": "0", "token_id": "null", "value": "null"}


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
    def label(self) -> str:
        """The name in paths and operations of the API."""
        return self.table.capitalize()

    @property
    def has_ids(self) -> bool:
        return self.holding is not Holding.AMOUNT

    @property
    def has_amounts(self) -> bool:
        return self.holding is not Holding.OWNER

    @property
    def has_batches(self) -> bool:
        """Whether one log may be several transfers."""
        return "position" in self.columns

    def _stored(self, name: str) -> str:
        """A column of a transfer as it is read; the last ID of a range of NFTs takes the place of an amount."""
        name = "last_id" if name == "value" and "last_id" in self.columns else name
        return f"e.{name}" if name in self.columns else _ABSENT[name]

    def fields(self, placeholder: str) -> dict[str, str]:
        """The words that a statement which is written once for several standards may contain in braces."""
        return {
            placeholder: self.table,
            "number": str(self.number),
            "columns": ", ".join(self.columns),
            "marks": ", ".join("?" for _ in self.columns),
            "stored": ", ".join(self._stored(name) for name in _STORED),
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
SINGLE = tuple(standard for standard in STANDARDS if not standard.has_batches)
BATCHED = tuple(standard for standard in STANDARDS if standard.has_batches)


def rows_of_statements(standards: Sequence[TokenStandard]) -> Repeated:
    """The words in braces, for each placeholder that may stand in the name of a statement."""
    groups = {
        "standard": standards,
        "with_ids": [one for one in standards if one.has_ids],
        "by_id": [one for one in standards if one.holding is Holding.AMOUNT_BY_ID],
        "single": [one for one in standards if not one.has_batches],
        "single_nft": [one for one in standards if one.has_ids and not one.has_batches],
        "batched": [one for one in standards if one.has_batches],
    }
    return {name: [one.fields(name) for one in group] for name, group in groups.items()}


@cache
def load_statements(package: str, filename: str) -> Statements:
    """The statements of a file, those about several standards once for each."""
    return load_repeated(package, filename, rows_of_statements(STANDARDS))
