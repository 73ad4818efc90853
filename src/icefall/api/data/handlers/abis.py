"""Handlers of the interfaces (ABIs) of contracts. Only keys of administrators change them: every caller sees the names
that they give."""

import time

import msgspec

from icefall.access.client_address import CurrentCaller
from icefall.api.data.schema.abis import AbiResult, PutAbi
from icefall.api.data.schema.tokens import ContractParams
from icefall.api.http.structs import address_text
from icefall.errors import BadRequest, Forbidden, NotFound
from icefall.evm.reading.abis import ContractAbis
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.wire.evm.abi import AbiError
from icefall.wire.evm.abi_json import SIZE_MAX, abi_of


async def get_abi(params: ContractParams, chains: ChainDirectory) -> AbiResult:
    chain = await chains.find(params.chain_id)
    return await _result(chain, params.address)


async def put_abi(
    params: ContractParams, body: PutAbi, chains: ChainDirectory, abis: ContractAbis, caller: CurrentCaller
) -> AbiResult:
    _check_admin(caller)
    chain = await chains.find(params.chain_id)
    try:
        entries = abi_of(body.abi).entries()
    except AbiError as error:
        raise BadRequest(f"abi is not valid: {error}") from None
    text = msgspec.json.encode(entries)
    if len(text) > SIZE_MAX:
        raise BadRequest(f"an ABI has at most {SIZE_MAX} bytes, not {len(text)}")
    await abis.put(chain.info.id, params.address, text.decode(), caller.get().key, int(time.time()))
    return await _changed(chain, params.address, chains, abis)


async def remove_abi(
    params: ContractParams, chains: ChainDirectory, abis: ContractAbis, caller: CurrentCaller
) -> AbiResult:
    _check_admin(caller)
    chain = await chains.find(params.chain_id)
    if not await abis.remove(chain.info.id, params.address, int(time.time())):
        raise NotFound(f"no ABI of {address_text(params.address)} on chain {chain.info.id} is stored")
    return await _changed(chain, params.address, chains, abis)


def _check_admin(caller: CurrentCaller) -> None:
    if not caller.get().is_admin:
        raise Forbidden("this needs a key made by `icefall keys add --admin`: send it as x-service-api-key")


async def _changed(chain: EvmChain, address: bytes, chains: ChainDirectory, abis: ContractAbis) -> AbiResult:
    """Show the ABI after a change, which this worker uses at once."""
    if await abis.refresh():
        chains.take_abis()
    return await _result(chain, address)


async def _result(chain: EvmChain, address: bytes) -> AbiResult:
    abi = await chain.own_abi(address)
    return AbiResult(address=address_text(address), abi=abi.entries() if abi is not None else [])
