"""Handlers of the platform chain: blocks, transactions, subnets, chains, supply and fees."""

from datetime import UTC

import msgspec

from icefall.api.http.structs import NoParams
from icefall.api.node.addresses import AddressParser
from icefall.api.node.platform_objects import PlatformObjects
from icefall.api.node.platform_upstream import ObservedHeight, ObservedStatus, PlatformUpstream
from icefall.api.node.schema.avm import (
    BlockByHeightParams,
    GetBlockParams,
    GetBlockResult,
    GetTxParams,
    GetTxResult,
    Height,
    Issued,
    IssueTxParams,
    TxStatusParams,
)
from icefall.api.node.schema.node import FeeConfig
from icefall.api.node.schema.platform import (
    BlockchainEntry,
    BlockchainList,
    BlockchainParams,
    BlockchainStatus,
    BlockchainStatusParams,
    MinStake,
    PlatformFeeState,
    PlatformTxStatus,
    StakingAsset,
    SubnetDetails,
    SubnetEntry,
    SubnetList,
    SubnetParams,
    SubnetsParams,
    Supply,
    Timestamp,
    TotalStake,
    ValidatedBy,
    Validates,
    ValidatorFeeConfig,
    ValidatorFeeState,
)
from icefall.errors import CallFailed
from icefall.node.chains import Chains
from icefall.node.info import NodeInfo
from icefall.pchain.fees import fake_exponential
from icefall.pchain.model import ChainRow, Subnet
from icefall.pchain.reading import PlatformReader
from icefall.wire.avm.json import ChainNaming
from icefall.wire.errors import WireError
from icefall.wire.ids import EMPTY_ID, PLATFORM_CHAIN, PRIMARY_NETWORK, id_from_text, id_text, node_id_from_text
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.pvm.codec import refusal_text, unpack_block, unpack_tx
from icefall.wire.pvm.json import block_json, tx_json
from icefall.wire.pvm.types import CreateChainTx, CreateSubnetTx
from icefall.wire.text import checksum_hex
from icefall.wire.text.go_text import quote, rfc3339_nano
from icefall.xchain.reading import OVERHEAD

_NOT_FOUND = "not found"


async def get_height(_: NoParams, chain: PlatformReader) -> Height:
    return Height(str((await chain.ledger()).height))


async def get_proposed_height(_: NoParams, chain: PlatformReader, upstream: PlatformUpstream) -> Height:
    return Height(str(await proposed_height(chain, upstream)))


async def proposed_height(chain: PlatformReader, upstream: PlatformUpstream) -> int:
    """The height that proposers of new blocks use now. Without an upstream no blocks are proposed: the last one."""
    if not upstream.exists:
        return (await chain.ledger()).height
    answer = await upstream.call("platform.getProposedHeight", {}, ObservedHeight)
    return int(answer.height)


async def get_timestamp(_: NoParams, chain: PlatformReader) -> Timestamp:
    return Timestamp(_instant((await chain.ledger()).time))


async def get_block(
    params: GetBlockParams, chain: PlatformReader, naming: ChainNaming, objects: PlatformObjects
) -> GetBlockResult:
    cached, key = objects.blocks.now(), (params.block_id, params.encoding)
    known = cached.get(key)
    if known is not None:
        return known
    raw = await chain.block(params.block_id)
    if raw is None:
        raise CallFailed(f"couldn't get block with id {id_text(params.block_id)}: {_NOT_FOUND}")
    made = _block(raw, params.encoding, naming)
    objects.blocks.put(cached, key, made, len(made.block) + OVERHEAD)
    return made


async def get_block_by_height(
    params: BlockByHeightParams, chain: PlatformReader, naming: ChainNaming, objects: PlatformObjects
) -> GetBlockResult:
    cached, key = objects.blocks.now(), (params.height, params.encoding)
    known = cached.get(key)
    if known is not None:
        return known
    raw = await chain.block_at(params.height)
    if raw is None:
        raise CallFailed(f"couldn't get block at height {params.height}: {_NOT_FOUND}")
    made = _block(raw, params.encoding, naming)
    objects.blocks.put(cached, key, made, len(made.block) + OVERHEAD)
    return made


