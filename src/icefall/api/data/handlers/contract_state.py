"""Handlers of what an upstream says of a contract at a block: its code, what it is a proxy of, and its functions that
read."""

from typing import Any

from msgspec import UNSET

from icefall.api.data.handlers.balances import block_at
from icefall.api.data.handlers.decoding import decoded_data, decoded_values
from icefall.api.data.schema.abis import (
    ContractCode,
    ContractProxy,
    ContractStateParams,
    FunctionResult,
    ReadFunction,
)
from icefall.api.http.structs import address_text, hash_text
from icefall.errors import BadRequest, NotFound
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import BlockRead
from icefall.wire.evm.abi import AbiError, Declaration, declaration
from icefall.wire.evm.abi_decoding import decode_output
from icefall.wire.evm.abi_encoding import encode_call
from icefall.wire.evm.abi_json import entry_of
from icefall.wire.evm.abi_shipped import READS_BY_SELECTOR
from icefall.wire.evm.events import reason_of
from icefall.wire.evm.rlp import keccak256

_PUSH4 = b"\x63"  # in front of a selector, where code compares it


async def contract_code(params: ContractStateParams, chains: ChainDirectory) -> ContractCode:
    chain = await chains.find(params.chain_id)
    block = await block_at(chain, params.block_number)
    code = await _code(chain, params.address, block)
    return ContractCode(
        **_place(params, block),
        size=len(code),
        code_hash=hash_text(keccak256(code)),
        code=hash_text(code),
        read_functions=[entry_of(one) for selector, one in READS_BY_SELECTOR.items() if _PUSH4 + selector in code],
    )


async def contract_proxy(params: ContractStateParams, chains: ChainDirectory) -> ContractProxy:
    chain = await chains.find(params.chain_id)
    block = await block_at(chain, params.block_number)
    proxy = await chain.proxies.of(params.address, block)
    if proxy is None:
        return ContractProxy(**_place(params, block), is_proxy=False)
    return ContractProxy(
        **_place(params, block),
        is_proxy=True,
        proxy_kind=proxy.kind,
        implementation=address_text(proxy.implementation),
        beacon=UNSET if proxy.beacon is None else address_text(proxy.beacon),
    )


async def read_function(params: ContractStateParams, body: ReadFunction, chains: ChainDirectory) -> FunctionResult:
    chain = await chains.find(params.chain_id)
    block = await block_at(chain, params.block_number)
    declared = await _function(chain, params.address, body.function)
    try:
        sent = encode_call(declared, body.arguments)
    except AbiError as error:
        raise BadRequest(f"arguments: {error}") from None
    answer = await chain.contract_state.call(params.address, sent, block)
    where = {**_place(params, block), "function": declared.signature}
    if answer.is_reverted:
        return await _reverted(chain, params.address, answer.output, where)
    if not answer.output and declared.outputs:
        await _code(chain, params.address, block)
    values = decode_output(declared, answer.output)
    outputs = UNSET if values is None else decoded_values(values)
    return FunctionResult(**where, output=hash_text(answer.output), outputs=outputs, is_reverted=False)


def _place(params: ContractStateParams, block: BlockRead) -> dict[str, Any]:
    return {
        "address": address_text(params.address),
        "block_number": str(block.number),
        "block_hash": hash_text(block.block_hash),
    }


async def _code(chain: EvmChain, address: bytes, block: BlockRead) -> bytes:
    """Return the code of a contract; NotFound if it has none."""
    code = await chain.contract_state.code(address, block)
    if not code:
        raise NotFound(f"{address_text(address)} has no code at block {block.number} of chain {chain.info.id}")
    return code


async def _function(chain: EvmChain, address: bytes, signature: str) -> Declaration:
    """Find the function that is meant; BadRequest where no ABI of the contract says that it only reads."""
    try:
        selector = declaration("function", signature).topic[:4]
    except AbiError as error:
        raise BadRequest(f"function: {error}") from None
    abi = (await chain.abis([address])).get(address)
    own = abi.functions.get(selector) if abi is not None else None
    found = own or READS_BY_SELECTOR.get(selector)
    if found is None:
        raise BadRequest(f"function: no ABI of this contract has {signature[:200]}: add it with icefall abi add")
    if not found.is_view:
        raise BadRequest(f"function: {found.signature[:200]} changes state, and only functions that read are called")
    return found


async def _reverted(chain: EvmChain, address: bytes, output: bytes, where: dict[str, Any]) -> FunctionResult:
    abi = (await chain.abis([address])).get(address)
    return FunctionResult(
        **where,
        output=hash_text(output),
        is_reverted=True,
        revert_reason=reason_of(output) or UNSET,
        decoded_error=decoded_data(chain.contracts.error(output, abi)),
    )
