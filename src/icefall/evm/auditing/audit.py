"""Audits a chain: compares what was folded from logs with what the contracts themselves answer, in a loop of its own.

Blocks are audited in order, each at its own state, so the result does not depend on how they arrived; sample.py
chooses what is compared. A token that disagrees once is untrusted for all blocks: its balances come from state then,
until the block that showed it is rolled back. What exceeds the budget is left out, and made up later, at its own block.
Blocks whose state no upstream has any more are skipped, and count as left out. After the last block every token is
compared once more.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from icefall.db.engine import StoreError, Transaction
from icefall.evm.auditing.due import SQL
from icefall.evm.auditing.sample import FIRST_CREDIT, LAG, Sampler, StateCheck
from icefall.evm.contract_calls import StateSource, address_of, uint_of
from icefall.evm.model import ZERO_ADDRESS
from icefall.evm.storing.store import ChainStore, Tip
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.errors import NoState, Reverted
from icefall.upstream.evm.state import StateCall
from icefall.upstream.meter import Clock

SWEEP_CHECKS = 1_500  # comparisons of all tokens at the newest block that a new process may make,
SWEEP_PER_BLOCK = 1  # and one more for every block since
MADE_UP_CHECKS = 1_500  # comparisons that were left out, and that may be made up at once,
MADE_UP_PER_S = 50  # and so many more for every second in which nothing else is due
_AT_ONCE = 400
_ENDLESS = 1 << 62
_OWNERS_KEPT = 4_096  # blocks, beside later ones: more than a reorganisation takes away
_STATE_BLOCKS = 64  # behind the newest: their state every full node has
POLL_S = 0.5
QUIET_S = 3.0  # without a new block, before all tokens are compared at the newest one
_PAUSE_S = (1.0, 30.0)  # after a failure: first, and at most


class AuditLog(Protocol):
    def info(self, message: str, **fields: Any) -> None: ...

    def warn(self, message: str, **fields: Any) -> None: ...


class Finding(NamedTuple):
    """A comparison that disagreed. `owner`: who owns an NFT by the contract's state; None where it has no answer."""

    block: int
    check: StateCheck
    owner: bytes | None


