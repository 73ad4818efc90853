"""Reads the list of malicious and benign tokens (docs/lists.md)."""

import msgspec

from icefall.db.engine import Transaction
from icefall.db.statements import load
from icefall.evm.enriching.feeds import ADDRESS, FeedError
from icefall.evm.enriching.listed import Reputation
from icefall.upstream.client import MALFORMED

Reputations = dict[bytes, Reputation]
_DECODER = msgspec.json.Decoder(dict[Reputation, list[str]])
SQL = load("icefall.evm.enriching", "queries.sql")


def reputations_of(raw: bytes) -> Reputations:
    """The reputation of each listed token address; FeedError says where the list is invalid."""
    try:
        document = _DECODER.decode(raw)
    except MALFORMED as error:
        raise FeedError(f"not a list of reputations: {error}") from None
    found: Reputations = {}
    for reputation, addresses in document.items():
        for text in addresses:
            if not ADDRESS.fullmatch(text):
                raise FeedError(f"{reputation}: {text[:50]!r} is not an address of 0x and 40 hex digits")
            if found.setdefault(bytes.fromhex(text[2:]), reputation) != reputation:
                raise FeedError(f"{text} is listed as both Malicious and Benign")
    return found


def put_reputations(listed: Reputations, tx: Transaction) -> None:
    """Make the table equal to the list; only differences are written."""
    stored: Reputations = dict(tx.rows(SQL.reputations))
    tx.run_many(SQL.drop_reputation, [(address,) for address in stored if address not in listed])
    changed = [(address, reputation) for address, reputation in listed.items() if stored.get(address) != reputation]
    tx.run_many(SQL.put_reputation, changed)
