"""The interfaces (ABIs) of contracts, as they are sent and shown, and what is decoded by them."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from icefall.api.http.structs import RestResult
from icefall.wire.evm.abi_json import DECLARATIONS_MAX

Declarations = Annotated[list[dict[str, Any]], Meta(max_length=DECLARATIONS_MAX)]


class PutAbi(Struct, frozen=True, kw_only=True, rename="camel"):
    """An ABI, as compilers write it."""

    abi: Declarations


class AbiResult(RestResult, frozen=True, kw_only=True):
    """The functions, events and errors by which a contract is decoded."""

    address: str
    abi: list[dict[str, Any]]


class DecodedParameter(RestResult, frozen=True, gc=False, kw_only=True):
    """One value. In arrays and tuples the name is the path to the value, as `message.receipts[0].nonce`."""

    name: str
    type: str
    value: str
    is_indexed: bool | UnsetType = UNSET
    is_hash: bool | UnsetType = UNSET


class DecodedData(RestResult, frozen=True, kw_only=True):
    """Call data, an event or an error, decoded by the ABI of the contract or a common signature."""

    signature: str
    parameters: list[DecodedParameter]


class TransactionInput(RestResult, frozen=True, kw_only=True):
    """The call data of a transaction. Of one that creates a contract it is code, which is not decoded."""

    tx_hash: str
    input: str
    method_name: str | UnsetType = UNSET
    decoded_input: DecodedData | UnsetType = UNSET
