"""Names, symbols and decimals of the contracts that moved tokens.

Every contract is asked for all three, whatever its standard: one that lacks it reverts, which is its answer. What the
upstream fails to tell is asked again for ever, a day apart at most: that is nothing the contract said.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from icefall.db.engine import Store, Transaction
from icefall.db.statements import load
from icefall.evm.enriching.answers import DECIMALS, NAME, SYMBOL, decimals_of, text_of
from icefall.evm.enriching.asking import Answers, ask_each
from icefall.evm.enriching.counts import EnrichCounts
from icefall.evm.enriching.outcomes import pause_s
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.state import ContractCall
from icefall.upstream.evm.upstream import EvmUpstream

BATCH = 50
SQL = load("icefall.evm.enriching", "queries.sql")


class DueToken(NamedTuple):
    token: int
    address: bytes
    failures: int


class TokenMetadataLoop:
    def __init__(self, store: Store, upstream: EvmUpstream, counts: EnrichCounts, wall: Callable[[], float]) -> None:
        self._store = store
        self._upstream = upstream
        self._counts = counts
        self._wall = wall

    async def round(self) -> bool:
        """Read some that are due. Whether there were any."""
        now = int(self._wall())
        due = [DueToken(*row) for row in self._store.read(SQL.due_tokens, {"now": now, "count": BATCH})]
        if not due:
            return False
        calls = [[ContractCall(one.address, ask) for ask in (NAME, SYMBOL, DECIMALS)] for one in due]
        answers = await ask_each(self._upstream, calls)
        await self._store.write(partial(_put, list(zip(due, answers, strict=True)), now))
        read = sum(not isinstance(answer, UpstreamFailure) for answer in answers)
        self._counts.tokens_read += read
        self._counts.failures["tokens"] += len(due) - read
        return True


def _put(read: list[tuple[DueToken, Answers | UpstreamFailure]], now: int, tx: Transaction) -> None:
    for one, answers in read:
        row = {"token": one.token, "address": one.address}
        if isinstance(answers, UpstreamFailure):
            tx.run(SQL.put_off_token, row | {"retry_at": now + pause_s(one.failures)})
        else:
            name, symbol, decimals = answers
            told = {"name": text_of(name), "symbol": text_of(symbol), "decimals": decimals_of(decimals)}
            tx.run(SQL.settle_token, row | told | {"now": now})
