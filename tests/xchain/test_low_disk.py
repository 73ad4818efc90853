"""Too little disk space: a transaction is refused with the reason, and one that was accepted before is not lost."""

from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.xchain.stored import StoredChain, history

from icefall.db.disk import DiskLow
from icefall.wire.text import checksum_hex

REASON = "2 % of the disk is free"


@awaited
async def test_nothing_is_accepted_and_nothing_is_lost(tmp_path: Path) -> None:
    stored = StoredChain(tmp_path)
    chain = stored.chain
    is_low = False

    def check() -> None:
        if is_low:
            raise DiskLow(REASON)

    chain._check_space = check
    first, second = (step.txs[0] for step in history(1, 2))
    await chain.ledger.start()
    await chain.issue(checksum_hex.encode(first.raw), "hex")
    is_low = True
    with pytest.raises(DiskLow, match=REASON):
        await chain.issue(checksum_hex.encode(second.raw), "hex")
    assert chain.state_of(second.txid) == "", "neither accepted nor refused: it can be issued again"
    with pytest.raises(DiskLow, match=REASON):
        await chain.accept_pending()
    assert (chain.ledger.height, chain.state_of(first.txid)) == (0, "Processing")
    is_low = False
    assert await chain.accept_pending()
    assert chain.ledger.height == 1
    await chain.issue(checksum_hex.encode(second.raw), "hex")
    stored.store.close()
