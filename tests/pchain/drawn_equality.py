"""The state of a P-Chain in two forms that can be compared: as a naive chain has it, and as our store answers."""

from collections import Counter
from typing import Any

from tests.pchain.drawing import ADDRESSES, X_CHAIN
from tests.pchain.naive_chain import NaiveChain

from icefall.db.engine import Store
from icefall.pchain.model import Priority
from icefall.pchain.reading import PlatformReader
from icefall.pchain.store import SQL, staker_of_row
from icefall.wire.ids import hash256, input_id
from icefall.wire.packer import VERSION_BYTES, pack_arrays, pack_blob, u64
from icefall.wire.pvm.codec import pack_utxo
from icefall.wire.pvm.types import PlatformUtxo
from icefall.xchain.store import NEWEST


def _id(utxo: PlatformUtxo) -> bytes:
    return input_id(utxo.txid, utxo.output_index)


def _owned(utxo: PlatformUtxo, address: bytes) -> bool:
    inner: Any = getattr(utxo.output, "output", utxo.output)
    return address in inner.owners.addresses


def _conversion(chain: NaiveChain, subnet_id: bytes) -> tuple[bytes, bytes, bytes]:
    """The ID of a conversion and who manages the L1; empty if it is none."""
    tx = chain.subnets[subnet_id].conversion
    if tx is None:
        return b"", b"", b""
    body: Any = tx.unsigned
    validators = [pack_blob(one.node_id) + one.signer.public_key + u64(one.weight) for one in body.validators]
    hashed = VERSION_BYTES + subnet_id + body.chain_id + pack_blob(body.address) + pack_arrays(tuple(validators))
    return hash256(hashed), body.chain_id, body.address


def expected(chain: NaiveChain) -> dict[str, Any]:
    """What the naive chain says of now."""
    stakers = [
        (one.tx.txid, one.subnet, one.node, one.weight, one.start, one.end, one.reward, one.priority, one.accrued)
        for one in (*chain.pending(), *chain.current())
    ]
    delegated: Counter[tuple[bytes, bytes]] = Counter()
    count: Counter[tuple[bytes, bytes]] = Counter()
    for one in chain.current():
        if one.delegates:
            delegated[one.subnet, one.node] += one.weight
            count[one.subnet, one.node] += 1
    hosts = [one for one in chain.current() if not one.delegates]
    return {
        "numbers": (chain.time, chain.capacity, chain.excess, chain.l1_excess, chain.accrued),
        "supply": chain.supply,
        "l1 fees": chain.paid_in - sum(one.until - chain.accrued for one in chain.active()),
        "rewards paid": chain.paid_rewards,
        "burned": chain.burned,
        "utxos": {_id(utxo): pack_utxo(utxo) for utxo in chain.utxos.values()},
        "by address": {
            address: {pack_utxo(utxo) for utxo in chain.utxos.values() if _owned(utxo, address)}
            for address in ADDRESSES
        },
        "stakes": {
            input_id(one.tx.txid, len(one.body.outputs) + index)
            for one in chain.stakers
            for index in range(len(getattr(one.body, "stake", ())))
        },
        "stakers": stakers,
        "delegations": {one.tx.txid: (count[one.subnet, one.node], delegated[one.subnet, one.node]) for one in hosts},
        "l1": {
            name: (one.subnet, one.node, one.key, one.weight, one.start, one.nonce, one.until)
            for name, one in chain.l1.items()
        },
        "subnets": {
            name: (one.owner, one.transformation.txid if one.transformation else b"", *_conversion(chain, name))
            for name, one in chain.subnets.items()
        },
        "chains": chain.chains,
        "status": chain.status,
        "rewards": {txid: {pack_utxo(utxo) for utxo in utxos} for txid, utxos in chain.rewards.items()},
        "exported": {(to, _id(utxo), pack_utxo(utxo)) for to, utxo in chain.exported if to != X_CHAIN},
        "imported": {(source, input_id(*at)) for source, at in chain.imported},
        "total": {
            subnet: sum(weight for weight, _ in members.values()) for subnet, members in chain.sets_now().items()
        },
    }


async def stored(store: Store, reader: PlatformReader, chain: NaiveChain) -> dict[str, Any]:
    """The same from our store, through the queries of workers where there are any."""
    at = await reader.ledger()
    rows = [staker_of_row(row) for row in store.read(SQL.stakers)]
    rows.sort(key=lambda one: _order(one[0]))
    subnets = await reader.subnets()
    totals = store.read("select subnet_id, day, validator_weight, delegator_weight from p_stake_day order by day")
    weights = {subnet: int(one) + int(other) for subnet, _, one, other in totals if subnet}
    reward_rows = {txid: set(await reader.reward_utxos(txid)) for txid in chain.status}
    l1 = [one for subnet in subnets for one in await reader.l1_validators(subnet.subnet_id)]
    return {
        "numbers": (at.time, at.fee.capacity, at.fee.excess, at.l1_excess, at.accrued_fees),
        "supply": {subnet: await reader.supply(subnet) for subnet in chain.supply},
        "l1 fees": at.l1_fees,
        "rewards paid": at.rewards_paid,
        "burned": at.burned,
        "utxos": dict(store.read("select utxo_id, bytes from p_utxo where state = 0")),
        "by address": {
            address: {one.raw for one in await reader.utxos(address, NEWEST, 10**6)} for address in ADDRESSES
        },
        "stakes": {utxo_id for (utxo_id,) in store.read("select utxo_id from p_utxo where state = 1")},
        "stakers": [
            (
                one.txid,
                one.subnet_id,
                one.node_id,
                one.weight,
                one.start,
                one.end,
                one.potential_reward,
                one.priority,
                reward,
            )
            for one, reward in rows
        ],
        "delegations": {txid: (count, int(weight)) for txid, count, weight, *_ in store.read(SQL.delegations)},
        "l1": {
            one.validation_id: (
                one.subnet_id,
                one.node_id,
                one.public_key,
                one.weight,
                one.start,
                one.min_nonce,
                one.end_accumulated_fee,
            )
            for one in l1
        },
        "subnets": {
            one.subnet_id: (
                one.owner,
                one.transformation_txid,
                one.conversion_id,
                one.manager_chain_id,
                one.manager_address,
            )
            for one in subnets
        },
        "chains": [(one.chain_id, one.subnet_id, one.name) for one in await reader.blockchains()],
        "status": {txid: bool(done) for txid, done in store.read("select txid, is_committed from p_tx")},
        "rewards": {txid: found for txid, found in reward_rows.items() if found},
        "exported": set(store.read("select destination, utxo_id, bytes from atomic_utxo")),
        "imported": set(store.read("select source, utxo_id from atomic_taken")),
        "total": {subnet: weight for subnet, weight in weights.items() if weight},
    }


def _order(staker: Any) -> tuple[bool, int, int, bytes]:
    is_pending = staker.priority <= Priority.PENDING_PERMISSIONED
    return not is_pending, staker.start if is_pending else staker.end, staker.priority, staker.txid
