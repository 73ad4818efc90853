"""Recorded EVM chains: blocks, receipts, traces and diffs as the nodes sent them, and the true state after every block.

ICEFALL_EVM_RECORDINGS names another folder of such recordings to run the same tests on. Tests that try several values
on several chains try each value on some chain and each chain with some value; ICEFALL_FUZZ_EVERY_CHAIN=1: all on all.
"""

import gzip
import json
import lzma
import os
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from icefall.evm.deriving.derive import contract_lookups, derive
from icefall.evm.model import BlockRows, ContractInfo, ProbedStandard
from icefall.wire.evm.decode import decode_full
from icefall.wire.evm.types import FullBlock
from icefall.wire.ids import id_from_text

FOLDER = Path(os.environ.get("ICEFALL_EVM_RECORDINGS", Path(__file__).parent.parent / "vectors" / "evm"))
# The demo's chain is anvil-1 signed anew, without a record of every account's state: tests/demo has it.
NOT_RECORDED = ("contracts", "demo-1")
EVERY_CHAIN = "ICEFALL_FUZZ_EVERY_CHAIN" in os.environ
CHAINS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir() and path.name not in NOT_RECORDED)
REORGS = [f"reorg{number}_{when}" for number in (1, 2) for when in ("before", "after")]
LOCAL_AVAX = id_from_text("2fombhL7aGPwj3KH4bfrmJwW6PVnMobf9Y2fn9GwxiAAJyFDbe")


def each_once(*dimensions: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Combinations in which each value of each dimension occurs; all of them where that is asked for."""
    if EVERY_CHAIN:
        return list(product(*dimensions))
    return [tuple(values[at % len(values)] for values in dimensions) for at in range(max(map(len, dimensions)))]


class Row(msgspec.Struct, frozen=True):
    """One line of a recording, each part as it was sent."""

    number: int
    block: msgspec.Raw
    receipts: msgspec.Raw
    calls: msgspec.Raw
    diffs: msgspec.Raw


class Recorded(NamedTuple):
    full: FullBlock
    rows: BlockRows
    line: Any  # the same line as plain JSON


def text(chain: str, name: str) -> bytes:
    """A file of a recording, whichever way it is packed."""
    path = FOLDER / chain / name
    for suffix, unpack in ((".xz", lzma.decompress), (".gz", gzip.decompress), ("", bytes)):
        packed = path.with_name(name + suffix)
        if packed.exists():
            return unpack(packed.read_bytes())
    raise FileNotFoundError(path)


@cache
def lines(chain: str, part: str = "") -> list[Row]:
    raw = text(chain, f"{part}blocks.jsonl")
    return [msgspec.json.decode(line, type=Row) for line in raw.splitlines()]


def decoded(row: Row) -> FullBlock:
    calls, diffs = bytes(row.calls), bytes(row.diffs)
    return decode_full(
        bytes(row.block), bytes(row.receipts), None if calls == b"null" else calls, None if diffs == b"null" else diffs
    )


@cache
def full_blocks(chain: str, part: str = "") -> list[FullBlock]:
    return [decoded(row) for row in lines(chain, part)]


@cache
def meta(chain: str) -> Any:
    return json.loads(text(chain, "meta.json"))


@cache
def tokens(chain: str) -> dict[bytes, Any]:
    recorded = json.loads(text(chain, "tokens.json"))["tokens"]
    return {unhex(address): token for address, token in recorded.items()}


def labelled(chain: str, label: str) -> bytes:
    return unhex(meta(chain)["contracts"][label].lower())


def kind_of(chain: str, address: bytes) -> ProbedStandard:
    """As the contract answered: decimals(), else whether it is the NFT whose ownerOf works."""
    token = tokens(chain).get(address)
    if token is None:
        return ProbedStandard.NEITHER
    decimals = token["answers"].get("decimals")
    if isinstance(decimals, str) and len(decimals) == 66 and int(decimals, 16) <= 255:
        return ProbedStandard.ERC20
    return ProbedStandard.ERC721 if token["kind"] in ("nft:pre-standard", "erc721") else ProbedStandard.NEITHER


class Code:
    """Which addresses have code, followed through blocks as a store does. `keeps`: coreth keeps destroyed contracts."""

    def __init__(self, chain: str) -> None:
        self.keeps = chain.startswith("cchain")
        self.known: dict[bytes, bool] = {}
        for cheat in meta(chain).get("hiddenNativeChanges", []):
            if cheat["kind"] == "anvil_setCode":
                self.known[unhex(cheat["address"].lower())] = True

    def take(self, rows: BlockRows) -> None:
        for change in rows.code_changes:
            self.known[change.address] = self.keeps if change.has_code is None else change.has_code


def contract_info_for(chain: str, full: FullBlock, code: Code) -> ContractInfo:
    lookups = contract_lookups(full)
    contracts = meta(chain)["contracts"]
    return ContractInfo(
        has_code={address: code.known.get(address, False) for address in lookups.code},
        probed={address: kind_of(chain, address) for address in lookups.probes},
        messengers=(unhex((contracts.get("messengerReal") or contracts["messenger"]).lower()),),
        native_asset_id=LOCAL_AVAX if chain.startswith("cchain") else b"",
    )


@cache
def derived(chain: str) -> list[Recorded]:
    """The whole chain, derived in order."""
    code = Code(chain)
    found = []
    for line, full in zip(text(chain, "blocks.jsonl").splitlines(), full_blocks(chain), strict=True):
        rows = derive(full, contract_info_for(chain, full, code))
        code.take(rows)
        found.append(Recorded(full, rows, json.loads(line)))
    return found


def states(chain: str, part: str = "") -> Iterator[Any]:
    """Line by line, what changed in the true state."""
    for line in text(chain, f"{part}state.jsonl").splitlines():
        yield json.loads(line)


def like(client: str) -> str:
    """The recorded chain of a client."""
    return next(name for name in CHAINS if name.startswith(client))


def unhex(text: str) -> bytes:
    return bytes.fromhex(text[2:])
