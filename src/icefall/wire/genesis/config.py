"""A network's genesis file: the JSON that allocates the first funds and names the first validators."""

from typing import Any

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.ids import SHORT_ID_SIZE, node_id_from_text, sized
from icefall.wire.text.bech32 import address_from_text

U64_MAX = 2**64 - 1
_U32_MAX = 2**32 - 1
BLS_KEY_SIZE = 48
BLS_PROOF_SIZE = 96


class Unlock(msgspec.Struct, frozen=True, rename="camel"):
    """Part of an allocation on the P-Chain, free from `locktime` on."""

    amount: int
    locktime: int = 0


class Allocation(msgspec.Struct, frozen=True, rename="camel"):
    """Funds of one address: `initial_amount` on X, the unlock schedule on P."""

    avax_addr: str
    eth_addr: str
    initial_amount: int = 0
    unlock_schedule: list[Unlock] = []


class Signer(msgspec.Struct, frozen=True, rename="camel"):
    """A validator's BLS key and the proof that it has it."""

    public_key: str
    proof_of_possession: str


class Staker(msgspec.Struct, frozen=True, rename="camel"):
    """One of the first validators."""

    node_id: str = msgspec.field(name="nodeID")
    reward_address: str
    delegation_fee: int
    signer: Signer | None = None


class GenesisConfig(msgspec.Struct, frozen=True, rename="camel"):
    """A whole genesis file."""

    network_id: int = msgspec.field(name="networkID")
    allocations: list[Allocation]
    start_time: int
    initial_stake_duration: int
    initial_stake_duration_offset: int
    initial_staked_funds: list[str]
    initial_stakers: list[Staker]
    c_chain_genesis: str
    message: str = ""


def genesis_config(raw: bytes) -> GenesisConfig:
    """The file's content, every number and text checked, so that building from it cannot fail half-way."""
    try:
        config = msgspec.json.decode(raw, type=GenesisConfig)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WireError(f"genesis: {error}") from error
    _check_numbers(config)
    for index, allocation in enumerate(config.allocations):
        where = f"allocations[{index}]"
        _checked(f"{where}.avaxAddr", address_bytes, allocation.avax_addr)
        _checked(f"{where}.ethAddr", eth_address_bytes, allocation.eth_addr)
    for index, address in enumerate(config.initial_staked_funds):
        _checked(f"initialStakedFunds[{index}]", address_bytes, address)
    for index, staker in enumerate(config.initial_stakers):
        where = f"initialStakers[{index}]"
        _checked(f"{where}.nodeID", node_id_from_text, staker.node_id)
        _checked(f"{where}.rewardAddress", address_bytes, staker.reward_address)
        if staker.signer:
            _checked(f"{where}.signer.publicKey", hex_bytes, staker.signer.public_key, BLS_KEY_SIZE)
            _checked(f"{where}.signer.proofOfPossession", hex_bytes, staker.signer.proof_of_possession, BLS_PROOF_SIZE)
    return config


def address_bytes(text: str) -> bytes:
    """The 20 bytes of a full address, whatever its chain and network."""
    return sized(address_from_text(text)[2], SHORT_ID_SIZE)


def eth_address_bytes(text: str) -> bytes:
    """The 20 bytes of an Ethereum address."""
    return hex_bytes(text, SHORT_ID_SIZE)


def hex_bytes(text: str, size: int) -> bytes:
    """Read `size` bytes written as hex, with or without `0x`."""
    try:
        raw = bytes.fromhex(text.removeprefix("0x"))
    except ValueError as error:
        raise WireError(f"expected {size} bytes of hex, got {text!r}") from error
    if len(raw) != size:
        raise WireError(f"expected {size} bytes of hex, got {len(raw)}")
    return raw


def _check_numbers(config: GenesisConfig) -> None:
    _in_range("networkID", config.network_id, _U32_MAX)
    _in_range("startTime", config.start_time, U64_MAX)
    _in_range("initialStakeDuration", config.initial_stake_duration, U64_MAX)
    _in_range("initialStakeDurationOffset", config.initial_stake_duration_offset, U64_MAX)
    supply = 0
    for index, allocation in enumerate(config.allocations):
        where = f"allocations[{index}]"
        _in_range(f"{where}.initialAmount", allocation.initial_amount, U64_MAX)
        supply += allocation.initial_amount
        for at, unlock in enumerate(allocation.unlock_schedule):
            _in_range(f"{where}.unlockSchedule[{at}].amount", unlock.amount, U64_MAX)
            _in_range(f"{where}.unlockSchedule[{at}].locktime", unlock.locktime, U64_MAX)
            supply += unlock.amount
    _in_range("sum of all allocations", supply, U64_MAX)
    for index, staker in enumerate(config.initial_stakers):
        _in_range(f"initialStakers[{index}].delegationFee", staker.delegation_fee, _U32_MAX)
    offset = config.initial_stake_duration_offset * max(0, len(config.initial_stakers) - 1)
    if config.initial_stakers and offset >= config.initial_stake_duration:
        raise WireError(f"genesis: initialStakeDuration {config.initial_stake_duration} ends before the last staker's")
    _in_range("end of staking", config.start_time + config.initial_stake_duration, U64_MAX)


def _in_range(where: str, value: int, most: int) -> None:
    if not 0 <= value <= most:
        raise WireError(f"genesis: {where} must be between 0 and {most}, got {value}")


def _checked(where: str, parse: Any, *args: object) -> None:
    try:
        parse(*args)
    except WireError as error:
        raise WireError(f"genesis: {where}: {error}") from error
