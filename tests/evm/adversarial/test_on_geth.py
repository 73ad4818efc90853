"""A sample of the scenario on geth."""

from pathlib import Path

from tests.evm.adversarial.checking import check
from tests.evm.adversarial.nodes import ADDRESSES, geth
from tests.evm.adversarial.scenario import scenario


def test_a_sample_of_the_same_answers_on_geth(tmp_path: Path) -> None:
    with geth(tmp_path) as node:
        check(node, scenario(ADDRESSES, sample=True), tmp_path, every=28)
