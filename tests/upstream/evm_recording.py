"""What real EVM clients answered, read from tests/vectors/evm, and what their state was at any block."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from icefall.demo.recording import Blocks, Kind, RecordedBlock, RecordedState, Recording

VECTORS = Path(__file__).parent.parent / "vectors" / "evm"
CHAINS = ("geth-1", "cchain-1", "anvil-1", "berlin-1")
KINDS: dict[str, Kind] = {
    "geth-1": "geth",
    "cchain-1": "coreth",
    "anvil-1": "anvil",
    "demo-1": "anvil",
    "berlin-1": "anvil",
}


@cache
def recording(chain: str) -> Recording:
    return Recording(VECTORS / chain, KINDS[chain])


def lines(chain: str, name: str) -> Iterator[bytes]:
    yield from recording(chain).lines(name)


def loaded(chain: str, name: str) -> Any:
    return recording(chain).loaded(name)


@cache
def recorded_blocks(chain: str, name: str = "blocks") -> Blocks:
    """By number. `name` may be one of anvil-1's reorg1_before_blocks, reorg1_after_blocks, reorg2_..."""
    if name == "blocks":
        return recording(chain).blocks
    return {block.number: block for block in map(RecordedBlock, lines(chain, name))}


def recorded_state(chain: str) -> RecordedState:
    return recording(chain).state
