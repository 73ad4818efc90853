"""The parts of a name that the search knows: how it goes on from each of its characters.

A text that occurs in a name is the beginning of one of its parts, so one range of an index finds it, on every engine.
Trigrams would need the intersection of several ranges, of which the most common ones are as long as the list of tokens.
"""

from icefall.db.engine import Transaction
from icefall.db.statements import load

SQL = load("icefall.evm.enriching", "queries.sql")
STARTS_MAX = 64  # characters at which a part may begin: a contract may call itself anything
PART_SIZE = 24
_LAST_CHARACTER = "\U0010ffff"


def lowered(text: str) -> str:
    """The text in lower case as both engines do it without a collation: ASCII letters only."""
    return "".join(one.lower() if one.isascii() else one for one in text)


def parts_of(name: str) -> set[str]:
    """The parts of a name, of two characters at least. The migration to them says the same in SQL."""
    low = lowered(name)
    return {low[at : at + PART_SIZE] for at in range(min(STARTS_MAX, len(low) - 1))}


def put_name_parts(tx: Transaction, token: int) -> None:
    """Make the stored name and symbol of a token known to the search by parts of names."""
    names = [name for row in tx.rows(SQL.token_names, {"token": token}) for name in row if name]
    parts = {part for name in names for part in parts_of(name)}
    tx.run(SQL.drop_name_parts, {"token": token})
    tx.run_many(SQL.put_name_part, [(token, part) for part in sorted(parts)])


def beginning(text: str) -> dict[str, str]:
    """The range of an index in which everything begins with the text, as parameters of a statement."""
    low = lowered(text)
    return {"low": low, "high": low + _LAST_CHARACTER}


def beginning_of_parts(text: str) -> dict[str, str]:
    """The same among the parts of names, which are cut: whoever reads them compares the rest of a longer text."""
    return beginning(text[:PART_SIZE])
