"""Networks: their numbers, their names, and the prefix their addresses carry."""

from icefall.wire.errors import WireError
from icefall.wire.text.go_text import quote

MAINNET_ID = 1
FUJI_ID = 5
LOCAL_ID = 12345
LOCAL_FUNDED_ADDRESS = "X-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"  # of the pre-funded key of local networks

# number -> (name, human-readable part of addresses)
NETWORKS = {
    MAINNET_ID: ("mainnet", "avax"),
    2: ("cascade", "cascade"),
    3: ("denali", "denali"),
    4: ("everest", "everest"),
    FUJI_ID: ("fuji", "fuji"),
    10: ("testing", "testing"),
    LOCAL_ID: ("local", "local"),
}
CUSTOM_HRP = "custom"

_NUMBERS = {name: number for number, (name, _) in NETWORKS.items()} | {"testnet": FUJI_ID}
_CUSTOM_PREFIX = "network-"
_NUMBER_MAX = 2**32 - 1


def network_name(network_id: int) -> str:
    """`local`, `fuji`, ... or `network-<number>`."""
    known = NETWORKS.get(network_id)
    return known[0] if known else f"{_CUSTOM_PREFIX}{network_id}"


def network_hrp(network_id: int) -> str:
    """The human-readable part of the network's addresses, before the `1`."""
    known = NETWORKS.get(network_id)
    return known[1] if known else CUSTOM_HRP


def network_id_from_text(text: str) -> int:
    """The number of a network given by name, by `network-<number>` or by number."""
    name = text.lower()
    if name in _NUMBERS:
        return _NUMBERS[name]
    digits = name.removeprefix(_CUSTOM_PREFIX)
    # The length bound keeps int() from ever seeing a text it would refuse for its size.
    if digits.isascii() and digits.isdigit():
        digits = digits.lstrip("0") or "0"
        if len(digits) <= 10 and int(digits) <= _NUMBER_MAX:
            return int(digits)
    raise WireError(f"failed to parse network name: {quote(name)}")
