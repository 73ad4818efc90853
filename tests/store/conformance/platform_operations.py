"""Every operation on the P-Chain in the node's store: a recorded network is executed, and everything is read."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.pchain.recorded import Playback
from tests.store.conformance.network_operations import network_outcomes

from icefall.db.engine import Store, Transaction
from icefall.pchain import listing, stakers
from icefall.pchain import store as writes
from icefall.pchain.day_sums import DaySums, Frame
from icefall.pchain.l1_fees import FeeScope
from icefall.pchain.listing import PlatformLists
from icefall.pchain.model import StakerState, UtxoState
from icefall.pchain.observed import SHOWN_S, ObservedNode, ObservedNodes, put_observed
from icefall.pchain.periods import SORTED_BY, PeriodSource
from icefall.pchain.reading import PlatformReader
from icefall.pchain.subnet_lists import SubnetLists
from icefall.wire.ids import PRIMARY_NETWORK
from icefall.xchain.store import NEWEST

RECORDING = "p-forks-1"  # the one with every type of transaction


async def pchain_outcomes(store: Store, folder: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stakers, "SNAPSHOT_CHANGES_MIN", 3)  # whole validator sets are stored too
        first = Playback(folder, RECORDING, store=store)
        await first.start()
        await first.play()
        again = Playback(folder, RECORDING, store=store)
        await again.start()  # what is stored is loaded
    assert again.platform.ledger.state.position == first.platform.ledger.state.position
    assert list(again.platform.ledger.state.current) == list(first.platform.ledger.state.current)
    assert again.platform.ledger.state.sets.members == {
        subnet: members for subnet, members in first.platform.ledger.state.sets.members.items() if members
    }
    reader = PlatformReader(store, first.network.platform)
    ledger = await reader.ledger()
    found: dict[str, Any] = {"ledger": ledger, "blocks": [await reader.block_at(height) for height in range(141)]}
    found["too high"] = await reader.block_at(2**70)
    found["tip"] = await reader.block(ledger.block_id)
    found["subnets"], found["chains"] = await reader.subnets(), await reader.blockchains()
    found["chain"] = [await reader.blockchain(one.chain_id) for one in await reader.blockchains()]
    for height in range(0, ledger.height + 1, 20):
        found[f"validators at {height}"] = await reader.all_validators_at(height)
    for subnet_id in (PRIMARY_NETWORK, *[one.subnet_id for one in await reader.subnets()]):
        validators, l1 = await reader.validators(subnet_id), await reader.l1_validators(subnet_id)
        found[f"subnet {subnet_id.hex()}"] = [
            *[await reader.subnet(subnet_id), await reader.supply(subnet_id), validators, l1],
            *[await reader.delegations(subnet_id), await reader.blockchains_of(subnet_id)],
            [await reader.stakers_of_node(subnet_id, one.staker.node_id) for one in validators],
            [await reader.l1_validator(one.validation_id) for one in l1],
        ]
    for (txid,) in store.read("select txid from p_tx order by seq"):
        found[f"tx {txid.hex()}"] = [await reader.tx(txid), await reader.reward_utxos(txid)]
    for (address,) in store.read("select distinct address from p_utxo_owner order by address"):
        own = await reader.utxos(address, NEWEST, 5)
        found[f"utxos {address.hex()}"] = [own, [await reader.position(address, one.utxo_id) for one in own]]
        found[f"stakes {address.hex()}"] = await reader.stakes([address], validators_only=False)
        for chain in found["chains"][:2]:
            some = await reader.atomic_utxos(chain.chain_id, address, NEWEST, 5)
            places = [await reader.atomic_position(chain.chain_id, address, one.utxo_id) for one in some]
            found[f"from {chain.name} {address.hex()}"] = [some, places]
    found["days"], found["observed"] = await _days(store), await _observed(store)
    return found | {"lists": await _lists(store, ledger.height + 1)} | await network_outcomes(store, first)


async def _days(store: Store) -> list[Any]:
    """Every series by day, and what became of outputs."""
    days = DaySums(store)
    assert await days.has_fees()
    await store.write(_end_day)
    found: list[Any] = []
    for (subnet_id,) in store.read("select distinct subnet_id from p_stake_day order by subnet_id"):
        found += [await days.stake(subnet_id, Frame(), 10), await days.staked_by(subnet_id, 0, NEWEST, 10)]
    for scope, key in store.read("select distinct scope, key from p_l1_fee_day order by scope, key"):
        found.append(await days.fees((FeeScope(scope), key), Frame(), 10))
    for (utxo_id,) in store.read("select utxo_id from p_utxo order by position limit 50"):
        found += store.read(listing.SQL.utxo_history, {"utxo_id": utxo_id})
    return found


async def _observed(store: Store) -> list[Any]:
    """What an upstream sees of the validators: twice, and with one that is forgotten."""
    nodes = [row[0] for row in store.read("select distinct node_id from p_staker order by node_id")]
    for now in (1000, 1001 + SHOWN_S):
        seen = [ObservedNode(one, now, at, at % 2 == 0, f"v{at % 2}", "CX") for at, one in enumerate(nodes)]
        gone = ObservedNode(bytes(20), now - 1, 7, True, "", "")
        await store.write(partial(put_observed, seen=[gone, *seen[now % 2 :]], now=now))
    lists = ObservedNodes(store)
    by_node, versions = await lists.of(nodes, now), await lists.by_version(now)
    assert set(by_node) == set(nodes[1:])
    assert versions
    return [[by_node[one] for one in sorted(by_node)], versions, await lists.by_version(now + SHOWN_S + 1)]


def _end_day(tx: Transaction) -> None:
    """The recorded network lived for less than a day."""
    tx.run(writes.SQL.put_accrued_day, (1, 5))


async def _lists(store: Store, blocks: int) -> list[Any]:
    """Every list of the P-Chain, both ways."""
    lists, txs = PlatformLists(store), await PlatformLists(store).tx_count()
    found: list[Any] = [await lists.blocks(0, blocks, 200), await lists.block(5), await lists.txid_at(3)]
    found += [await lists.block(found[1].block_id), await lists.blocks_at([1, 5])]
    middle = found[1].time
    found += [await lists.first_height(middle, blocks), await lists.first_seq(middle, txs)]
    addresses = [row[0] for row in store.read("select distinct address from p_utxo_owner order by address")]
    utxo_ids = [row[0] for row in store.read("select utxo_id from p_utxo order by position")]
    every = await lists.txs(0, txs, txs, upwards=True)
    for upwards in (True, False):
        found.append(await lists.txs(1, txs, 20, upwards=upwards))
        found.append(await lists.txs_of(addresses[:4], 1, txs, 20, upwards=upwards))
        for by_amount in (False, True):
            states = tuple(UtxoState)
            found.append(await lists.utxos_of(addresses[:4], states, None, 50, upwards=upwards, by_amount=by_amount))
        for (validation_id,) in store.read("select validation_id from p_l1_validator order by validation_id"):
            found.append(await lists.txs_of_l1(validation_id, 0, txs, 20, upwards=upwards))
    found += [await lists.amounts(addresses[0], state, -1, 50) for state in UtxoState]
    found += [await lists.owns(one) for one in (*addresses, bytes(20))]
    found += [await lists.txs_with_ids([one.txid for one in every]), await lists.utxos_with_ids(utxo_ids)]
    found += [await lists.stakers_with_ids([one.txid for one in every])]
    moves = await lists.l1_moves_of([one.seq for one in every])
    found += [sorted(moves[seq]) for seq in sorted(moves)]
    return [*found, [await lists.rewards_of(one.seq) for one in every], *await _staking(store)]


async def _staking(store: Store) -> list[Any]:
    """Every list of staking periods, rewards, subnets and chains, both ways."""
    lists = SubnetLists(store)
    found: list[Any] = []
    stakers = store.read("select txid, subnet_id, node_id from p_staker order by seq")
    owners = [row[0] for row in store.read("select distinct address from p_stake_owner order by address")]
    sources = [PeriodSource("of_owner", one, role=role) for one in owners for role in range(3)]
    for is_delegator in (False, True):
        sources.append(PeriodSource("listed", is_delegator=is_delegator))
        for _, subnet_id, node_id in stakers:
            sources.append(PeriodSource("of_subnet", subnet_id, is_delegator))
            sources.append(PeriodSource("of_node", node_id, is_delegator))
    nodes = [row[2] for row in stakers]
    validations = [row[0] for row in store.read("select validation_id from p_l1_validator order by validation_id")]
    for upwards in (True, False):
        for source in dict.fromkeys(sources):
            found.append(await lists.periods([source], tuple(StakerState), 1, 1000, 5, upwards=upwards))
        for sort in SORTED_BY:
            page = await lists.current_by(sort, PRIMARY_NETWORK, None, 2, upwards=upwards)
            found += [page, await lists.current_by(sort, PRIMARY_NETWORK, (0, page[-1].seq), 2, upwards=upwards)]
        found.append(await lists.paid_rewards(owners, 0, NEWEST, 5, are_nodes=False, upwards=upwards))
        found.append(await lists.paid_rewards(nodes, 3, NEWEST, 5, are_nodes=True, upwards=upwards))
        found += [await lists.subnet_page(0, NEWEST, 2, upwards=upwards)]
        found += [await lists.chain_page(0, NEWEST, 3, upwards=upwards)]
    found += [await lists.stake_total(one) for one in sorted({row[1] for row in stakers})]
    for subnet in await lists.subnet_page(0, NEWEST, 100, upwards=True):
        subnet_id = subnet.subnet.subnet_id
        found += [await lists.listed_subnet(subnet_id), await lists.chains_of([PRIMARY_NETWORK, subnet_id])]
        found += [await lists.l1_page("l1_of_subnet", subnet_id, (0, 1, 2), None, 5)]
    for chain in await lists.chain_page(0, NEWEST, 100, upwards=True):
        found.append(await lists.listed_chain(chain.chain.chain_id))
    chain_ids = [chain.chain.chain_id for chain in await lists.chain_page(0, NEWEST, 100, upwards=True)]
    numbers = await lists.evm_chain_ids([*chain_ids, bytes(32)])
    found += [numbers, *[await lists.blockchain_ids(number) for number in (*sorted(numbers.values()), 7)]]
    page_of_l1 = await lists.l1_page("l1_listed", b"", (0, 1, 2), None, 2)
    found += [page_of_l1, await lists.l1_page("l1_of_node", page_of_l1[0].node_id, (0, 1, 2), None, 5)]
    last = page_of_l1[-1]
    found.append(await lists.l1_page("l1_listed", b"", (0, 1, 2), (last.start, last.validation_id), 5))
    found += [await lists.l1_validation(one) for one in validations]
    assert await lists.has_sums()
    return [*found, await lists.locked(found_asset(store), 1_795_000_000)]


def found_asset(store: Store) -> bytes:
    asset: bytes = store.read("select asset_id from p_utxo order by position limit 1")[0][0]
    return asset
