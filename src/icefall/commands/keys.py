"""`icefall keys add | list | revoke`: works next to running servers, which see the change at their next request."""

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from icefall.access.budgets import LOWEST_TIER
from icefall.access.store import AccessWriter, ListedKey, NameTaken
from icefall.db.engine import StoreError
from icefall.errors import StartRefused

_NAME = re.compile(r"[^\x00-\x20\x7f]{1,64}")


def keys_command(
    action: str, access: AccessWriter, name: str, tier: str, tiers: Sequence[str], *, is_admin: bool = False
) -> str:
    """The text to print. Raises StartRefused where the action fails."""
    try:
        match action:
            case "add":
                return _add(access, name, tier or LOWEST_TIER, tiers, is_admin=is_admin)
            case "revoke":
                return _revoke(access, name)
            case _:
                return _list(access.all_keys() if access.exists() else [])
    except StoreError as error:
        raise StartRefused(str(error)) from error


def _add(access: AccessWriter, name: str, tier: str, tiers: Sequence[str], *, is_admin: bool) -> str:
    if not _NAME.fullmatch(name):
        raise StartRefused("--name must be 1 to 64 characters without spaces")
    if tier not in tiers:
        raise StartRefused(f"--tier must be one of {', '.join(tiers)}")
    try:
        key = access.add_key(name, tier, int(time.time()), is_admin=is_admin)
    except NameTaken:
        raise StartRefused(f"there is a key named {name} already: revoke it first, or choose another name") from None
    rights = ", admin" if is_admin else ""
    return f"{key}\n\nThis is the key of {name} (tier {tier}{rights}). It is shown only this once."


def _revoke(access: AccessWriter, name: str) -> str:
    if not access.exists() or not access.revoke_key(name, int(time.time())):
        is_revoked = access.exists() and any(key.name == name for key in access.all_keys())
        raise StartRefused(f"the key of {name} is revoked already" if is_revoked else f"there is no key named {name}")
    return f"The key of {name} is revoked."


def _list(keys: Sequence[ListedKey]) -> str:
    if not keys:
        return "There are no keys."
    rows = [("NAME", "TIER", "CREATED", "REVOKED")]
    rows += [
        (key.name, _tier_text(key), _time_text(key.created), _time_text(key.revoked) if key.revoked else "")
        for key in keys
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _tier_text(key: ListedKey) -> str:
    return f"{key.tier}, admin" if key.is_admin else key.tier


def _time_text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
