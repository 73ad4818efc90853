"""Parameters, bodies and results of exports, which the hosted service calls operations."""

import re
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from icefall.api.http.rest_params import RestParamType, whole
from icefall.api.http.structs import InvalidValue, RestParams, RestResult

ADDRESSES_MAX, CHAINS_MAX = 50, 20
_ID_SIZE_MAX, _NAME_SIZE_MAX = 64, 64
_SIGNATURE = re.compile("[0-9a-f]{64}")
_FILE_NAME = re.compile(r"[a-z0-9_-]{1,50}\.zip")
ExportType = Literal[
    "TRANSACTION_EXPORT_EVM",
    "TRANSACTION_EXPORT_PRIMARY_NETWORK",
    "TRANSACTION_EXPORT_PRIMARY_NETWORK_STAKING",
    "TRANSACTION_EXPORT_PRIMARY_NETWORK_SIMPLE",
]
StatusText = Literal["RUNNING", "COMPLETED", "COMPLETED_WITH_WARNING", "FAILED"]
CodeText = Literal["ErrInvalidRequest", "ErrInternal", "WarnTruncatedExport"]


def _id(text: str) -> str:
    if not 1 <= len(text) <= _ID_SIZE_MAX or not text.isascii() or not text.isprintable():
        raise InvalidValue("the ID of an operation")
    return text


def _signature(text: str) -> str:
    if not _SIGNATURE.fullmatch(text):
        raise InvalidValue("the signature of a link: 64 hex digits")
    return text


def _file_name(text: str) -> str:
    if not _FILE_NAME.fullmatch(text):
        raise InvalidValue("the name of a file of the operation")
    return text


OPERATION_ID = RestParamType(
    "operation ID",
    _id,
    {"type": "string", "minLength": 1, "maxLength": _ID_SIZE_MAX},
    "11111111-2222-4333-8444-555555555555",
)
SIGNATURE = RestParamType("signature", _signature, {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "0" * 64)
FILE_NAME = RestParamType(
    "file name", _file_name, {"type": "string", "maxLength": _NAME_SIZE_MAX}, "transactions_2024-01-01_2024-12-31.zip"
)
Day = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
ChainText = Annotated[str, Meta(min_length=1, max_length=128)]
AddressText = Annotated[str, Meta(min_length=1, max_length=128)]


class OperationParams(RestParams, frozen=True):
    operation_id: Annotated[str, OPERATION_ID]


class OperationFileParams(RestParams, frozen=True):
    operation_id: Annotated[str, OPERATION_ID]
    file_name: Annotated[str, FILE_NAME]
    expires: Annotated[int, whole(0, 2**40)]
    signature: Annotated[str, SIGNATURE]


class ExportOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """Addresses and chains. Fields that are not known are ignored, as the hosted service does, which has no tokens."""

    addresses: Annotated[list[AddressText], Meta(max_length=ADDRESSES_MAX)] = []
    tokens: Annotated[list[AddressText], Meta(max_length=ADDRESSES_MAX)] = []
    c_chain_evm_addresses: Annotated[list[AddressText], Meta(max_length=ADDRESSES_MAX)] = []
    include_chains: Annotated[list[ChainText], Meta(min_length=1, max_length=CHAINS_MAX)]


class OrderExport(Struct, frozen=True, kw_only=True, rename="camel"):
    """The body that orders an export. startDate and endDate are older names of firstDate and lastDate."""

    type: ExportType
    options: ExportOptions
    first_date: Day | UnsetType = UNSET
    last_date: Day | UnsetType = UNSET
    start_date: Day | UnsetType = UNSET
    end_date: Day | UnsetType = UNSET


class OperationMetadata(RestResult, frozen=True, kw_only=True):
    code: CodeText | UnsetType = UNSET
    download_url: str | UnsetType = UNSET
    next_date: str | UnsetType = UNSET
    expires_at: int | UnsetType = UNSET
    progress: int
    rows: int


class OperationResult(RestResult, frozen=True, kw_only=True):
    operation_id: str
    operation_type: ExportType
    operation_status: StatusText
    message: str | UnsetType = UNSET
    metadata: OperationMetadata
    created_at_timestamp: int
    updated_at_timestamp: int
