"""The ERC-20 tokens that an address may hold, with what is known of each token: whether its stored balances are right,
its reputation, and up to which block it was an ERC-20 token at all.

A server joins all of it in one statement. From an embedded store, where two thirds of a page's seeks were for the same
few tokens again and again, those are cached for one version of the store.
"""

from collections.abc import Mapping

from icefall.db.changes import StampedCache
from icefall.db.engine import Reader, Row
from icefall.evm.model import ERC20
from icefall.evm.standards import load_statements

SQL = load_statements("icefall.evm.reading", "balances.sql")
CACHED_MAX = 50_000


# Whether it is untrusted, its reputation, and the first block at which it is of other standards alone; None: there is
# none. A plain tuple, which is unpacked for every row.
_Token = tuple[bool, str | None, int | None]
_UNKNOWN: _Token = (False, None, None)


class Erc20Candidates:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._cache: StampedCache[dict[int, _Token]] = StampedCache(dict)

    async def rows(self, address: bytes, block: int, after: bytes, limit: int) -> list[Row]:
        """Read address, ID, whether it is untrusted, balance right after the block and reputation, of the first tokens
        behind an address; fewer than `limit` only where these are all."""
        where = {"address": address, "block": block, "after": after, "limit": limit}
        found: list[Row] = []
        wanted = limit
        while True:
            held = await self._reader.rows(SQL.erc20, where)
            if not self._reader.is_embedded:
                return held
            tokens = await self._tokens(held)
            found += [
                (token, ref, is_untrusted, balance, reputation)
                for token, ref, balance in held
                for is_untrusted, reputation, counts_below in (tokens[ref],)
                if counts_below is None or block < counts_below
            ]
            if len(held) < wanted or len(found) == limit:
                return found
            wanted = limit - len(found)
            where |= {"after": held[-1][0], "limit": wanted}

    async def _tokens(self, held: list[Row]) -> Mapping[int, _Token]:
        """Return at least the tokens of these rows, by ID."""
        known = self._cache.of(self._reader.version())
        missing = [ref for _, ref, _ in held if ref not in known]
        if missing:
            if len(known) > CACHED_MAX:
                known.clear()
                missing = [ref for _, ref, _ in held]
            rows = await self._reader.rows(SQL.erc20_tokens, {"tokens": missing})
            known |= dict.fromkeys(missing, _UNKNOWN)  # an ID that was rolled back meanwhile
            known |= {ref: _token(*row) for ref, *row in rows}
        return known


def _token(is_untrusted: int | None, standards: int | None, since: int | None, reputation: str | None) -> _Token:
    is_erc20 = standards is None or standards & ERC20
    return bool(is_untrusted), reputation, None if is_erc20 else since or None
