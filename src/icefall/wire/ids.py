"""IDs and the texts they travel as: 32-byte hashes of bytes, 20-byte hashes of keys and certificates, numbers of
networks.

`*_id` is bytes, `*_text` is what a user reads.
"""

import hashlib
from functools import lru_cache
from hashlib import sha256

from icefall.wire.errors import WireError
from icefall.wire.text import cb58
from icefall.wire.text.go_text import quote

_FAST_RIPEMD160 = "ripemd160" in hashlib.algorithms_available  # OpenSSL builds may lack it

ID_SIZE = 32
SHORT_ID_SIZE = 20
NODE_ID_PREFIX = "NodeID-"
_TEXT_SIZE_MAX = 1024  # longer texts are no IDs, and decoding a megabyte of digits takes seconds

EMPTY_ID = bytes(ID_SIZE)
EMPTY_SHORT_ID = bytes(SHORT_ID_SIZE)
PRIMARY_NETWORK = EMPTY_ID  # the subnet of P, X and C
PLATFORM_CHAIN = EMPTY_ID  # the P-Chain has no transaction that created it

id_text = lru_cache(maxsize=16384)(cb58.encode)  # assets, chains and recent transactions recur in answers
short_id_text = cb58.encode


def _named(name: str) -> bytes:
    return name.encode().ljust(ID_SIZE, b"\0")


AVM_ID = _named("avm")
EVM_ID = _named("evm")
PLATFORM_VM_ID = _named("platformvm")
VM_NAMES = {AVM_ID: "avm", EVM_ID: "evm", PLATFORM_VM_ID: "platform"}

SECP256K1_FX_ID = _named("secp256k1fx")
NFT_FX_ID = _named("nftfx")
PROPERTY_FX_ID = _named("propertyfx")
FX_NAMES = {SECP256K1_FX_ID: "secp256k1fx", NFT_FX_ID: "nftfx", PROPERTY_FX_ID: "propertyfx"}
AVM_FX_IDS = (SECP256K1_FX_ID, NFT_FX_ID, PROPERTY_FX_ID)  # in the order of their fxIndex

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


def _ripemd160(raw: bytes) -> bytes:
    if _FAST_RIPEMD160:
        return hashlib.new("ripemd160", raw).digest()
    from Crypto.Hash import RIPEMD160  # noqa: PLC0415 - importing it takes long, and most systems do not need it

    return RIPEMD160.new(raw).digest()


def hash256(raw: bytes) -> bytes:
    """The ID of anything named after its bytes: transactions, blocks, chains."""
    return sha256(raw).digest()


def hash160(raw: bytes) -> bytes:
    """The short ID of a public key or a certificate."""
    return _ripemd160(sha256(raw).digest())


def input_id(txid: bytes, output_index: int) -> bytes:
    """The ID of the UTXO that output `output_index` of `txid` makes."""
    return sha256(output_index.to_bytes(8, "big") + txid).digest()


@lru_cache(maxsize=16384)  # what callers ask about recurs; texts of no ID are not kept
def id_from_text(text: str) -> bytes:
    """The 32 bytes of an ID's text."""
    return sized(cb58.decode(text[:_TEXT_SIZE_MAX]), ID_SIZE)


@lru_cache(maxsize=16384)
def short_id_from_text(text: str) -> bytes:
    """The 20 bytes of a short ID's text."""
    return sized(cb58.decode(text[:_TEXT_SIZE_MAX]), SHORT_ID_SIZE)


def sized(raw: bytes, size: int) -> bytes:
    """Return `raw` itself, provided it has the size of the ID it should be."""
    if len(raw) != size:
        raise WireError(f"invalid hash length: expected {size} bytes but got {len(raw)}")
    return raw


def node_id_text(certificate_der: bytes) -> str:
    """The name of a node, from its TLS certificate."""
    return NODE_ID_PREFIX + cb58.encode(hash160(certificate_der))


def node_id_from_text(text: str) -> bytes:
    """The 20 bytes behind `NodeID-...`."""
    if not text.startswith(NODE_ID_PREFIX):
        raise WireError(f"ID: {text} is missing the prefix: {NODE_ID_PREFIX}")
    return short_id_from_text(text.removeprefix(NODE_ID_PREFIX))


def network_name(network_id: int) -> str:
    """Return `local`, `fuji`, ... or `network-<number>`."""
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
