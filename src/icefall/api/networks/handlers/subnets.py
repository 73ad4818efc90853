"""Handlers of subnets and blockchains. The primary network and the P-Chain, which no transaction made, come first."""

from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.api.networks.network import C_CHAIN, P_CHAIN, X_CHAIN, Networks, PrimaryNetwork
from icefall.api.networks.render.details import genesis_object, ownership
from icefall.api.networks.schema.assets import ManagerDetails
from icefall.api.networks.schema.subnets import (
    BlockchainPage,
    NetworkBlockchain,
    NetworkBlockchainParams,
    NetworkSubnet,
    NetworkSubnetParams,
    NetworkSubnetsParams,
    SubnetPage,
)
from icefall.errors import NotFound
from icefall.pchain.model import ChainRow, Subnet
from icefall.pchain.subnet_lists import ListedChain, ListedSubnet
from icefall.wire.avm.types import Owners
from icefall.wire.errors import WireError
from icefall.wire.ids import PLATFORM_CHAIN, PRIMARY_NETWORK, id_from_text, id_text
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.pvm.codec import unpack_tx
from icefall.wire.pvm.types import CreateChainTx
from icefall.xchain.store import NEWEST

_SUBNETS, _CHAINS = "subnets", "blockchains"
_P_SEQ = -1  # stands for what was there before any transaction
_GENESIS_NUMBER = "-1"  # what clients expect as the block of chains of the genesis


async def list_subnets(params: NetworkSubnetsParams, networks: Networks, paging: Paging) -> SubnetPage:
    network = await networks.find_staking(params.network)
    upwards = params.sort_order == "asc"
    low, below = _range(cursor_of(_SUBNETS, params, paging), upwards=upwards)
    rows = await network.lists.subnet_page(max(low, 0), below, params.page_size + 1, upwards=upwards)
    if low == _P_SEQ and below > _P_SEQ:
        primary = await _primary(network)
        rows = [primary, *rows] if upwards else [*rows, primary]
    token: str | UnsetType = UNSET
    if len(rows) > params.page_size:
        rows = rows[: params.page_size]
        token = paging.token(_SUBNETS, params, pack_cursor(rows[-1].subnet.seq + 1))
    return SubnetPage(next_page_token=token, subnets=await _subnets(network, rows))


def _range(cursor: tuple[int, ...] | None, *, upwards: bool) -> tuple[int, int]:
    """The numbers that are left after a page. A cursor is one more than the number, which may be -1."""
    if cursor is None:
        return _P_SEQ, NEWEST
    return (cursor[0], NEWEST) if upwards else (_P_SEQ, cursor[0] - 1)


async def get_subnet(params: NetworkSubnetParams, networks: Networks) -> NetworkSubnet:
    network = await networks.find_staking(params.network)
    if params.subnet_id == PRIMARY_NETWORK:
        return (await _subnets(network, [await _primary(network)]))[0]
    found = await network.lists.listed_subnet(params.subnet_id)
    if found is None:
        raise NotFound("there is no such subnet")
    return (await _subnets(network, [found]))[0]


async def _primary(network: PrimaryNetwork) -> ListedSubnet:
    return ListedSubnet(Subnet(PRIMARY_NETWORK, Owners(0, 0, ()), _P_SEQ), 0, await _genesis_time(network))


async def _genesis_time(network: PrimaryNetwork) -> int:
    block = await network.lists.block(0)
    return block.time if block is not None else 0