def _block(raw: bytes, encoding: str, naming: ChainNaming) -> GetBlockResult:
    if encoding == "json":
        return GetBlockResult(msgspec.Raw(block_json(unpack_block(raw, GENESIS_SIZE_MAX), naming)), encoding)
    return GetBlockResult(checksum_hex.encode(raw, encoding), encoding)


async def get_tx(
    params: GetTxParams, chain: PlatformReader, naming: ChainNaming, objects: PlatformObjects
) -> GetTxResult:
    cached, key = objects.txs.now(), (params.tx_id, params.encoding)
    known = cached.get(key)
    if known is not None:
        return known
    stored = await chain.tx(params.tx_id)
    if stored is None:
        raise CallFailed(f"couldn't get tx: {_NOT_FOUND}")
    if params.encoding == "json":
        tx: str | msgspec.Raw = msgspec.Raw(tx_json(unpack_tx(stored.raw, GENESIS_SIZE_MAX), naming))
    else:
        tx = checksum_hex.encode(stored.raw, params.encoding)
    made = GetTxResult(tx, params.encoding)
    objects.txs.put(cached, key, made, len(tx) + OVERHEAD)
    return made


async def get_tx_status(params: TxStatusParams, chain: PlatformReader, upstream: PlatformUpstream) -> PlatformTxStatus:
    """Return what became of a transaction. One that is not accepted here may wait in the upstream."""
    stored = await chain.tx(params.tx_id)
    if stored is not None:
        return PlatformTxStatus("Committed" if stored.is_committed else "Aborted")
    if not upstream.exists or params.tx_id == EMPTY_ID:
        return PlatformTxStatus("Unknown")
    answer = await upstream.call("platform.getTxStatus", {"txID": id_text(params.tx_id)}, ObservedStatus)
    if answer.status in ("Committed", "Aborted"):  # in a block that is not executed here yet
        return PlatformTxStatus("Processing")
    return PlatformTxStatus(answer.status, answer.reason)


async def issue_tx(params: IssueTxParams, upstream: PlatformUpstream) -> Issued:
    """Forward the bytes of a transaction. The upstream says what is wrong with one that cannot be read here: it may
    know types that this release does not. Without an upstream that is refused with the node's text."""
    try:
        raw = checksum_hex.decode(params.tx, params.encoding)
    except WireError as error:
        raise CallFailed(f"problem decoding transaction: {error}") from error
    try:
        unpack_tx(raw)
    except WireError as error:
        if not upstream.exists:
            raise CallFailed(f"couldn't parse tx: couldn't parse tx: {refusal_text(error)}") from error
    return Issued(id_text(await upstream.issue(params.tx, params.encoding)))


# -- subnets and chains ------------------------------------------------------------------------------------------


async def get_subnet(
    params: SubnetParams, chain: PlatformReader, addresses: AddressParser, objects: PlatformObjects
) -> SubnetDetails:
    cached = objects.subnets.now()
    known = cached.get(params.subnet_id)
    if known is not None:
        return known
    if params.subnet_id == PRIMARY_NETWORK:
        raise CallFailed("the primary network isn't a subnet")
    subnet = await _known_subnet(params.subnet_id, chain)
    if subnet is None:
        raise CallFailed(_NOT_FOUND)
    details = _details(subnet, addresses)
    objects.subnets.put(cached, params.subnet_id, details)
    return details


def _details(subnet: Subnet, addresses: AddressParser) -> SubnetDetails:
    return SubnetDetails(
        is_permissioned=not subnet.transformation_txid and not subnet.conversion_id,
        control_keys=[addresses.text(address) for address in subnet.owner.addresses],
        threshold=str(subnet.owner.threshold),
        locktime=str(subnet.owner.locktime),
        subnet_transformation_tx_id=id_text(subnet.transformation_txid or EMPTY_ID),
        conversion_id=id_text(subnet.conversion_id or EMPTY_ID),
        manager_chain_id=id_text(subnet.manager_chain_id or EMPTY_ID),
        manager_address=f"0x{subnet.manager_address.hex()}" if subnet.conversion_id else None,
    )


