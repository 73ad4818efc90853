"""The token list that an operator provides (docs/lists.md): a document in the common JSON format of such lists. The
tokens of one chain are stored. Only fields that are used are checked: a list has others, and other chains' tokens.
"""

import re
from typing import TypeVar

import msgspec

from icefall.db.engine import Transaction
from icefall.db.statements import load
from icefall.evm.contract_calls import TEXT_SIZE_MAX, printable
from icefall.evm.enriching.lists import ADDRESS, FeedError
from icefall.evm.enriching.reader import ListedToken
from icefall.evm.model import DECIMALS_MAX
from icefall.upstream.client import MALFORMED

SQL = load("icefall.evm.enriching", "queries.sql")
TOKENS_MAX = 100_000  # of the chain
LOGO_SIZE_MAX = 2048
_LOGO = re.compile(r"(https?|ipfs)://[!-~]+|data:image/(png|svg\+xml|webp);base64,[A-Za-z0-9+/=]+", re.IGNORECASE)

T = TypeVar("T", str, int)
ListedTokens = dict[bytes, ListedToken]  # by address


class _Entry(msgspec.Struct):
    """A token of a list. Of another chain, it may be anything that has a chain ID."""

    chain_id: int = msgspec.field(name="chainId")
    address: msgspec.Raw = msgspec.Raw()
    name: msgspec.Raw = msgspec.Raw()
    symbol: msgspec.Raw = msgspec.Raw()
    decimals: msgspec.Raw = msgspec.Raw()
    logo_uri: msgspec.Raw = msgspec.field(name="logoURI", default=msgspec.Raw())


class _Document(msgspec.Struct):
    tokens: list[_Entry]


_DECODER = msgspec.json.Decoder(_Document)


def listed_tokens_of(chain_id: int, raw: bytes) -> ListedTokens:
    """Read the tokens of a chain; FeedError says where the list is invalid."""
    try:
        document = _DECODER.decode(raw)
    except MALFORMED as error:
        raise FeedError(f"not a token list: {error}") from None
    found: ListedTokens = {}
    for at, entry in enumerate(document.tokens):
        if entry.chain_id != chain_id:
            continue
        where = f"tokens[{at}]"
        address = _address(entry, where)
        token = _token(entry, where)
        if found.setdefault(address, token) != token:
            raise FeedError(f"{where}: 0x{address.hex()} is listed before with other details")
        if len(found) > TOKENS_MAX:
            raise FeedError(f"{where}: more than {TOKENS_MAX} tokens of chain {chain_id}")
    return found


def put_listed_tokens(listed: ListedTokens, tx: Transaction) -> None:
    """Make the table equal to the list; only differences are written."""
    stored: dict[bytes, str] = dict(tx.rows(SQL.listed_tokens))
    wanted = {address: msgspec.json.encode(token).decode() for address, token in listed.items()}
    tx.run_many(SQL.drop_listed_token, [(address,) for address in stored if address not in wanted])
    changed = [(address, details) for address, details in wanted.items() if stored.get(address) != details]
    tx.run_many(SQL.put_listed_token, changed)


def _address(entry: _Entry, where: str) -> bytes:
    text = _decoded(entry.address, str, f"{where}.address")
    if not ADDRESS.fullmatch(text):
        raise FeedError(f"{where}.address: {text[:50]!r} is not an address of 0x and 40 hex digits")
    return bytes.fromhex(text[2:])


def _token(entry: _Entry, where: str) -> ListedToken:
    decimals = _decoded(entry.decimals, int, f"{where}.decimals")
    if not 0 <= decimals <= DECIMALS_MAX:
        raise FeedError(f"{where}.decimals: {decimals} is not between 0 and {DECIMALS_MAX}")
    name, symbol = _text(entry.name, f"{where}.name"), _text(entry.symbol, f"{where}.symbol")
    return ListedToken(name, symbol, decimals, _logo(entry.logo_uri))


def _text(raw: msgspec.Raw, where: str) -> str:
    """A name or symbol, as printable as those that contracts return."""
    return printable(_decoded(raw, str, where))[:TEXT_SIZE_MAX]


def _logo(raw: msgspec.Raw) -> str:
    """The URL of a logo, empty for anything else: a list with a bad logo is still a good list of names."""
    try:
        text = msgspec.json.decode(raw, type=str) if bytes(raw) else ""
    except MALFORMED:
        return ""
    return text if len(text) <= LOGO_SIZE_MAX and _LOGO.fullmatch(text) else ""


def _decoded(raw: msgspec.Raw, kind: type[T], where: str) -> T:
    if not bytes(raw):
        raise FeedError(f"{where} is missing")
    try:
        return msgspec.json.decode(raw, type=kind)
    except MALFORMED as error:
        raise FeedError(f"{where}: {error}") from None
