"""Records the network that the demo begins with: `python -m bench.demo_network AVALANCHEGO`, with the node's path.

A node of a local network of its own takes every transaction of scenario-1, on X, P and C, and then stakes, subnets and
an L1, until some of the stakes have ended. What it accepted is the recording: the containers in its index.
"""

import gzip
import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.go_node import GoNode, go_node
from tests.platform_wallet import ADDRESS, PlatformWallet, genesis_signers

from bench.demo_data import DATA, write_rows
from icefall.wire.avm.types import Owners, TransferOutput
from icefall.wire.ids import PRIMARY_NETWORK, hash160, hash256, id_from_text
from icefall.wire.pvm import types as t
from icefall.wire.pvm.warp import first_validation_id
from icefall.wire.text import checksum_hex

SCENARIO = Path(__file__).parents[1] / "tests" / "vectors" / "scenario-1" / "scenario.jsonl.gz"
HISTORY = DATA / "history.jsonl.xz"
AVAX = 10**9
PERCENT = 10_000  # of a fee
DAY = 86_400
YEAR_2100 = 4_102_444_800
EVM_VM = id_from_text("srEXiWaHuhNyGwPUi444Tu47ZEDwxTWrbQiuD7FmgSAQ6X7Dy")
L1_CHAIN_ID = 3_210_042  # of the demo's EVM chain
MANAGER = bytes.fromhex("0feedc0de0000000000000000000000000000000")
PEOPLE = ("alice", "bob", "carol", "dave", "erin", "frank")
_FLAGS = ("--min-stake-duration=5s", "--uptime-requirement=")
_PATHS = {"X": "/ext/bc/X", "P": "/ext/bc/P", "C": "/ext/bc/C/avax"}
_METHODS = {"X": "avm", "P": "platform", "C": "avax"}
_DECIDED = {"Accepted", "Committed"}
_INDEXES = (("X", "block"), ("P", "block"), ("C", "block"))
_POLL_S, _LIMIT_S = 0.05, 180.0


def _owner(*names: str, threshold: int = 1, locktime: int = 0) -> Owners:
    return Owners(locktime, threshold, tuple(sorted(hash160(name.encode()) for name in names)))


class DemoWallet(PlatformWallet):
    """The rich key, which stakes for others: they get the rewards."""

    def stake(self, node_id: bytes, amount: int, end: int, shares: int, owner: Owners) -> bytes:
        validator = t.Validator(node_id, 0, end, amount)
        signer, stake = genesis_signers()[0][1], (self.output(amount),)
        base = self.base(amount)
        return self.issue(
            t.AddPermissionlessValidatorTx(
                *base, validator, PRIMARY_NETWORK, signer, stake, owner, owner, shares * PERCENT
            )
        )

    def delegate_for(self, owner: Owners, node_id: bytes, amount: int, end: int) -> bytes:
        """Delegate what the owner gets back."""
        stake = (t.PlatformOutput(self.asset_id, TransferOutput(amount, owner)),)
        validator = t.Validator(node_id, 0, end, amount)
        base = self.base(amount)
        return self.issue(t.AddPermissionlessDelegatorTx(*base, validator, PRIMARY_NETWORK, stake, owner))

    def pay(self, *given: tuple[int, Owners]) -> bytes:
        return self.issue(t.PlatformBaseTx(*self.base(0, *[self.output(*one) for one in given])))

    def new_chain(self, subnet_id: bytes, name: str, vm_id: bytes, genesis: bytes) -> bytes:
        return self.issue(t.CreateChainTx(*self.base(), subnet_id, name, vm_id, (), genesis, (0,)))

    def become_l1(self, subnet_id: bytes, chain_id: bytes, weights: list[tuple[int, int]]) -> bytes:
        """Make the subnet an L1, with validators of these weights and balances."""
        committee = t.Committee(1, (ADDRESS,))
        names = sorted(_node(f"{number} of the L1") for number in range(len(weights)))
        signers = [signer for _, signer in genesis_signers()]
        validators = tuple(
            t.ConvertedValidator(node_id, weight, balance, signer, committee, committee)
            for node_id, (weight, balance), signer in zip(names, weights, signers, strict=False)
        )
        base = self.base(sum(balance for _, balance in weights))
        return self.issue(t.ConvertSubnetToL1Tx(*base, subnet_id, chain_id, MANAGER, validators, (0,)))