async def _known_subnet(subnet_id: bytes, chain: PlatformReader) -> Subnet | None:
    """A subnet; None where nothing has that ID, while the ID of another transaction is an error."""
    subnet = await chain.subnet(subnet_id)
    if subnet is None and await chain.tx(subnet_id) is not None:
        raise CallFailed(f'"{id_text(subnet_id)}" is not a subnet')
    return subnet


async def get_subnets(params: SubnetsParams, chain: PlatformReader, addresses: AddressParser) -> SubnetList:
    primary = SubnetEntry(id_text(PRIMARY_NETWORK), [], "0")
    if not params.ids:
        newest_first = reversed(await chain.subnets())
        return SubnetList([*[_entry(subnet, addresses) for subnet in newest_first], primary])
    found = []
    for subnet_id in dict.fromkeys(params.ids):
        if subnet_id == PRIMARY_NETWORK:
            found.append(primary)
        else:
            subnet = await _known_subnet(subnet_id, chain)
            if subnet is not None:
                found.append(_entry(subnet, addresses))
    return SubnetList(found or None)


def _entry(subnet: Subnet, addresses: AddressParser) -> SubnetEntry:
    """An elastic subnet has given up its owner."""
    if subnet.transformation_txid:
        return SubnetEntry(id_text(subnet.subnet_id), [], "0")
    keys = [addresses.text(address) for address in subnet.owner.addresses]
    return SubnetEntry(id_text(subnet.subnet_id), keys, str(subnet.owner.threshold))


async def get_blockchains(_: NoParams, chain: PlatformReader) -> BlockchainList:
    """Return the chains of the newest subnet first, its newest one first; the primary network comes last."""
    rows: dict[bytes, list[ChainRow]] = {subnet.subnet_id: [] for subnet in reversed(await chain.subnets())}
    rows[PRIMARY_NETWORK] = []
    for row in reversed(await chain.blockchains()):
        rows[row.subnet_id].append(row)
    return BlockchainList([_blockchain(row) for of_subnet in rows.values() for row in of_subnet])


def _blockchain(row: ChainRow) -> BlockchainEntry:
    return BlockchainEntry(id_text(row.chain_id), row.name, id_text(row.subnet_id), id_text(row.vm_id))


async def validated_by(params: BlockchainParams, chain: PlatformReader) -> ValidatedBy:
    if params.blockchain_id == PLATFORM_CHAIN:
        return ValidatedBy(id_text(PRIMARY_NETWORK))
    stored = await chain.tx(params.blockchain_id)
    if stored is None:
        raise CallFailed(f'problem retrieving blockchain "{id_text(params.blockchain_id)}": {_NOT_FOUND}')
    tx = unpack_tx(stored.raw, GENESIS_SIZE_MAX).unsigned
    if not isinstance(tx, CreateChainTx):
        raise CallFailed(f'"{id_text(params.blockchain_id)}" is not a blockchain')
    return ValidatedBy(id_text(tx.subnet_id))


async def validates(params: SubnetParams, chain: PlatformReader) -> Validates:
    if params.subnet_id != PRIMARY_NETWORK:
        stored = await chain.tx(params.subnet_id)
        if stored is None:
            raise CallFailed(f'problem retrieving subnet "{id_text(params.subnet_id)}": {_NOT_FOUND}')
        if not isinstance(unpack_tx(stored.raw, GENESIS_SIZE_MAX).unsigned, CreateSubnetTx):
            raise CallFailed(f'"{id_text(params.subnet_id)}" is not a subnet')
    rows = await chain.blockchains_of(params.subnet_id)
    return Validates([id_text(row.chain_id) for row in reversed(rows)])


