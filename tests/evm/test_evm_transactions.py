"""Transactions, totals, participants and code, against the recorded JSON."""

from typing import Any

import msgspec
import pytest
from tests.evm.recordings import CHAINS, Code, contract_info_for, derived, full_blocks, like, unhex

from icefall.evm.deriving.derive import contract_lookups, derive
from icefall.evm.deriving.transactions import totals
from icefall.evm.model import ZERO_ADDRESS, CallType, ContractInfo, Erc20Delta, IdDelta
from icefall.wire.evm.block import decode_block
from icefall.wire.evm.types import FullBlock


def number(text: str) -> int:
    return int(text, 16)


@pytest.mark.parametrize("chain", CHAINS)
def test_rows_say_what_the_node_said(chain: str) -> None:
    for one in derived(chain):
        block = one.line["block"]
        for row, tx, receipt in zip(one.rows.txs, block["transactions"], one.line["receipts"], strict=True):
            assert row.tx_hash == unhex(tx["hash"])
            assert row.tx_index == number(tx["transactionIndex"])
            assert (row.sender, row.to) == (unhex(tx["from"]), unhex(tx["to"] or receipt["contractAddress"]))
            assert (row.nonce, row.gas_limit, row.value) == (
                number(tx["nonce"]),
                number(tx["gas"]),
                number(tx["value"]),
            )
            assert (row.status, row.gas_used) == (number(receipt["status"]), number(receipt["gasUsed"]))
            assert row.gas_price == number(receipt["effectiveGasPrice"]) == number(tx["gasPrice"])
            assert row.type_id == number(tx["type"])
            assert row.max_fee == (number(tx["maxFeePerGas"]) if "maxFeePerGas" in tx else None)
            assert row.max_priority_fee == (
                number(tx["maxPriorityFeePerGas"]) if "maxPriorityFeePerGas" in tx else None
            )
            assert row.input == unhex(tx["input"])
            assert (row.call_type is CallType.CONTRACT_CREATION) == (tx["to"] is None)
            assert row.selector == (row.input[:4] if row.call_type is CallType.CONTRACT_CALL else b"")


def intrinsic_gas(tx: Any) -> int:
    """What a transaction without input costs when nothing runs."""
    listed = tx.get("accessList") or []
    return 21_000 + sum(2_400 + 1_900 * len(entry["storageKeys"]) for entry in listed)


@pytest.mark.parametrize("chain", CHAINS)
def test_calls_without_input_are_transfers_where_nothing_ran(chain: str) -> None:
    """Running code costs gas, so gas shows independently whether a recipient had any."""
    kinds = set()
    for one in derived(chain):
        for row, tx in zip(one.rows.txs, one.line["block"]["transactions"], strict=True):
            is_precompile = row.to[:19] == bytes(19) and row.to[19] != 0
            if row.input or tx["to"] is None or is_precompile or row.type_id == 4:
                continue
            ran = row.gas_used > intrinsic_gas(tx)
            expected = CallType.CONTRACT_CALL if ran else CallType.NATIVE_TRANSFER
            assert row.call_type is expected, (row.tx_hash.hex(), one.rows.block.number)
            kinds.add(expected)
    assert len(kinds) == 2


@pytest.mark.parametrize("chain", CHAINS)
def test_block_rows(chain: str) -> None:
    for one in derived(chain):
        row, block, receipts = one.rows.block, one.line["block"], one.line["receipts"]
        assert (row.number, row.time) == (number(block["number"]), number(block["timestamp"]))
        assert (row.block_hash, row.parent_hash) == (unhex(block["hash"]), unhex(block["parentHash"]))
        assert (row.gas_used, row.gas_limit) == (number(block["gasUsed"]), number(block["gasLimit"]))
        assert row.base_fee == number(block.get("baseFeePerGas", "0x0"))
        assert row.gas_cost == number(block.get("blockGasCost", "0x0"))
        assert row.tx_count == len(block["transactions"])
        assert row.fees_spent == sum(number(r["gasUsed"]) * number(r["effectiveGasPrice"]) for r in receipts)
        assert (row.fee_recipient, row.size) == (unhex(block["miner"]), number(block["size"]))
        pays_whole_fees = "extDataHash" in block  # coreth, whose recipient is an address without a key
        assert row.fees_burned == (row.fees_spent if pays_whole_fees else row.base_fee * row.gas_used)


def test_fees_that_no_one_gets_where_the_recipient_gets_whole_fees() -> None:
    """A chain of subnet-evm pays them all; of a header with unknown fields it is not known."""
    line = next(one.line for one in derived("geth-1") if one.rows.txs)
    block = decode_block(msgspec.json.encode(line["block"]))
    assert block is not None
    assert totals(block, ()).fees_burned == (block.base_fee or 0) * block.gas_used > 0
    assert totals(msgspec.structs.replace(block, gas_cost=0), ()).fees_burned == 0
    assert totals(msgspec.structs.replace(block, unknown_fields=True), ()).fees_burned is None