def _node(name: str) -> bytes:
    return hash256(f"node {name}".encode())[:20]


def _soon(seconds: int) -> int:
    return int(time.time()) + seconds


# -- what is sent --------------------------------------------------------------------------------------------------


def replay(node: GoNode) -> None:
    """Send what was accepted in scenario-1. What was a burst there is sent without waiting, so that blocks have several
    transactions; one that spends what is not in a block yet waits for it."""
    every = map(json.loads, gzip.decompress(SCENARIO.read_bytes()).splitlines())
    rows = list({row["txID"]: row for row in every if row.get("accepted")}.values())  # some were sent twice
    waiting: list[dict[str, Any]] = []
    for row in rows:
        if not row.get("burst") or any(id_from_text(one["txID"]).hex() in row["tx"] for one in waiting):
            _await_accepted(node, waiting)
            waiting = []
        chain = row["chain"]
        said = node.call(_PATHS[chain], f"{_METHODS[chain]}.issueTx", row["request"])
        assert said.get("result", {}).get("txID") == row["txID"], (row["n"], row["kind"], said)
        waiting.append(row)
    _await_accepted(node, waiting)


def _await_accepted(node: GoNode, rows: list[dict[str, Any]]) -> None:
    deadline = time.monotonic() + _LIMIT_S
    for row in rows:
        chain, asked = row["chain"], {"txID": row["txID"]}
        method = f"{_METHODS[chain]}.getAtomicTxStatus" if chain == "C" else f"{_METHODS[chain]}.getTxStatus"
        while (status := node.call(_PATHS[chain], method, asked)["result"]["status"]) not in _DECIDED:
            assert time.monotonic() < deadline, (row["n"], row["kind"], status)
            time.sleep(_POLL_S)


def stakes(wallet: DemoWallet) -> None:
    """Validators and delegations, short and long ones."""
    nodes = [node_id for node_id, _ in genesis_signers()]
    wallet.pay(
        (1_500 * AVAX, _owner("alice")),
        (250 * AVAX, _owner("bob", locktime=YEAR_2100)),
        (90 * AVAX, _owner("alice", "bob", "carol", threshold=2)),
    )
    short = _node("short")
    wallet.stake(short, 2_500 * AVAX, _soon(60), 4, _owner("dave"))
    for name, amount, seconds in (("alice", 40, 30), ("bob", 75, 35)):
        wallet.delegate_for(_owner(name), short, amount * AVAX, _soon(seconds))
    wallet.delegate_for(_owner("alice"), nodes[0], 500 * AVAX, _soon(25))
    for number, (amount, days, shares) in enumerate(
        [
            (2_000, 15, 2),
            (5_500, 30, 3),
            (12_000, 60, 2),
            (2_750, 92, 5),
            (250_000, 120, 10),
            (31_415, 200, 7),
            (8_000, 240, 20),
        ]
    ):
        made = _node(str(number))
        wallet.stake(made, amount * AVAX, _soon(days * DAY), shares, _owner(PEOPLE[number % len(PEOPLE)]))
        for of_node in range(number % 4):
            name = PEOPLE[(number + of_node) % len(PEOPLE)]
            wallet.delegate_for(_owner(name), made, (25 + 310 * of_node) * AVAX, _soon((14 + of_node) * DAY))
    for name, node_id, amount in (("alice", nodes[1], 1_000), ("erin", nodes[1], 26), ("alice", nodes[2], 300)):
        wallet.delegate_for(_owner(name), node_id, amount * AVAX, _soon(100 * DAY))