async def get_blockchain_status(
    params: BlockchainStatusParams,
    chain: PlatformReader,
    upstream: PlatformUpstream,
    chains: Chains,
    info: NodeInfo,
) -> BlockchainStatus:
    """Return whether the upstream runs a chain; without one, whether this node does."""
    if not params.blockchain_id:
        raise CallFailed("argument 'blockchainID' not given")
    if upstream.exists:
        answer = await upstream.call(
            "platform.getBlockchainStatus", {"blockchainID": params.blockchain_id}, ObservedStatus
        )
        return BlockchainStatus(answer.status)
    try:
        chain_id = await chains.lookup(params.blockchain_id)
    except CallFailed:
        return BlockchainStatus(await _status_of_unknown(params.blockchain_id, chain))
    row = await chain.blockchain(chain_id)
    if row is None:
        return BlockchainStatus("Syncing")
    members = await chain.validators_at(row.subnet_id, (await chain.ledger()).height)
    return BlockchainStatus("Validating" if node_id_from_text(info.node_id_text) in members else "Syncing")


async def _status_of_unknown(text: str, chain: PlatformReader) -> str:
    try:
        chain_id = id_from_text(text)
    except WireError as error:
        raise CallFailed(f"problem parsing blockchainID {quote(text)}: {error}") from error
    return "Unknown" if await chain.blockchain(chain_id) is None else "Created"


# -- supply, stake and fees --------------------------------------------------------------------------------------


async def get_current_supply(params: SubnetParams, chain: PlatformReader) -> Supply:
    supply = await chain.supply(params.subnet_id)
    if supply is None:
        raise CallFailed(f"fetching current supply failed: {_NOT_FOUND}")
    return Supply(str(supply), str((await chain.ledger()).height))


async def get_total_stake(params: SubnetParams, chain: PlatformReader) -> TotalStake:
    members = await chain.validators_at(params.subnet_id, (await chain.ledger()).height)
    total = str(sum([weight for weight, _ in members.values()]))
    return TotalStake(total, total)


async def get_min_stake(params: SubnetParams, chain: PlatformReader) -> MinStake:
    if params.subnet_id == PRIMARY_NETWORK:
        limits = chain.parameters.limits
        return MinStake(str(limits.min_validator_stake), str(limits.min_delegator_stake))
    subnet = await _elastic(params.subnet_id, chain)
    return MinStake(str(subnet.min_validator_stake), str(subnet.min_delegator_stake))


async def get_staking_asset_id(params: SubnetParams, chain: PlatformReader) -> StakingAsset:
    if params.subnet_id == PRIMARY_NETWORK:
        return StakingAsset(id_text(chain.parameters.avax_asset_id))
    return StakingAsset(id_text((await _elastic(params.subnet_id, chain)).asset_id))


async def _elastic(subnet_id: bytes, chain: PlatformReader) -> Subnet:
    subnet = await chain.subnet(subnet_id)
    if subnet is None or not subnet.transformation_txid:
        raise CallFailed(f"failed fetching subnet transformation for {id_text(subnet_id)}: {_NOT_FOUND}")
    return subnet


async def get_fee_config(_: NoParams, chain: PlatformReader) -> FeeConfig:
    """Return the parameters of the fee of a transaction."""
    fees = chain.parameters.fees
    return FeeConfig(
        weights=list(fees.weights),
        max_capacity=fees.max_capacity,
        max_per_second=fees.max_per_second,
        target_per_second=fees.target_per_second,
        min_price=fees.min_price,
        excess_conversion_constant=fees.excess_conversion_constant,
    )


async def get_fee_state(_: NoParams, chain: PlatformReader) -> PlatformFeeState:
    ledger = await chain.ledger()
    price = ledger.fee.price(chain.parameters.fees)
    return PlatformFeeState(ledger.fee.capacity, ledger.fee.excess, price, _instant(ledger.time))


async def get_validator_fee_config(_: NoParams, chain: PlatformReader) -> ValidatorFeeConfig:
    fees = chain.parameters.validator_fees
    return ValidatorFeeConfig(fees.capacity, fees.target, fees.min_price, fees.excess_conversion_constant)


async def get_validator_fee_state(_: NoParams, chain: PlatformReader) -> ValidatorFeeState:
    ledger = await chain.ledger()
    fees = chain.parameters.validator_fees
    price = fake_exponential(fees.min_price, ledger.l1_excess, fees.excess_conversion_constant)
    return ValidatorFeeState(ledger.l1_excess, price, _instant(ledger.time))


def _instant(time_s: int) -> str:
    return rfc3339_nano(time_s * 10**9, UTC)
