"""Runs the audits of one chain next to its follower, without ever delaying a block."""

from icefall.db.engine import StoreError
from icefall.evm.auditing.audit import AuditLog, Auditor
from icefall.evm.storing.store import ChainStore
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.meter import Clock

POLL_S = 0.5
QUIET_S = 3.0  # without a new block, before all tokens are compared at the newest one
_PAUSE_S = (1.0, 30.0)  # after a failure: first, and at most


async def audit_forever(auditor: Auditor, store: ChainStore, clock: Clock, log: AuditLog) -> None:
    """Until cancelled. Failures are retried, each after a longer pause."""
    pause, problem = _PAUSE_S[0], ""
    newest, since = -1, clock.now()
    while True:
        try:
            tip = store.tip()
            if tip is not None and tip.number != newest:
                newest, since = tip.number, clock.now()
            busy = tip is not None and await auditor.step(tip)
            if tip is not None and not busy and clock.now() - since >= QUIET_S and not auditor.is_swept(tip):
                await auditor.sweep(tip)
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


async def finish_audits(auditor: Auditor, store: ChainStore) -> None:
    """Audit every stored block, and all tokens at the newest one. UpstreamFailure where that cannot be done now."""
    while (tip := store.tip()) is not None:
        if not await auditor.step(tip):
            if not auditor.is_swept(tip):
                await auditor.sweep(tip)
            return
