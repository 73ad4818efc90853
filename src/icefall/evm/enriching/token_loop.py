"""Reads name, symbol and decimals of the contracts whose logs have token transfers.

All three are called on every contract, whatever its standard: a missing function reverts, which counts as an answer. A
failure of the upstream is retried without limit, at most a day apart: it says nothing about the contract.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from icefall.db.engine import Store, Transaction
from icefall.db.statements import load
from icefall.evm.enriching.contract_calls import DECIMALS, NAME, SYMBOL, Answers, call_each, decimals_of, text_of
from icefall.evm.enriching.counts import EnrichCounts
from icefall.evm.enriching.nft_outcomes import retry_pause_s
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.state import ContractCall
from icefall.upstream.evm.upstream import EvmUpstream

BATCH = 50
SQL = load("icefall.evm.enriching", "queries.sql")


class DueToken(NamedTuple):
    token: int
    address: bytes
    failures: int
    version: int  # of its metadata, which may change while it is read


class TokenMetadataLoop:
    def __init__(self, store: Store, upstream: EvmUpstream, counts: EnrichCounts, wall: Callable[[], float]) -> None:
        self._store = store
        self._upstream = upstream
        self._counts = counts
        self._wall = wall

    async def round(self) -> bool:
        """Read some tokens that are due. Whether there were any."""
        now = int(self._wall())
        due = [DueToken(*row) for row in self._store.read(SQL.due_tokens, {"now": now, "count": BATCH})]
        if not due:
            return False
        calls = [[ContractCall(token.address, data) for data in (NAME, SYMBOL, DECIMALS)] for token in due]
        answers = await call_each(self._upstream, calls)
        await self._store.write(partial(_put, list(zip(due, answers, strict=True)), now))
        read = sum(not isinstance(answer, UpstreamFailure) for answer in answers)
        self._counts.tokens_read += read
        self._counts.failures["tokens"] += len(due) - read
        return True


def _put(read: list[tuple[DueToken, Answers | UpstreamFailure]], now: int, tx: Transaction) -> None:
    for due, answers in read:
        row = {"token": due.token, "address": due.address}
        if isinstance(answers, UpstreamFailure):
            tx.run(SQL.postpone_token, row | {"retry_at": now + retry_pause_s(due.failures)})
        else:
            name, symbol, decimals = answers
            metadata = {"name": text_of(name), "symbol": text_of(symbol), "decimals": decimals_of(decimals)}
            tx.run(SQL.put_token, row | metadata | {"now": now, "version": due.version})
