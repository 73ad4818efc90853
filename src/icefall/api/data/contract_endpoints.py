"""The rows about calls of contracts, decoded, and about their interfaces (ABIs).

The hosted service has none of them. A key of an administrator is needed to change an interface: all callers see it.
"""

from icefall.api.data.handlers import abis, contract_state, decoding, raw
from icefall.api.data.schema.abis import (
    AbiResult,
    ContractCode,
    ContractProxy,
    ContractStateParams,
    FunctionResult,
    PutAbi,
    ReadFunction,
    TransactionInput,
)
from icefall.api.data.schema.tokens import ContractParams
from icefall.api.data.schema.transactions import (
    CallPage,
    CallsParams,
    RevertReason,
    TransactionParams,
)
from icefall.api.describing import examples
from icefall.api.http.row import DATA, Rest, Weight

TRANSACTION = "/v1/chains/{chainId}/transactions/{txHash}"
CONTRACT = "/v1/chains/{chainId}/contracts/{address}"
ABI = f"{CONTRACT}/abi"

# fmt: off
CONTRACT_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="GET", path=f"{TRANSACTION}/calls", params=CallsParams, result=CallPage, handler=raw.list_calls,
         listeners=(DATA,), weight=Weight.LARGE, operation="listTransactionCalls", ours=True,
         summary="All calls of a transaction, as a flat list of its call tree, with those that reverted."),
    Rest(verb="GET", path=f"{TRANSACTION}/revertReason", params=TransactionParams, result=RevertReason,
         handler=raw.revert_reason, listeners=(DATA,), weight=Weight.MEDIUM, operation="getRevertReason", ours=True,
         summary="Why a transaction reverted: what its contract returned, and as text if it is a common error."),
    Rest(verb="GET", path=f"{TRANSACTION}/input", params=TransactionParams,
         result=TransactionInput, handler=decoding.transaction_input, listeners=(DATA,), weight=Weight.SMALL,
         operation="getTransactionInput", examples=examples.TRANSFERS, ours=True,
         summary="Call data of a transaction, decoded where its function is known."),
    Rest(verb="GET", path=ABI, params=ContractParams, result=AbiResult, handler=abis.get_abi, listeners=(DATA,),
         weight=Weight.SMALL, operation="getContractAbi", examples=examples.TOKEN, ours=True,
         summary="The ABI by which a contract is decoded; the list is empty where none was added."),
    Rest(verb="GET", path=f"{CONTRACT}/code", params=ContractStateParams, result=ContractCode,
         handler=contract_state.contract_code, listeners=(DATA,), weight=Weight.MEDIUM, operation="getContractCode",
         examples=examples.TOKEN, ours=True,
         summary="The code of a contract, read from the upstream, and functions of many contracts that it seems to "
         "have."),
    Rest(verb="GET", path=f"{CONTRACT}/proxy", params=ContractStateParams, result=ContractProxy,
         handler=contract_state.contract_proxy, listeners=(DATA,), weight=Weight.MEDIUM, operation="getContractProxy",
         examples=examples.CLONE, ours=True,
         summary="The implementation that a proxy passes calls on to (EIP-1967, 1822, 1167, 897), read from the "
         "upstream."),
    Rest(verb="POST", path=f"{CONTRACT}/functions:read", params=ContractStateParams, body=ReadFunction,
         result=FunctionResult, handler=contract_state.read_function, listeners=(DATA,), weight=Weight.LARGE,
         operation="readContractFunction", examples=examples.TOKEN, ours=True, body_example=examples.READ,
         summary="Calls a function that reads, through the upstream; it is in an ABI of the contract, or one of many "
         "contracts."),
    Rest(verb="POST", path=ABI, params=ContractParams, body=PutAbi, result=AbiResult, handler=abis.put_abi,
         listeners=(DATA,), weight=Weight.LARGE, operation="putContractAbi", examples=examples.TOKEN, protected=True,
         ours=True, body_example=examples.ABI,
         summary="Adds the ABI of a contract, in place of one that was there. It needs a key of an administrator."),
    Rest(verb="DELETE", path=ABI, params=ContractParams, result=AbiResult, handler=abis.remove_abi,
         listeners=(DATA,), weight=Weight.MEDIUM, operation="removeContractAbi", examples=examples.TOKEN,
         protected=True, ours=True,
         summary="Removes the ABI of a contract. It needs a key of an administrator."),
)
# fmt: on
