"""The whole scenario on anvil."""

import os
from pathlib import Path

from tests.evm.adversarial.checking import check
from tests.evm.adversarial.nodes import ADDRESSES, anvil
from tests.evm.adversarial.scenario import scenario

EVERY = int(os.environ.get("ICEFALL_FUZZ_EVERY_BLOCK", "24"))  # 1: answers at all blocks are compared


def test_same_answers_on_anvil(tmp_path: Path) -> None:
    with anvil() as node:
        check(node, scenario(ADDRESSES), tmp_path, every=EVERY)
