"""Types of parameters that only the primary network interface has: networks, chains, IDs, bech32 addresses."""

import re
from typing import Annotated, Any

from icefall.api.http.rest_params import BLOCK_NUMBER, HASH, TIMESTAMP, RestParamType, one_of, whole
from icefall.api.http.structs import InvalidValue
from icefall.evm.enriching.reader import CURRENCIES
from icefall.wire.errors import WireError
from icefall.wire.ids import NODE_ID_PREFIX, SHORT_ID_SIZE, id_from_text, node_id_from_text
from icefall.wire.pvm import types as pvm
from icefall.wire.text import bech32

ADDRESSES_MAX = 64
POSTED_ADDRESSES_MAX = 1024
ACCOUNT = "0x"  # stands for the human-readable part of an account of the C-Chain
_ADDRESS_SIZE_MAX = 90 + 2  # with the name of a chain and a dash
_ACCOUNT = re.compile(r"0x[0-9a-fA-F]{40}")
_PART = re.compile(r"[1-9A-HJ-NP-Za-km-z]{1,40}")
_DECIMAL = re.compile(r"[0-9]{1,3}(\.[0-9]{1,16})?")
_WORD = re.compile(r"[0-9A-Za-z_-]{1,64}")

# Type of transaction -> the name clients know it by.
TX_NAMES: dict[Any, str] = {
    pvm.PlatformBaseTx: "BaseTx",
    pvm.PlatformImportTx: "ImportTx",
    pvm.PlatformExportTx: "ExportTx",
} | {
    kind: kind.__name__
    for kind in (
        pvm.AddValidatorTx,
        pvm.AddSubnetValidatorTx,
        pvm.AddDelegatorTx,
        pvm.CreateChainTx,
        pvm.CreateSubnetTx,
        pvm.AdvanceTimeTx,
        pvm.RewardValidatorTx,
        pvm.RemoveSubnetValidatorTx,
        pvm.TransformSubnetTx,
        pvm.AddPermissionlessValidatorTx,
        pvm.AddPermissionlessDelegatorTx,
        pvm.TransferSubnetOwnershipTx,
        pvm.ConvertSubnetToL1Tx,
        pvm.RegisterL1ValidatorTx,
        pvm.SetL1ValidatorWeightTx,
        pvm.IncreaseL1ValidatorBalanceTx,
        pvm.DisableL1ValidatorTx,
    )
}
TYPE_IDS: dict[str, int] = {name: kind.type_id for kind, name in TX_NAMES.items()}
TX_TYPE_NAMES = frozenset({*TYPE_IDS, "CreateAssetTx", "OperationTx", "UNKNOWN"})


def _word(expected: str, example: str) -> RestParamType:
    def read(text: str) -> str:
        if not _WORD.fullmatch(text):
            raise InvalidValue(expected)
        return text

    schema = {"type": "string", "minLength": 1, "maxLength": 64}
    return RestParamType(expected, read, schema, example)


def _id(text: str) -> bytes:
    try:
        return id_from_text(text)
    except WireError:
        raise InvalidValue("an ID: 32 bytes in CB58") from None


def _block(text: str) -> int | bytes:
    try:
        if text[:2] == "0x":
            return bytes(HASH.read(text))
        return int(BLOCK_NUMBER.read(text)) if text.isascii() and text.isdigit() else _id(text)
    except InvalidValue:
        raise InvalidValue("the height of a block, or its ID: 32 bytes in CB58, of C in hex") from None


def read_addresses(text: str, most: int = ADDRESSES_MAX) -> tuple[tuple[str, bytes], ...]:
    """Read addresses with or without the name of a chain; each with the human-readable part it was written with."""
    expected = f"1 to {most} bech32 addresses separated by commas, with or without the name of a chain"
    listed = text.split(",")
    if len(listed) > most:
        raise InvalidValue(f"{expected} ({len(listed)} are given)")
    found: dict[tuple[str, bytes], None] = {}
    for one in listed:
        written = one.strip(" ")
        try:
            if len(written) > _ADDRESS_SIZE_MAX:
                raise InvalidValue(expected)
            if _ACCOUNT.fullmatch(written):
                found[ACCOUNT, bytes.fromhex(written[2:])] = None
                continue
            hrp, address = bech32.decode(written[2:] if written[:2] in ("P-", "X-", "C-") else written)
        except WireError:
            raise InvalidValue(expected) from None
        if len(address) != SHORT_ID_SIZE:
            raise InvalidValue(expected)
        found[hrp, address] = None
    return tuple(found)