def subnets(wallet: DemoWallet) -> None:
    """A subnet with validators that its owner chooses, one that changed hands, and the demo's L1."""
    nodes = [node_id for node_id, _ in genesis_signers()]
    games = wallet.create_subnet()
    wallet.new_chain(games, "Games", hash256(b"a machine for games"), b"level 1")
    wallet.add_subnet_validator(games, nodes[0], _soon(60 * DAY))
    wallet.add_subnet_validator(games, nodes[1], _soon(90 * DAY))
    wallet.add_subnet_validator(games, nodes[2], _soon(25))
    wallet.add_subnet_validator(games, nodes[3], _soon(30 * DAY))
    wallet.remove_subnet_validator(games, nodes[3])
    sold = wallet.create_subnet()
    wallet.issue(t.TransferSubnetOwnershipTx(*wallet.base(), sold, (0,), _owner("carol", "dave", threshold=2)))
    subnet_id = wallet.create_subnet()
    genesis = {"config": {"chainId": L1_CHAIN_ID}, "alloc": {}, "gasLimit": "0x1c9c380", "timestamp": "0x65c7f3a0"}
    chain_id = wallet.new_chain(subnet_id, "Demo L1", EVM_VM, json.dumps(genesis, separators=(",", ":")).encode())
    weights = [(100, 5 * AVAX), (100, 2 * AVAX), (40, 20), (60, 0), (25, AVAX)]
    wallet.become_l1(subnet_id, chain_id, weights)
    validations = [first_validation_id(subnet_id, position) for position in range(len(weights))]
    wallet.increase_balance(validations[0], AVAX // 2)
    wallet.disable(validations[4])


def await_ends(wallet: DemoWallet, before: int) -> None:
    """Wait until what ends before a time is no longer staked."""
    deadline = time.monotonic() + _LIMIT_S
    while True:
        current = wallet.call("getCurrentValidators", {})["validators"]
        ends = [int(one["endTime"]) for one in current]
        for one in current:
            asked = {"nodeIDs": [one["nodeID"]]}
            for shown in wallet.call("getCurrentValidators", asked)["validators"]:
                ends += [int(delegator["endTime"]) for delegator in shown.get("delegators") or ()]
        if min(ends) > before:
            return
        assert time.monotonic() < deadline, "a staker does not end"
        time.sleep(10 * _POLL_S)


# -- what is kept --------------------------------------------------------------------------------------------------


def containers(node: GoNode) -> list[dict[str, Any]]:
    """What the node accepted, in the order in which it did."""
    found = []
    for chain, kind in _INDEXES:
        start = 0
        while True:
            asked = {"startIndex": start, "numToFetch": 1024, "encoding": "hex"}
            said = node.call(f"/ext/index/{chain}/{kind}", "index.getContainerRange", asked)
            some = said.get("result", {}).get("containers") or []
            found += [
                {
                    "chain": chain,
                    "number": int(one["index"]),
                    "id": one["id"],
                    "accepted": one["timestamp"],
                    "raw": checksum_hex.decode(one["bytes"]).hex(),
                }
                for one in some
            ]
            start += len(some)
            if len(some) < 1024:
                break
    return sorted(found, key=lambda row: _accepted(row["accepted"]))


def _accepted(text: str) -> tuple[str, str]:
    second, _, fraction = text.rstrip("Z").partition(".")
    return second, fraction.ljust(9, "0")


def record(program: str) -> None:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "node"
        began = int(time.time())
        with go_node(program, folder, *_flags(0)) as node:
            replay(node)
            wallet = DemoWallet(node)
            stakes(wallet)
            subnets(wallet)
            await_ends(wallet, _soon(3600))
        with go_node(program, folder, *_flags(1)) as node:  # who is not online is not rewarded
            wallet = DemoWallet(node)
            wallet.stake(_node("away"), 3_000 * AVAX, _soon(20), 2, _owner("frank"))
            await_ends(wallet, _soon(3600))
            wallet.pay((700 * AVAX, _owner("erin")))
            rows = containers(node)
    write_rows(HISTORY, rows)
    print(f"{len(rows)} containers, {HISTORY.stat().st_size:,} bytes; GENESIS_TIME = {began}")


def _flags(uptime: int) -> tuple[str, ...]:
    return _FLAGS[0], _FLAGS[1] + str(uptime)


if __name__ == "__main__":
    record(*sys.argv[1:])
