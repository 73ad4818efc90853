"""The C-Chain's block 0: its hash, from the JSON text that a network's genesis file carries for that chain."""

from typing import NamedTuple

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.evm import rlp
from icefall.wire.evm.rlp import keccak256
from icefall.wire.genesis.config import U64_MAX

# A network other than mainnet and fuji runs every upgrade from this moment on. A genesis block at or after it carries
# the header fields those upgrades brought, with these first values, and has their one precompiled contract switched on.
UPGRADED_FROM = 1_607_144_400
_BASE_FEE_WEI = 225_000_000_000
_MIN_DELAY_EXCESS = 7_970_124

_NO_UNCLES = keccak256(rlp.encode([]))
_WORD_MAX = 2**256 - 1


class _Account(msgspec.Struct, frozen=True):
    balance: str
    code: str = "0x"
    nonce: str = "0x0"
    storage: dict[str, str] = {}


class _Config(msgspec.Struct, frozen=True, rename="camel"):
    chain_id: int


class _EvmGenesis(msgspec.Struct, frozen=True, rename="camel"):
    config: _Config
    alloc: dict[str, _Account]
    gas_limit: str
    nonce: str = "0x0"
    timestamp: str = "0x0"
    extra_data: str = "0x"
    difficulty: str = "0x0"
    mix_hash: str = "0x" + "00" * 32
    coinbase: str = "0x" + "00" * 20
    number: str = "0x0"
    gas_used: str = "0x0"
    parent_hash: str = "0x" + "00" * 32


_WARP_ADDRESS = "02" + "00" * 18 + "05"
_WARP_ACCOUNT = _Account(balance="0x0", code="0x01", nonce="0x1")


def evm_chain_id(text: str) -> int:
    """The number wallets know the chain by."""
    return _parsed(text).config.chain_id


class EvmForks(NamedTuple):
    """When the upgrades that change block 0 of the C-Chain begin, in Unix seconds."""

    apricot_phase_3: int = UPGRADED_FROM
    apricot_phase_4: int = UPGRADED_FROM
    durango: int = UPGRADED_FROM
    etna: int = UPGRADED_FROM
    granite: int = UPGRADED_FROM


def evm_genesis_hash(text: str, *, has_own_schedule: bool, forks: EvmForks = EvmForks()) -> bytes:  # noqa: B008
    """Hash of block 0. `has_own_schedule`: mainnet and fuji, whose upgrades all came after their genesis."""
    genesis = _parsed(text)
    time = _number("timestamp", genesis.timestamp, U64_MAX)
    at = EvmForks(*[not has_own_schedule and time >= fork for fork in forks])
    alloc = genesis.alloc | {_WARP_ADDRESS: _WARP_ACCOUNT} if at.durango else genesis.alloc
    header = [
        _bytes("parentHash", genesis.parent_hash, 32),
        _NO_UNCLES,
        _bytes("coinbase", genesis.coinbase, 20),
        _state_root(alloc),
        rlp.EMPTY_ROOT,
        rlp.EMPTY_ROOT,
        bytes(256),
        rlp.number(_number("difficulty", genesis.difficulty)),
        rlp.number(_number("number", genesis.number, U64_MAX)),
        rlp.number(_number("gasLimit", genesis.gas_limit, U64_MAX)),
        rlp.number(_number("gasUsed", genesis.gas_used, U64_MAX)),
        rlp.number(time),
        _bytes("extraData", genesis.extra_data),
        _bytes("mixHash", genesis.mix_hash, 32),
        _number("nonce", genesis.nonce, U64_MAX).to_bytes(8, "big"),
        bytes(32),  # hash of the atomic transactions; block 0 leaves it zero
    ]
    if at.apricot_phase_3:
        header.append(rlp.number(_BASE_FEE_WEI))
    if at.apricot_phase_4:
        header += [rlp.number(0), rlp.number(0)]  # gas of atomic transactions, block gas cost
    if at.etna:
        header += [rlp.number(0), rlp.number(0), bytes(32)]  # blob gas used, excess blob gas, parent beacon root
    if at.granite:
        header += [rlp.number(time * 1000), rlp.number(_MIN_DELAY_EXCESS)]
    return keccak256(rlp.encode(header))


def _state_root(alloc: dict[str, _Account]) -> bytes:
    return rlp.secure_root(
        {_bytes("alloc", address, 20): _account(f"alloc.{address}", account) for address, account in alloc.items()}
    )


def _account(where: str, account: _Account) -> bytes:
    slots = {
        _bytes(f"{where}.storage", slot, 32): rlp.encode(rlp.number(_number(f"{where}.storage.{slot}", value)))
        for slot, value in account.storage.items()
        if _number(f"{where}.storage.{slot}", value)
    }
    return rlp.encode(
        [
            rlp.number(_number(f"{where}.nonce", account.nonce, U64_MAX)),
            rlp.number(_number(f"{where}.balance", account.balance)),
            rlp.secure_root(slots),
            keccak256(_bytes(f"{where}.code", account.code)),
            b"",  # this chain's accounts have a fifth field: whether they hold other assets
        ]
    )


def _parsed(text: str) -> _EvmGenesis:
    try:
        return msgspec.json.decode(text, type=_EvmGenesis)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise WireError(f"genesis: cChainGenesis: {error}") from error


def _number(where: str, text: str, most: int = _WORD_MAX) -> int:
    digits = text.lower().removeprefix("0x")
    if 0 < len(digits) <= 64 and all(char in "0123456789abcdef" for char in digits):
        value = int(digits, 16)
        if value <= most:
            return value
    raise WireError(f"genesis: cChainGenesis: {where} must be a hex number up to {most:#x}, got {text!r}")


def _bytes(where: str, text: str, size: int | None = None) -> bytes:
    try:
        raw = bytes.fromhex(text.removeprefix("0x"))
    except ValueError as error:
        raise WireError(f"genesis: cChainGenesis: {where} must be hex, got {text!r}") from error
    if size is not None and len(raw) != size:
        raise WireError(f"genesis: cChainGenesis: {where} must have {size} bytes, got {len(raw)}")
    return raw
