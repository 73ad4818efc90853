"""Synthetic blocks with nothing but senders, recipients, transfers and deployments."""

import hashlib
import random
from collections.abc import Mapping

from icefall.evm.model import BlockRow, BlockRows, CallType, Deployment, Erc20TransferRow, NativeTx

NOTHING: Mapping[str, int] = {}


def name(text: str, size: int = 32) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:size]


def address(number: int) -> bytes:
    return name(f"address {number}", 20)


def native(number: int, index: int, sender: bytes, to: bytes, price: int, branch: int = 0) -> NativeTx:
    return NativeTx(
        tx_index=index,
        tx_hash=name(f"tx {branch} {number} {index}"),
        status=1,
        type_id=2,
        sender=sender,
        to=to,
        value=1,
        nonce=0,
        gas_limit=21_000,
        gas_used=21_000,
        gas_price=price,
        max_fee=None,
        max_priority_fee=None,
        call_type=CallType.NATIVE_TRANSFER,
        selector=b"",
        input=b"",
    )


def assembled(
    number: int,
    time: int,
    txs: tuple[NativeTx, ...],
    transfers: tuple[Erc20TransferRow, ...] = (),
    deployments: tuple[Deployment, ...] = (),
    branch: int = 0,
    parent_branch: int = 0,
) -> BlockRows:
    fees = sum(tx.gas_used * tx.gas_price for tx in txs)
    gas = sum(tx.gas_used for tx in txs)
    head = BlockRow(
        number,
        name(f"block {branch} {number}"),
        name(f"block {parent_branch} {number - 1}"),
        time,
        len(txs),
        1,
        gas,
        30_000_000,
        0,
        fees,
    )
    empty: tuple[()] = ()
    return BlockRows(
        block=head,
        txs=txs,
        erc20_transfers=transfers,
        erc721_transfers=empty,
        erc1155_transfers=empty,
        internals=empty,
        deployments=deployments,
        participants=empty,
        native_before=empty,
        native_after=empty,
        native_deltas=empty,
        unknown_native=empty,
        erc20_deltas=empty,
        erc1155_deltas=empty,
        nft_owners=empty,
        storage_changed_unlogged=empty,
        code_changed=(),
        code_changes=empty,
        metadata_changes=empty,
        messages=empty,
        skipped_logs=NOTHING,
    )


def block(number: int, time: int, tx_count: int) -> BlockRows:
    """Senders and recipients that no other block has."""
    base = number * 1000
    txs = (
        native(number, at, address(base + 2 * at), address(base + 2 * at + 1), 10**9 + number) for at in range(tx_count)
    )
    return assembled(number, time, tuple(txs))


def chain(
    seed: int, count: int, first: int = 0, after: BlockRows | None = None, branch_before: int = 0
) -> list[BlockRows]:
    """Random traffic among a few dozen addresses, with gaps from nothing to weeks. `seed` names the branch, which may
    fork from another branch `after` one of its blocks."""
    chance = random.Random(seed)
    number = after.block.number + 1 if after else first
    time = after.block.time if after else 1_700_000_000
    parent_branch = branch_before if after else seed
    found = []
    for _ in range(count):
        time += chance.choice((0, 1, 2, 12, 60, 3000, 40_000, chance.randrange(2_000_000)))
        people = [address(seed * 10_000 * chance.randrange(2) + chance.randrange(30)) for _ in range(12)]
        txs: list[NativeTx] = []
        transfers: list[Erc20TransferRow] = []
        deployments: list[Deployment] = []
        for index in range(chance.randrange(5) if number else 0):
            txs.append(native(number, index, people[index], people[-index - 1], chance.randrange(10**12), seed))
            if chance.random() < 0.5:
                transfers.append(Erc20TransferRow(index, len(transfers), address(1), people[5], people[6], 1))
            if chance.random() < 0.2:
                deployments.append(Deployment(name(f"made {seed} {number} {index}", 20), index, 0, people[index]))
        found.append(assembled(number, time, tuple(txs), tuple(transfers), tuple(deployments), seed, parent_branch))
        number, parent_branch = number + 1, seed
    return found
