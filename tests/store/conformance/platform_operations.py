"""Every operation on the P-Chain in the node's store: a recorded network is executed, and everything is read."""

from pathlib import Path
from typing import Any

import pytest
from tests.pchain.recorded import Playback

from icefall.db.engine import Store
from icefall.pchain import stakers
from icefall.pchain.reading import PlatformReader
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
    return found
