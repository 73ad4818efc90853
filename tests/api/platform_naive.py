"""What the P-Chain operations must answer on a recorded network: every field, from the naive chains alone.

`tests/pchain/naive_history.py` executes the recorded blocks, `networks_naive.py` knows what X and C exported to P. The
rules are those of the facts about the interface; nothing of our lists or renderers is used.
"""

import json
from typing import Any

from tests.api.networks_naive import Made as Exported
from tests.api.networks_naive import NaiveNetwork
from tests.pchain.naive_history import Made, NaiveHistory
from tests.pchain.recorded import Playback, recorded_containers

from icefall.wire.avm.types import CreateAssetTx
from icefall.wire.container.platform import block_in_container
from icefall.wire.ids import NODE_ID_PREFIX, id_from_text, id_text, input_id, short_id_text
from icefall.wire.pvm import types as t
from icefall.wire.pvm.codec import genesis_block, unpack_block, unpack_genesis
from icefall.wire.pvm.warp import first_validation_id, registration_in, weight_in
from icefall.wire.text import bech32

PRIMARY = bytes(32)
P = id_text(PRIMARY)
STAKING = (
    t.AddValidatorTx,
    t.AddSubnetValidatorTx,
    t.AddDelegatorTx,
    t.AddPermissionlessValidatorTx,
    t.AddPermissionlessDelegatorTx,
)
VALIDATING = (t.AddValidatorTx, t.AddPermissionlessValidatorTx)


class PlatformHistory(NaiveHistory):
    """Remembers also weight and balance of every L1 validator after each transaction."""

    def __init__(self, rules: Any) -> None:
        super().__init__(rules)
        self.l1_after: dict[bytes, dict[bytes, tuple[int, int]]] = {}

    def execute(self, tx: t.PlatformTx, *, committed: bool = True) -> None:
        super().execute(tx, committed=committed)
        self.l1_after[tx.txid] = {name: (one.weight, self._left(one)) for name, one in self.l1.items()}


