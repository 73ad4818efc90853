"""`icefall abi add | list | remove`: works next to running servers, which see the change within a second."""

import re
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from icefall.access.abis import ListedAbi, listed_abis, put_abi, remove_abi
from icefall.commands.forget import configured_chain
from icefall.compose.stores import stores_of
from icefall.config.settings import Config
from icefall.config.values import bare
from icefall.db.engine import StoreError
from icefall.errors import BadRequest, StartRefused
from icefall.wire.evm.abi import AbiError
from icefall.wire.evm.abi_json import SIZE_MAX, read_abi
from icefall.wire.evm.hex import checksummed

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")


def abi_command(config: Config, action: str, words: Sequence[str]) -> str:
    """The text to print. `words`: what follows the action. StartRefused where it fails."""
    with closing(stores_of(config)) as stores:
        access, now = stores.access_writer(), int(time.time())
        try:
            if action == "list":
                return _listed(access.write(listed_abis) if access.exists() else [])
            chain, address = _chain_id(config, words[0]), _address(words[1])
            where = f"{checksummed(address)} on chain {chain}"
            if action == "remove":
                if not access.exists() or not access.write(lambda tx: remove_abi(tx, chain, address, now)):
                    raise StartRefused(f"there is no ABI of {where}")
                return f"The ABI of {where} is removed."
            text, count = _read(words[2])
            access.write(partial(put_abi, chain_id=chain, address=address, text=text, origin="", now=now))
        except (StoreError, BadRequest) as error:
            raise StartRefused(str(error)) from error
    return f"The ABI of {where} is stored, with {count} declarations."


def _chain_id(config: Config, name: str) -> str:
    configured = configured_chain(config.chain, name)
    chain = configured.id if configured else name
    if not (chain.isascii() and chain.isdigit()):
        raise StartRefused(f"chain {bare(name)} is not in the configuration: name it by its EVM chain ID")
    return chain


def _address(text: str) -> bytes:
    if not _ADDRESS.fullmatch(text):
        raise StartRefused(f"{bare(text)} is not an address: 0x and 40 hex digits")
    return bytes.fromhex(text[2:])


def _read(path: str) -> tuple[str, int]:
    """Return an ABI file as it is stored, and how many declarations it has."""
    try:
        with Path(path).open("rb") as file:
            entries = read_abi(file.read(SIZE_MAX + 1)).entries()
    except OSError as error:
        raise StartRefused(f"cannot read {path}: {error.strerror}") from None
    except AbiError as error:
        raise StartRefused(f"{path}: {error}") from None
    return msgspec.json.encode(entries).decode(), len(entries)


def _listed(abis: Sequence[ListedAbi]) -> str:
    if not abis:
        return "There are no ABIs."
    rows = [("CHAIN", "ADDRESS", "ADDED", "BY")]
    for one in abis:
        added = datetime.fromtimestamp(one.added, UTC).strftime("%Y-%m-%d %H:%M:%S")
        rows.append((one.chain_id, checksummed(one.address), added, one.origin or "command line"))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
