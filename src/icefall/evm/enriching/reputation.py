"""Which tokens are known to be malicious or benign, as a list says (docs/lists.md)."""

import re
from typing import Literal

import msgspec

from icefall.db.engine import Transaction
from icefall.db.statements import load
from icefall.evm.enriching.feeds import FeedError

Word = Literal["Malicious", "Benign"]
Reputations = dict[bytes, Word]
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_DECODER = msgspec.json.Decoder(dict[Word, list[str]])
_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
SQL = load("icefall.evm.enriching", "queries.sql")


def reputations_of(raw: bytes) -> Reputations:
    """The word for each token address; FeedTrouble says where the list is wrong."""
    try:
        document = _DECODER.decode(raw)
    except _MALFORMED as error:
        raise FeedError(f"not a list of reputations: {error}") from None
    words: Reputations = {}
    for word, addresses in document.items():
        for text in addresses:
            if not _ADDRESS.fullmatch(text):
                raise FeedError(f"{word}: {text[:50]!r} is not an address of 0x and 40 hex digits")
            if words.setdefault(bytes.fromhex(text[2:]), word) != word:
                raise FeedError(f"{text} is listed as both Malicious and Benign")
    return words


def put_reputations(words: Reputations, tx: Transaction) -> None:
    """The table becomes the list; only what differs is written."""
    stored: Reputations = dict(tx.rows(SQL.reputations))
    tx.run_many(SQL.drop_reputation, [(address,) for address in stored if address not in words])
    tx.run_many(SQL.put_reputation, [(address, word) for address, word in words.items() if stored.get(address) != word])