@pytest.mark.parametrize("size", ["many", "0x", 7, None])
def test_a_size_that_is_none_is_not_known(size: Any) -> None:
    """No hash covers it: a node that sends nonsense there is used nevertheless."""
    block = decode_block(msgspec.json.encode(derived("geth-1")[1].line["block"] | {"size": size}))
    assert block is not None
    assert block.size is None


@pytest.mark.parametrize("chain", CHAINS)
def test_participants(chain: str) -> None:
    for one in derived(chain):
        rows = one.rows
        expected = set()
        for kind in (rows.txs, rows.erc20_transfers, rows.erc721_transfers, rows.erc1155_transfers, rows.internals):
            for row in kind:
                expected |= {(row.tx_index, row.sender), (row.tx_index, row.to)}
        got = [(row.tx_index, row.address) for row in rows.participants]
        assert len(set(got)) == len(got)
        assert set(got) == {pair for pair in expected if pair[1]}
        assert [tx_index for tx_index, _ in got] == sorted(tx_index for tx_index, _ in got)


@pytest.mark.parametrize("chain", CHAINS)
def test_code_is_kept_current(chain: str) -> None:
    """Code as we follow it agrees with every later diff of the account."""
    code = Code(chain)
    checks = 0
    for one in derived(chain):
        seen: set[bytes] = set()
        for diff in one.full.diffs or ():
            for account in diff.accounts:
                if account.address not in seen:
                    checks += 1
                    assert code.known.get(account.address, False) == account.had_code, one.rows.block.number
                seen.add(account.address)
        code.take(one.rows)
    assert checks > 500


def test_delegations_give_and_take_code() -> None:
    """EIP-7702: accounts get code, also by a transaction that fails, and lose it."""
    chain = like("geth")
    authorities = [
        change
        for one in derived(chain)
        if any(tx.type_id == 4 for tx in one.full.block.txs)
        for change in one.rows.code_changes
    ]
    assert {change.has_code for change in authorities} == {True, False}


def sample() -> FullBlock:
    """A block with a plain transfer."""
    chain = like("geth")
    for one in derived(chain):
        if any(tx.call_type is CallType.NATIVE_TRANSFER for tx in one.rows.txs):
            return one.full
    raise AssertionError("no transfer recorded")


def test_facts_that_are_missing_are_not_guessed() -> None:
    full = msgspec.structs.replace(sample(), diffs=None)
    assert contract_lookups(full).code
    with pytest.raises(KeyError):
        derive(full, ContractInfo())


def test_old_receipts_without_status() -> None:
    """Before Byzantium the trace shows whether a transaction failed; without one, it is taken to have worked."""
    chain = like("anvil")
    for one in derived(chain):
        if {row.status for row in one.rows.txs} == {0, 1}:
            break
    old = tuple(
        [msgspec.structs.replace(r, status=None, state_root=bytes(32), gas_price=None) for r in one.full.receipts]
    )
    full = msgspec.structs.replace(one.full, receipts=old)
    rows = derive(full, contract_info_for(chain, full, Code(chain)))
    assert rows.txs == one.rows.txs
    blind = msgspec.structs.replace(full, traces=None)
    assert {row.status for row in derive(blind, contract_info_for(chain, blind, Code(chain))).txs} == {1}


def test_failed_creation_keeps_its_address_when_the_receipt_does_not_tell() -> None:
    found = 0
    for chain in CHAINS:
        code = Code(chain)
        for one in derived(chain):
            if any(row.call_type is CallType.CONTRACT_CREATION and not row.status for row in one.rows.txs):
                silent = tuple([msgspec.structs.replace(receipt, contract=b"") for receipt in one.full.receipts])
                full = msgspec.structs.replace(one.full, receipts=silent)
                assert derive(full, contract_info_for(chain, full, code)).txs == one.rows.txs
                found += 1
            code.take(one.rows)
    assert found > 10


def test_nothing_is_folded_for_the_zero_address() -> None:
    """It is only named as a holder: what contracts credit to it is read from state."""
    for chain in CHAINS:
        deltas: list[Erc20Delta | IdDelta] = []
        for one in derived(chain):
            deltas += [*one.rows.erc20_deltas, *one.rows.erc1155_deltas]
        assert {delta.delta for delta in deltas if delta.holder == ZERO_ADDRESS} == {0}


def test_deriving_twice_gives_the_same() -> None:
    for chain in CHAINS:
        code = Code(chain)
        for full, one in zip(full_blocks(chain), derived(chain), strict=True):
            assert derive(full, contract_info_for(chain, full, code)) == one.rows
            code.take(one.rows)