async def _subnets(network: PrimaryNetwork, rows: list[ListedSubnet]) -> list[NetworkSubnet]:
    chains = await network.lists.chains_of([row.subnet.subnet_id for row in rows])
    shown = []
    for subnet, height, time in rows:
        own = [_blockchain(network, one) for one in chains[subnet.subnet_id]]
        if subnet.subnet_id == PRIMARY_NETWORK:
            own = [_blockchain(network, _p_chain(time)), *own]
        shown.append(
            NetworkSubnet(
                create_block_timestamp=time,
                create_block_index=str(height),
                subnet_id=id_text(subnet.subnet_id),
                owner_addresses=network.addresses(subnet.owner.addresses),
                threshold=subnet.owner.threshold,
                locktime=subnet.owner.locktime,
                subnet_ownership_info=ownership(network, subnet.owner),
                is_l1=bool(subnet.conversion_id),
                l1_conversion_transaction_hash=id_text(subnet.conversion_txid) if subnet.conversion_txid else UNSET,
                l1_validator_manager_details=_manager(subnet),
                blockchains=own,
            )
        )
    return shown


def _manager(subnet: Subnet) -> ManagerDetails | UnsetType:
    if not subnet.conversion_id:
        return UNSET
    return ManagerDetails(
        blockchain_id=id_text(subnet.manager_chain_id), contract_address=f"0x{subnet.manager_address.hex()}"
    )


async def list_blockchains(params: NetworkSubnetsParams, networks: Networks, paging: Paging) -> BlockchainPage:
    network = await networks.find_staking(params.network)
    upwards = params.sort_order == "asc"
    low, below = _range(cursor_of(_CHAINS, params, paging), upwards=upwards)
    rows = await network.lists.chain_page(max(low, 0), below, params.page_size + 1, upwards=upwards)
    if low == _P_SEQ and below > _P_SEQ:
        own = _p_chain(await _genesis_time(network))
        rows = [own, *rows] if upwards else [*rows, own]
    token: str | UnsetType = UNSET
    if len(rows) > params.page_size:
        rows = rows[: params.page_size]
        token = paging.token(_CHAINS, params, pack_cursor(rows[-1].chain.seq + 1))
    return BlockchainPage(next_page_token=token, blockchains=[_blockchain(network, row) for row in rows])


async def get_blockchain(params: NetworkBlockchainParams, networks: Networks) -> NetworkBlockchain:
    network = await networks.find_staking(params.network)
    known = {P_CHAIN: PLATFORM_CHAIN, X_CHAIN: network.x_chain_id, C_CHAIN: network.c_chain_id}
    try:
        name = network.chains.get(params.blockchain_id)
        chain_id = known[name] if name is not None else id_from_text(params.blockchain_id)
    except WireError:
        raise NotFound(
            f"blockchainId must be an ID, or p-chain, x-chain or c-chain, got {params.blockchain_id}"
        ) from None
    if chain_id == PLATFORM_CHAIN:
        return _blockchain(network, _p_chain(await _genesis_time(network)))
    found = await network.lists.listed_chain(chain_id)
    stored = await network.platform.tx(chain_id) if found is not None else None
    if found is None or stored is None:
        raise NotFound("there is no such blockchain")
    created = unpack_tx(stored.raw, GENESIS_SIZE_MAX).unsigned
    assert isinstance(created, CreateChainTx)
    return _blockchain(network, found, created.genesis)


def _p_chain(time: int) -> ListedChain:
    return ListedChain(ChainRow(PLATFORM_CHAIN, PRIMARY_NETWORK, "P-Chain", b"", _P_SEQ), 0, time)


def _blockchain(network: PrimaryNetwork, row: ListedChain, genesis: bytes | None = None) -> NetworkBlockchain:
    """A blockchain as it is shown, alone with its genesis."""
    chain = row.chain
    words = {PLATFORM_CHAIN: "platformvm", network.x_chain_id: "avm"}
    return NetworkBlockchain(
        create_block_timestamp=row.time,
        create_block_number=str(row.height) if row.height else _GENESIS_NUMBER,
        blockchain_id=id_text(chain.chain_id),
        vm_id=words.get(chain.chain_id) or id_text(chain.vm_id),
        subnet_id=id_text(chain.subnet_id),
        blockchain_name=chain.name,
        evm_chain_id=chain.evm_chain_id or 0,
        genesis_data=UNSET if genesis is None else genesis_object(genesis),
    )
