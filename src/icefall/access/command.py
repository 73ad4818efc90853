"""`icefall keys add | list | revoke`: works beside running servers, which see the change at their next request."""

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from icefall.access.limits import LEAST
from icefall.access.store import ListedKey, NameTaken, add_key, all_keys, revoke_key, store_path
from icefall.db.engine import StoreError
from icefall.errors import StartRefused

_NAME = re.compile(r"[^\x00-\x20\x7f]{1,64}")


def keys_command(action: str, data_dir: Path, name: str, tier: str, tiers: Sequence[str]) -> str:
    """What to print. StartRefused for what cannot be done."""
    try:
        match action:
            case "add":
                return _add(data_dir, name, tier or LEAST, tiers)
            case "revoke":
                return _revoke(data_dir, name)
            case _:
                return _list(all_keys(data_dir) if store_path(data_dir).exists() else [])
    except StoreError as error:
        raise StartRefused(str(error)) from error


def _add(data_dir: Path, name: str, tier: str, tiers: Sequence[str]) -> str:
    if not _NAME.fullmatch(name):
        raise StartRefused("--name must be 1 to 64 characters without spaces")
    if tier not in tiers:
        raise StartRefused(f"--tier must be one of {', '.join(tiers)}")
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = add_key(data_dir, name, tier, int(time.time()))
    except OSError as error:
        raise StartRefused(f"the data directory {data_dir} cannot be made: {error.strerror}") from error
    except NameTaken:
        raise StartRefused(f"there is a key named {name} already: revoke it first, or take another name") from None
    return f"{key}\n\nThis is the key of {name} (tier {tier}). It is shown this once and cannot be shown again."


def _revoke(data_dir: Path, name: str) -> str:
    if not store_path(data_dir).exists() or not revoke_key(data_dir, name, int(time.time())):
        raise StartRefused(f"there is no key named {name}")
    return f"The key of {name} is revoked."


def _list(keys: Sequence[ListedKey]) -> str:
    if not keys:
        return "There are no keys."
    rows = [("NAME", "TIER", "CREATED", "REVOKED")]
    rows += [(key.name, key.tier, _day(key.created), _day(key.revoked) if key.revoked else "") for key in keys]
    widths = [max(len(row[place]) for row in rows) for place in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