class Auditor:
    def __init__(self, store: ChainStore, state: StateSource, interval: int, log: AuditLog) -> None:
        self._store = store
        self._state = state
        self._sampler = Sampler(store, interval)
        self._log = log
        self._sweep_credit = SWEEP_CHECKS
        self._swept: Tip | None = None  # at which block all tokens were compared
        self._sweep_after = 0  # the token at which the last sweep ended for lack of budget
        self._sampler_of_all = Sampler(store, interval, moves_max=_ENDLESS)  # for what was left out
        self._credit_to_make_up: float = MADE_UP_CHECKS  # below 0 after a block that has more
        self._no_state_to = -1  # of blocks up to this one, none of which something is left out has its state anywhere
        self._one_at_a_time = asyncio.Lock()
        self.checks = 0  # since the start
        self.dropped = 0  # tokens that were due at a block, and of which not everything could be compared

    def audited_to(self) -> int:
        """The block up to which every comparison was made that was due."""
        return int(self._store.read(SQL.audited_to, ())[0][0])

    def _checkpoint(self) -> tuple[int, int]:
        rows = self._store.read(SQL.checkpoint, ())
        return rows[0] if rows else (-1, FIRST_CREDIT)

    # -- block by block ----------------------------------------------------------------------------------------

    async def step(self, tip: Tip) -> bool:
        """Audit the next blocks. Return False if there are none."""
        async with self._one_at_a_time:
            return await self._step(tip)

    async def _step(self, tip: Tip) -> bool:
        at, credit = self._checkpoint()
        first = max(at + 1, self._store.lowest() or 0)
        last = min(tip.number, first + LAG - 1)
        if first > last:
            return False
        hashes: dict[int, bytes | None] = {}
        checks: list[tuple[int, StateCheck]] = []
        by_turn: list[int] = []
        dropped: dict[int, int] = {}  # by block
        for sample in self._sampler.over(first, last, credit):
            checks += [(sample.number, check) for check in sample.checks]
            hashes[sample.number], credit = sample.block_hash, sample.credit
            by_turn += sample.by_turn
            if sample.dropped:
                dropped[sample.number] = sample.dropped
        try:
            findings = await self._compare(checks, hashes)
        except NoState as missing:
            last = max(last, tip.number - _STATE_BLOCKS)
            self._log.info(
                "blocks not audited: no upstream has their state", first=first, last=last, error=str(missing)
            )
            findings = []
            dropped = {checks[0][0]: len({check.token for _, check in checks})}
        block_hash = hashes.get(last) or self._store.block_hash(last)

        def change(tx: Transaction) -> list[Finding]:
            if not _is_stored(tx, last, block_hash):  # rolled back meanwhile: audited again
                return []
            new = _put_findings(tx, findings, SQL.mark_untrusted)
            tx.run_many(SQL.reread_token, [(token,) for token in by_turn])
            tx.run(SQL.put_checkpoint, {"block": last, "credit": credit, "dropped_from": min(dropped, default=None)})
            return new

        self._report(await self._store.write(change))
        self.dropped += sum(dropped.values())
        return True

    async def _compare(
        self, checks: Sequence[tuple[int, StateCheck]], hashes: Mapping[int, bytes | None]
    ) -> list[Finding]:
        found = []
        for start in range(0, len(checks), _AT_ONCE):
            disagreed = await self._disagreeing(checks[start : start + _AT_ONCE], hashes)
            if disagreed:  # asked again, for a node may have answered with the state of a block that came meanwhile
                disagreed = await self._disagreeing([(one.block, one.check) for one in disagreed], hashes)
            found += disagreed
        return found

    async def _disagreeing(
        self, checks: Sequence[tuple[int, StateCheck]], hashes: Mapping[int, bytes | None]
    ) -> list[Finding]:
        results = await self._state.results(
            [StateCall(check.call, hashes[number] or number) for number, check in checks]
        )
        self.checks += len(checks)
        return list(_findings(checks, results))

    # -- what was left out -------------------------------------------------------------------------------------

    def idle(self, seconds: float) -> None:
        """Allow more of what was left out, after a time in which nothing was due."""
        self._credit_to_make_up = min(MADE_UP_CHECKS, self._credit_to_make_up + MADE_UP_PER_S * seconds)

    async def make_up(self) -> bool:
        """Make the comparisons that were left out of the oldest such block, at its own state. Return False if there is
        none, or if the budget is spent."""
        async with self._one_at_a_time:
            return await self._make_up()

    async def _make_up(self) -> bool:
        has_credit = self._credit_to_make_up > 0
        rows = self._store.read(SQL.left_out, {"after": self._no_state_to}) if has_credit else []
        if not rows:
            return False
        number, checkpoint = rows[0]
        (sample,) = self._sampler_of_all.over(number, number, _ENDLESS)
        try:
            findings = await self._compare([(number, check) for check in sample.checks], {number: sample.block_hash})
        except NoState:  # not made up by this process
            self._no_state_to = checkpoint
            return True
        self._credit_to_make_up -= len(sample.checks)

        def change(tx: Transaction) -> list[Finding]:
            if not _is_stored(tx, number, sample.block_hash):
                return []
            tx.run(SQL.put_left_out, {"block": checkpoint, "dropped_from": number + 1 if number < checkpoint else None})
            return _put_findings(tx, findings, SQL.mark_differing)

        self._report(await self._store.write(change))
        return True

    # -- all tokens at the newest block ------------------------------------------------------------------------

    def is_swept(self, tip: Tip) -> bool:
        return self._swept == tip

    def is_done(self, tip: Tip) -> bool:
        return self._checkpoint()[0] >= tip.number and self.is_swept(tip)

    async def sweep(self, tip: Tip) -> None:
        """Compare every token at the newest block, as far as the budget goes; the next sweep goes on from there."""
        async with self._one_at_a_time:
            await self._sweep(tip)

    async def _sweep(self, tip: Tip) -> None:
        if self._swept is not None:
            earned = SWEEP_PER_BLOCK * max(0, tip.number - self._swept.number)
            self._sweep_credit = min(SWEEP_CHECKS, self._sweep_credit + earned)
        pending: list[tuple[int, StateCheck]] = []
        after = self._sweep_after
        for token, checks in self._sampler.all_tokens(tip.number, after):
            if self._sweep_credit < len(checks):
                break
            self._sweep_credit -= len(checks)
            pending += [(tip.number, check) for check in checks]
            after = token
            if len(pending) >= _AT_ONCE:
                await self._compare_at_newest(pending, tip)
                pending = []
        else:
            after = 0
        await self._compare_at_newest(pending, tip)
        self._sweep_after, self._swept = after, tip

    async def _compare_at_newest(self, checks: Sequence[tuple[int, StateCheck]], tip: Tip) -> None:
        if checks:
            findings = await self._compare(checks, {tip.number: tip.block_hash})

            def change(tx: Transaction) -> list[Finding]:
                is_stored = _is_stored(tx, tip.number, tip.block_hash)
                return _put_findings(tx, findings, SQL.mark_differing) if is_stored else []

            self._report(await self._store.write(change))

    def _report(self, new: Iterable[Finding]) -> None:
        for block, check, _ in new:
            self._log.info(
                "token untrusted: its logs do not match its state, so its balances are read from the chain",
                token=f"0x{check.token_address.hex()}",
                block=block,
            )