def _nodes(text: str) -> tuple[bytes, ...]:
    expected = f"1 to {ADDRESSES_MAX} node IDs separated by commas"
    listed = text.split(",")
    if len(listed) > ADDRESSES_MAX:
        raise InvalidValue(expected)
    try:
        return tuple(dict.fromkeys(node_id_from_text(one.strip(" ")) for one in listed))
    except WireError:
        raise InvalidValue(expected) from None


def _node(text: str) -> bytes:
    try:
        return node_id_from_text(text)
    except WireError:
        raise InvalidValue(f"{NODE_ID_PREFIX} and 20 bytes in CB58") from None


def _tx_types(text: str) -> tuple[str, ...]:
    """Read names of types; those that a chain does not have match nothing there."""
    names = {one.strip(" ") for one in text.split(",")}
    if not names <= TX_TYPE_NAMES:
        raise InvalidValue("types of transactions separated by commas, such as ImportTx,ExportTx")
    return tuple(sorted(names))


def _node_parts(text: str) -> tuple[str, ...]:
    """Read node IDs or parts of them, without what they all begin with."""
    expected = f"1 to {ADDRESSES_MAX} node IDs, or parts of them, separated by commas"
    parts = [one.strip(" ").removeprefix(NODE_ID_PREFIX) for one in text.split(",")]
    if len(parts) > ADDRESSES_MAX or not all(_PART.fullmatch(one) for one in parts):
        raise InvalidValue(expected)
    return tuple(dict.fromkeys(parts))


def _percent(low: int) -> RestParamType:
    expected = f"a number between {low} and 100"

    def read(text: str) -> float:
        if not _DECIMAL.fullmatch(text) or not low <= float(text) <= 100:
            raise InvalidValue(expected)
        return float(text)

    return RestParamType(f"{low} to 100", read, {"type": "number", "minimum": low, "maximum": 100}, "100")


_SOME_ADDRESS = "local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"
_PRIMARY = "11111111111111111111111111111111LpoYY"
NETWORK = _word("name of the network", "fuji")
CHAIN = _word("p-chain, x-chain or c-chain, or the ID of one", "p-chain")
ID = RestParamType("ID", _id, {"type": "string", "maxLength": 64}, _PRIMARY)
BLOCK = RestParamType("height or ID", _block, {"type": "string", "maxLength": 64}, "1")
ADDRESSES = RestParamType("addresses with commas", read_addresses, {"type": "string"}, _SOME_ADDRESS, is_list=True)
NODE_IDS = RestParamType("node IDs with commas", _nodes, {"type": "string"}, is_list=True)
NODE_PARTS = RestParamType("node IDs with commas", _node_parts, {"type": "string"}, "7Xhw", is_list=True)
NODE_ID = RestParamType("node ID", _node, {"type": "string", "maxLength": 64})
TX_TYPES = RestParamType(
    "types with commas",
    _tx_types,
    {"type": "array", "items": {"type": "string", "enum": sorted(TX_TYPE_NAMES)}},
    "ImportTx",
    is_list=True,
)

NetworkName = Annotated[str, NETWORK]
PrimaryChain = Annotated[str, CHAIN]
IdParam = Annotated[bytes, ID]
BlockIdParam = Annotated[int | bytes, BLOCK]
Addresses = Annotated[tuple[tuple[str, bytes], ...], ADDRESSES]
NodeIds = Annotated[tuple[bytes, ...], NODE_IDS]
NodeId = Annotated[bytes, NODE_ID]
TxTypes = Annotated[tuple[str, ...], TX_TYPES]
MaybeId = Annotated[bytes | None, ID]
MinAmount = Annotated[int, whole(0, 2**64 - 1, "1")]
UtxoSortBy = Annotated[str, one_of("timestamp", "amount")]
VertexHeight = Annotated[int, whole(0, 2**63 - 1, "1")]
ManyUtxos = Annotated[int, whole(1, 1024)]
Time = Annotated[int | None, TIMESTAMP]
NodeParts = Annotated[tuple[str, ...], NODE_PARTS]
OptionalId = Annotated[bytes | None, ID]
OptionalNodeId = Annotated[bytes | None, NODE_ID]
FeePercent = Annotated[float | None, _percent(2)]
UptimePercent = Annotated[float | None, _percent(0)]
Seconds = Annotated[int | None, whole(0, 2**31 - 1)]
StakeAmount = Annotated[int | None, whole(0, 720_000_000_000_000_000)]
ValidationStatus = Annotated[str | None, one_of("active", "pending", "completed", "removed")]
DelegationStatus = Annotated[str | None, one_of("active", "pending", "completed")]
ValidatorSort = Annotated[
    str, one_of("blockIndex", "delegationCapacity", "timeRemaining", "delegationFee", "uptimePerformance")
]
MaybeCurrency = Annotated[str | None, one_of(*CURRENCIES)]
ManyPageSize = Annotated[int, whole(1, 10_000)]
