"""A sample of tokens that lie: while the chain grows, reorganises and is followed by processes that are killed, and
afterwards, every balance at every block is what the contract answers, and so is every name."""

import os
from pathlib import Path

from tests.evm.liars.ids import ID_LAYOUTS
from tests.evm.liars.run import Size, run
from tests.evm.liars.tokens import LAYOUTS

TOKENS = int(os.environ.get("ICEFALL_FUZZ_LIARS", "0"))
BLOCKS = 40


def test_every_balance_is_that_of_the_contract(tmp_path: Path) -> None:
    stores = fresh = ["sqlite", "postgres"]
    size = Size(TOKENS, TOKENS // 3, BLOCKS, per_block=3 * TOKENS // 4, seed=1, untrue_every=10)
    if not TOKENS:
        fresh = stores[:1]
        size = Size(len(LAYOUTS), len(ID_LAYOUTS), blocks=6, per_block=14, seed=1, untrue_every=2, per_tx=2)
    for name, result in run(tmp_path, stores, fresh, size, on_anvil=not TOKENS):
        assert result.wrong == [], name
        assert result.compared > 500, name