def _is_stored(tx: Transaction, number: int, block_hash: bytes | None) -> bool:
    """Tell whether the block was not rolled back meanwhile: the ID of an address may belong to another one since."""
    rows = tx.rows(SQL.block_hash, {"block": number})
    return bool(rows) and rows[0][0] == block_hash


def _findings(checks: Iterable[tuple[int, StateCheck]], results: Iterable[bytes | Reverted]) -> Iterator[Finding]:
    for (block, check), result in zip(checks, results, strict=True):
        if not agrees(check.stored, result):
            yield Finding(block, check, address_of(result) if check.token_id else None)


def agrees(stored: int | bytes, result: bytes | Reverted) -> bool:
    """Tell whether a contract answers with the stored balance, or the stored owner."""
    if isinstance(stored, int):
        return uint_of(result) == stored
    if stored == ZERO_ADDRESS:  # burned: a contract may refuse to answer
        return isinstance(result, Reverted) or address_of(result) == stored
    return address_of(result) == stored


def _put_findings(tx: Transaction, findings: Iterable[Finding], mark: str) -> list[Finding]:
    """Mark the tokens untrusted with the statement `mark`. Return the first finding of each that was trusted before."""
    new = []
    for finding in findings:
        block, check, owner = finding
        if tx.rows(SQL.is_trusted, {"token": check.token}):
            new.append(finding)
        tx.run(mark, {"token": check.token, "block": block})
        if check.token_id:
            nft = {"token_address": check.token_address, "token_id": check.token_id}
            tx.run(SQL.drop_older_state_owners, {**nft, "block": block - _OWNERS_KEPT})
            if owner:
                tx.run(SQL.put_state_owner, {**nft, "owner": owner, "token": check.token, "block": block})
    return new


async def audit_forever(auditor: Auditor, store: ChainStore, clock: Clock, log: AuditLog) -> None:
    """Audit until cancelled. Failures are retried, each after a longer pause."""
    pause, problem = _PAUSE_S[0], ""
    newest, since = b"", clock.now()
    while True:
        try:
            tip = store.tip()
            if tip is not None and tip.block_hash != newest:
                newest, since = tip.block_hash, clock.now()
            busy = tip is not None and await auditor.step(tip)
            if tip is not None and not busy and clock.now() - since >= QUIET_S and not auditor.is_swept(tip):
                await auditor.sweep(tip)
            if tip is not None and not busy:
                busy = await auditor.make_up()
            pause, problem = _PAUSE_S[0], ""
        except (UpstreamFailure, StoreError) as error:
            if str(error) != problem:
                problem = str(error)
                log.warn("audit failed, backing off", error=problem)
            await clock.sleep(pause)
            pause = min(2 * pause, _PAUSE_S[1])
            continue
        if not busy:
            await clock.sleep(POLL_S)
            auditor.idle(POLL_S)


async def finish_audits(auditor: Auditor, store: ChainStore) -> None:
    """Audit every stored block, all tokens at the newest one, and what was left out as far as the budget goes.
    UpstreamFailure where that cannot be done now."""
    while (tip := store.tip()) is not None:
        if not await auditor.step(tip):
            if not auditor.is_swept(tip):
                await auditor.sweep(tip)
            if not await auditor.make_up():
                return
