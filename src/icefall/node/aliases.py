"""The limits on aliases of endpoints, what cannot be one, and how a path is split into alias and rest."""

ALIAS_MAX = 512
ENDPOINT_MAX = 1024
ALIASES_MAX = 1024  # stored, of endpoints and chains together
ALIASES_FOLLOWED_MAX = 16  # for one path: aliases may name aliases
TOO_MANY_FOLLOWED = f"an alias of an alias is followed {ALIASES_FOLLOWED_MAX} times at most"
# Served paths, which can never become aliases. `index/X` can, because only `index/X/block` is served.
NODE_BASES = frozenset(("admin", "health", "info", "metrics"))
_SPLIT_MAX = len("bc/") + ALIAS_MAX  # a chain's alias follows bc/


def splits(path: str) -> list[tuple[str, str]]:
    """The ways to split a path into alias and tail, longest alias first, up to the length limit of an alias."""
    cuts = [(path, "")] if len(path) <= _SPLIT_MAX else []
    at = path.rfind("/", 0, _SPLIT_MAX + 1)
    while at > 0:
        cuts.append((path[:at], path[at:]))
        at = path.rfind("/", 0, at)
    return cuts