class NaivePlatform:
    """Every transaction of P in order with its block, and the history of everything."""

    def __init__(self, playback: Playback, hrp: str) -> None:
        network = playback.network
        self.hrp = hrp
        self.avax = network.platform.avax_asset_id
        self.shared = NaiveNetwork(playback.recording)
        self.history = PlatformHistory(network.platform)
        raw = network.genesis.p_genesis
        genesis = unpack_genesis(raw)
        self.history.begin(genesis)
        self.txs: list[tuple[t.PlatformTx, int, int, str]] = []  # with height, time and block
        first = id_text(genesis_block(raw).block_id)
        self.txs += [(tx, 0, genesis.timestamp, first) for tx in (*genesis.validators, *genesis.chains)]
        for one in recorded_containers(playback.recording):
            if one.chain == "P":
                self._accept(unpack_block(block_in_container(one.fetched.raw)))
        self.names = {id_text(self.avax): ("Avalanche", "AVAX", 9)}
        for moved in self.shared.txs:
            body = getattr(moved.tx, "unsigned", None)
            if moved.chain == "X" and isinstance(body, CreateAssetTx):
                self.names.setdefault(moved.txid, (body.name, body.symbol, body.denomination))
        self.kinds = self._reward_types()

    def _accept(self, block: t.PlatformBlock) -> None:
        self.history.accept(block)
        time = self.history.time if block.time is None else block.time
        txs = (*block.txs, *([block.proposal] if block.proposal is not None else []))
        self.txs += [(tx, block.height, time, id_text(block.block_id)) for tx in txs]

    def _reward_types(self) -> dict[tuple[bytes, int], str]:
        """What each paid output rewards."""
        found: dict[tuple[bytes, int], str] = {}
        for staking, _, utxo in self.history.paid:
            period = self.history.periods[staking]
            body = period.staker.body
            is_first = utxo.output_index == len(body.outputs) + len(body.stake)
            own = period.staker.reward if period.rewarded else 0
            if period.staker.delegates:
                own -= self.history.fee(period)
            kind = "DELEGATOR" if period.staker.delegates else "VALIDATOR"
            found[utxo.txid, utxo.output_index] = kind if is_first and own else "VALIDATOR_FEE"
        return found

    # -- parts ----------------------------------------------------------------------------------------------------

    def addresses(self, owners: Any) -> list[str]:
        return [bech32.encode(self.hrp, one) for one in owners.addresses]

    def asset(self, asset_id: str, amount: int) -> dict[str, Any]:
        name, symbol, denomination = self.names[asset_id]
        found = {"assetId": asset_id, "name": name, "symbol": symbol, "denomination": denomination}
        return found | {"type": "secp256k1", "amount": str(amount)}

    def amounts(self, rows: list[tuple[str, int]]) -> dict[str, Any]:
        """Sums by asset that are something: what the genesis stakes comes from nowhere and burns nothing."""
        sums: dict[str, int] = {}
        for asset_id, amount in rows:
            sums[asset_id] = sums.get(asset_id, 0) + amount
        return {asset_id: self.asset(asset_id, amount) for asset_id, amount in sums.items() if amount > 0}

    def utxo(self, made: Made, *, in_tx: bool = False, is_maker: bool = False) -> dict[str, Any]:
        """An output that P made. In the transaction that made it a stake is one for ever."""
        asset_id, amount = id_text(made.utxo.asset_id), made.inner.amount
        found: dict[str, Any] = {
            "addresses": self.addresses(made.inner.owners),
            "utxoId": id_text(made.utxo_id),
            "txHash": id_text(made.utxo.txid),
            "outputIndex": made.utxo.output_index,
            "amount": str(amount),
            "assetId": asset_id,
            "asset": self.asset(asset_id, amount),
            "blockNumber": str(made.height),
            "blockTimestamp": made.time,
            "createdOnChainId": P,
            "consumedOnChainId": id_text(made.destination),
            "platformLocktime": made.inner.owners.locktime,
            "threshold": made.inner.owners.threshold,
            "staked": made.stake is not None or (is_maker and made.was_staked is not None),
            "utxoType": "STAKE" if made.lock else "TRANSFER",
        }
        if made.lock:
            found["stakeableLocktime"] = made.lock
        if made.was_staked is not None:
            found |= {"utxoStartTimestamp": made.was_staked.start, "utxoEndTimestamp": made.was_staked.end}
        spent = made.spent
        if made.destination != PRIMARY:
            other = self.shared.outputs[id_text(made.utxo.txid), made.utxo.output_index]
            found |= self._spent_elsewhere(other)
        elif spent is not None:
            found |= {
                "consumingTxHash": id_text(spent[0]),
                "consumingBlockTimestamp": spent[1],
                "consumingBlockNumber": str(spent[2]),
            }
        kind = self.kinds.get((made.utxo.txid, made.utxo.output_index))
        return found | ({"rewardType": kind} if in_tx and kind else {})

    def _spent_elsewhere(self, other: Exported) -> dict[str, Any]:
        if other.spent_by is None:
            return {}
        spender = next((one for one in self.shared.txs if one.txid == other.spent_by), None)
        height = spender.height if spender is not None else self._height_of(other.spent_by)
        return {
            "consumingTxHash": other.spent_by,
            "consumingBlockTimestamp": other.spent_time,
            "consumingBlockNumber": str(height),
        }

    def _height_of(self, txid: str) -> int:
        return next(height for tx, height, _, _ in self.txs if id_text(tx.txid) == txid)

    def foreign(self, made: Exported) -> dict[str, Any]:
        """An output that another chain exported to P. Its locktime is left out."""
        maker = next(one for one in self.shared.txs if one.txid == made.txid)
        return {
            "addresses": [bech32.encode(self.hrp, one) for one in made.owners],
            "utxoId": id_text(input_id(id_from_text(made.txid), made.index)),
            "txHash": made.txid,
            "outputIndex": made.index,
            "amount": str(made.amount),
            "assetId": made.asset,
            "asset": self.asset(made.asset, made.amount),
            "blockNumber": str(maker.height),
            "blockTimestamp": made.time,
            "createdOnChainId": made.source,
            "consumedOnChainId": made.destination,
            "threshold": made.threshold,
            "staked": False,
            "utxoType": "TRANSFER",
            **self._spent_elsewhere(made),
        }

    # -- transactions ---------------------------------------------------------------------------------------------

    def tx(self, tx: t.PlatformTx, height: int, time: int, block: str) -> dict[str, Any]:
        """Every field of a transaction, the amounts by asset."""
        body: Any = tx.unsigned
        made = self.history.made
        if isinstance(body, t.PlatformBaseTx):
            consumed = [self.utxo(made[one.txid, one.output_index], in_tx=True) for one in body.inputs]
            for given in getattr(body, "imported_inputs", ()):
                consumed.append(self.foreign(self.shared.outputs[id_text(given.txid), given.output_index]))
            paid = {id(one) for one in self._paid_by_reward()}
            own = [one for at, one in sorted(made.items()) if at[0] == tx.txid and id(one) not in paid]
        else:
            consumed, own = [], []
        if isinstance(body, t.RewardValidatorTx):
            own = [made[utxo.txid, utxo.output_index] for _, by, utxo in self.history.paid if by == tx.txid]
        staked = [(id_text(one.asset_id), _amount(one)) for one in getattr(body, "stake", ())]
        balance = [(id_text(self.avax), _l1_balance(body))]
        found: dict[str, Any] = {
            "txHash": id_text(tx.txid),
            "txType": type(body).__name__.replace("Platform", ""),
            "blockTimestamp": time,
            "blockNumber": str(height),
            "blockHash": block,
            "consumedUtxos": consumed,
            "emittedUtxos": [self.utxo(one, in_tx=True, is_maker=True) for one in own],
            "value": self.amounts([(id_text(one.utxo.asset_id), one.inner.amount) for one in own]),
            "amountBurned": self.amounts(_burned(body) + [(asset, -amount) for asset, amount in staked + balance]),
            "amountStaked": self.amounts(staked),
            "amountL1ValidatorBalanceBurned": self.amounts(balance),
        }
        if isinstance(body, t.PlatformBaseTx):
            found["memo"] = f"0x{body.memo.hex()}"
        return found | self._details(tx, body)

    def _paid_by_reward(self) -> list[Made]:
        return [self.history.made[utxo.txid, utxo.output_index] for _, _, utxo in self.history.paid]

    def _details(self, tx: t.PlatformTx, body: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        subnet = getattr(body, "subnet_id", None)
        if isinstance(body, STAKING):
            subnet = subnet or PRIMARY
            found |= self._staking(tx, body)
        if isinstance(body, t.CreateSubnetTx):
            subnet = tx.txid
        if isinstance(body, t.RewardValidatorTx):
            found["stakingTxHash"] = id_text(body.staking_txid)
        if isinstance(body, t.PlatformImportTx):
            found["sourceChain"] = id_text(body.source_chain)
        if isinstance(body, t.PlatformExportTx):
            found["destinationChain"] = id_text(body.destination_chain)
        if isinstance(body, t.RemoveSubnetValidatorTx):
            found["nodeId"] = _node(body.node_id)
        if isinstance(body, t.CreateChainTx):
            found["blockchainInfo"] = {"chainName": body.chain_name, "vmId": id_text(body.vm_id)}
        if isinstance(body, t.CreateSubnetTx | t.TransferSubnetOwnershipTx):
            owner = body.owner
            found["subnetOwnershipInfo"] = {
                "locktime": owner.locktime,
                "threshold": owner.threshold,
                "addresses": self.addresses(owner),
            }
        if isinstance(body, t.ConvertSubnetToL1Tx):
            manager = {"blockchainId": id_text(body.chain_id), "contractAddress": f"0x{body.address.hex()}"}
            found["l1ValidatorManagerDetails"] = manager
        if validators := self._l1_details(tx, body):
            found["l1ValidatorDetails"] = validators
            subnet = id_from_text(validators[0]["subnetId"])
        return found if subnet is None else found | {"subnetId": id_text(subnet)}

    def _staking(self, tx: t.PlatformTx, body: Any) -> dict[str, Any]:
        period = self.history.periods.get(tx.txid)
        is_pending = period is not None and not period.status and period.staker in self.history.pending()
        found: dict[str, Any] = {
            "nodeId": _node(body.validator.node_id),
            "startTimestamp": body.validator.start if period is None else period.staker.start,
            "endTimestamp": body.validator.end,
        }
        if isinstance(body, VALIDATING):
            found["delegationFeePercent"] = f"{body.shares // 10_000}.{body.shares % 10_000:04d}"
        if not isinstance(body, t.AddSubnetValidatorTx):
            owner = body.rewards_owner if hasattr(body, "rewards_owner") else body.validation_rewards_owner
            found["rewardAddresses"] = self.addresses(owner)
            if period is not None and not is_pending:
                found["estimatedReward"] = str(period.staker.reward)
        if period is not None and period.ended is not None and period.status == "completed":
            found["rewardTxHash"] = id_text(period.ended[0])
        signer = getattr(body, "signer", None)
        return found | ({"blsCredentials": _signer(signer)} if signer is not None else {})

    def _l1_details(self, tx: t.PlatformTx, body: Any) -> list[dict[str, Any]]:
        """The validators of L1s right after the transaction."""
        after = self.history.l1_after.get(tx.txid, {})
        changes = {name: change for by, name, _, _, change in self.history.moves if by == tx.txid}
        rows: list[tuple[bytes, bytes, bytes, dict[str, Any]]] = []
        if isinstance(body, t.ConvertSubnetToL1Tx):
            for position, one in enumerate(body.validators):
                signer = {"blsCredentials": _signer(one.signer)}
                rows.append((first_validation_id(body.subnet_id, position), one.node_id, body.subnet_id, signer))
        elif isinstance(body, t.RegisterL1ValidatorTx):
            said = registration_in(body.message)
            signer = {"blsCredentials": _signer(t.BlsSigner(said.public_key, body.proof_of_possession))}
            rows.append((said.validation_id, said.node_id, said.subnet_id, signer))
        elif isinstance(body, t.SetL1ValidatorWeightTx):
            changed = weight_in(body.message).validation_id
            rows.append((changed, *self._whose(changed), {}))
        elif isinstance(body, t.IncreaseL1ValidatorBalanceTx | t.DisableL1ValidatorTx):
            rows.append((body.validation_id, *self._whose(body.validation_id), {}))
        return [
            {
                "validationId": id_text(name),
                "validationIdHex": f"0x{name.hex()}",
                "nodeId": _node(node),
                "subnetId": id_text(subnet),
                "weight": after.get(name, (0, 0))[0],
                "remainingBalance": after.get(name, (0, 0))[1],
                "balanceChange": changes.get(name, 0),
                **signer,
            }
            for name, node, subnet, signer in rows
        ]

    def _whose(self, validation_id: bytes) -> tuple[bytes, bytes]:
        """The node and the subnet of a validation, from the transaction that began it."""
        for tx, _, _, _ in self.txs:
            body: Any = tx.unsigned
            if isinstance(body, t.RegisterL1ValidatorTx):
                said = registration_in(body.message)
                if said.validation_id == validation_id:
                    return said.node_id, said.subnet_id
            elif isinstance(body, t.ConvertSubnetToL1Tx):
                for position, one in enumerate(body.validators):
                    if first_validation_id(body.subnet_id, position) == validation_id:
                        return one.node_id, body.subnet_id
        raise LookupError(validation_id.hex())


def genesis_shown(raw: bytes) -> Any:
    """The genesis of a blockchain: an object, or its bytes."""
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"encoding": "hex", "data": f"0x{raw.hex()}"}


def _node(raw: bytes) -> str:
    return NODE_ID_PREFIX + short_id_text(raw)


def _signer(signer: Any) -> dict[str, str]:
    key, proof = signer.public_key, signer.proof_of_possession
    return {"publicKey": f"0x{key.hex()}", "proofOfPossession": f"0x{proof.hex()}"}


def _amount(out: Any) -> int:
    return int(getattr(out.output, "output", out.output).amount)


def _l1_balance(body: Any) -> int:
    if isinstance(body, t.ConvertSubnetToL1Tx):
        return sum(one.balance for one in body.validators)
    return int(getattr(body, "balance", 0))


def _burned(body: Any) -> list[tuple[str, int]]:
    """What a transaction takes, less what it makes; its stake is not among that."""
    taken = (*getattr(body, "inputs", ()), *getattr(body, "imported_inputs", ()))
    made = (*getattr(body, "outputs", ()), *getattr(body, "exported_outputs", ()))
    rows = [(id_text(one.asset_id), int(getattr(one.input, "input", one.input).amount)) for one in taken]
    return rows + [(id_text(one.asset_id), -_amount(one)) for one in made]
