"""The interfaces (ABIs) of contracts, as they are sent and shown, and what is decoded by them."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from icefall.api.http.rest_params import BlockNumber, ChainName, EvmAddress
from icefall.api.http.structs import RestParams, RestResult
from icefall.wire.evm.abi import PARAMETERS_MAX, TEXT_MAX
from icefall.wire.evm.abi_json import DECLARATIONS_MAX
from icefall.wire.evm.proxies import ProxyKind

Declarations = Annotated[list[dict[str, Any]], Meta(max_length=DECLARATIONS_MAX)]


class PutAbi(Struct, frozen=True, kw_only=True, rename="camel"):
    """An ABI, as compilers write it."""

    abi: Declarations


class AbiResult(RestResult, frozen=True, kw_only=True):
    """The functions, events and errors by which a contract is decoded."""

    address: str
    abi: list[dict[str, Any]]


class ContractStateParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    block_number: BlockNumber = None


class ContractCode(RestResult, frozen=True, kw_only=True):
    """The code of a contract right after a block. `read_functions`: functions of many contracts that it seems to have,
    because their selectors are in it."""

    address: str
    block_number: str
    block_hash: str
    size: int
    code_hash: str
    code: str
    read_functions: list[dict[str, Any]]


class ContractProxy(RestResult, frozen=True, kw_only=True):
    """What a contract passes calls on to, right after a block."""

    address: str
    block_number: str
    block_hash: str
    is_proxy: bool
    proxy_kind: ProxyKind | UnsetType = UNSET
    implementation: str | UnsetType = UNSET
    beacon: str | UnsetType = UNSET


class ReadFunction(Struct, frozen=True, kw_only=True, rename="camel"):
    """A function that reads, by its signature, and its arguments."""

    function: Annotated[str, Meta(min_length=3, max_length=TEXT_MAX)]
    arguments: Annotated[list[Any], Meta(max_length=PARAMETERS_MAX)] = []


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


class FunctionResult(RestResult, frozen=True, kw_only=True):
    """What a function returned, or how it failed. `outputs` are absent where it returned something else than the ABI
    says."""

    address: str
    block_number: str
    block_hash: str
    function: str
    output: str
    outputs: list[DecodedParameter] | UnsetType = UNSET
    is_reverted: bool
    revert_reason: str | UnsetType = UNSET
    decoded_error: DecodedData | UnsetType = UNSET


class TransactionInput(RestResult, frozen=True, kw_only=True):
    """The call data of a transaction. Of one that creates a contract it is code, which is not decoded."""

    tx_hash: str
    input: str
    method_name: str | UnsetType = UNSET
    decoded_input: DecodedData | UnsetType = UNSET
