"""Names that the operator gives to addresses, for readers of the Explorer: a JSON file (docs/lists.md)."""

import re
from pathlib import Path

import msgspec

from icefall.errors import StartRefused

SIZE_MAX = 4 << 20
LABELS_MAX = 20_000
NAME_SIZE_MAX = 64
EVERY_CHAIN = "*"
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_CHAIN = re.compile(r"[0-9]{1,20}|\*")

Labels = dict[str, dict[str, str]]  # by chain ID or EVERY_CHAIN, then by address in lower case


def labels_of(path: str) -> Labels:
    """Read the file of labels; none where the path is empty. StartRefused says what is wrong with the file."""
    if not path:
        return {}
    try:
        if Path(path).stat().st_size > SIZE_MAX:
            raise StartRefused(f"{path} has more than {SIZE_MAX} bytes")
        given = msgspec.json.decode(Path(path).read_bytes(), type=Labels)
    except OSError as error:
        raise StartRefused(f"cannot read {path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StartRefused(f"{path} is not a file of labels: {error}") from None
    found = {_chain(path, chain): _named(path, chain, names) for chain, names in given.items()}
    if sum(map(len, found.values())) > LABELS_MAX:
        raise StartRefused(f"{path} has more than {LABELS_MAX} labels")
    return found


def _chain(path: str, chain: str) -> str:
    if not _CHAIN.fullmatch(chain):
        raise StartRefused(f"{path}: {chain[:50]!r} is neither a chain ID nor {EVERY_CHAIN}")
    return chain


def _named(path: str, chain: str, names: dict[str, str]) -> dict[str, str]:
    for address, name in names.items():
        if not _ADDRESS.fullmatch(address):
            raise StartRefused(f"{path}: {address[:50]!r} of chain {chain} is not an address of 0x and 40 hex digits")
        if not 0 < len(name) <= NAME_SIZE_MAX:
            raise StartRefused(f"{path}: the label of {address} must have 1 to {NAME_SIZE_MAX} characters")
    return {address.lower(): name for address, name in names.items()}
