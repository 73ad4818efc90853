"""Every text of syntactic verification, and the order in which a transaction with several faults meets them."""

import msgspec
import pytest
from tests.xchain.craft import (
    ADDRESSES,
    ALICE,
    AVAX,
    FEE,
    NO_OWNERS,
    base,
    create,
    empty_credentials,
    export,
    import_,
    operate,
    out,
    refusal_of,
    spend_any,
    unsigned_with,
)
from tests.xchain.memory_state import RULES

from icefall.wire.avm.types import (
    BaseTx,
    Credential,
    InitialState,
    MintOutput,
    NftMintOperation,
    NftMintOutput,
    Operation,
    Owners,
    PropertyBurnOperation,
    TransferableInput,
    TransferInput,
    TransferOutput,
    Tx,
    UtxoId,
)
from icefall.wire.ids import EMPTY_ID
from icefall.xchain.syntax import verify_syntax

U64_MAX = 2**64 - 1
OTHER = b"\7" * 32
UNSPENDABLE = Owners(0, 2, ADDRESSES[:1])
WASTEFUL = Owners(0, 0, ADDRESSES[:1])
UNSORTED = Owners(0, 1, (ADDRESSES[1], ADDRESSES[0]))
TWICE = Owners(0, 1, (ADDRESSES[0], ADDRESSES[0]))
STATE = InitialState(0, ())
IN = spend_any()
BURN = PropertyBurnOperation((0,))


def op(number: int = 1, operation: object = BURN, asset_id: bytes = AVAX) -> Operation:
    return Operation(asset_id, (UtxoId(bytes([number]) * 32, 1),), operation)  # type: ignore[arg-type]


def using(indices: tuple[int, ...] = (0,), amount: int = 10 * FEE, asset_id: bytes = AVAX) -> TransferableInput:
    return TransferableInput(b"\1" * 32, 0, asset_id, TransferInput(amount, indices))


def elsewhere(unsigned: BaseTx, **changes: object) -> BaseTx:
    return msgspec.structs.replace(unsigned, **changes)


def with_all_credentials(unsigned: BaseTx) -> Tx:
    needed = len(unsigned.inputs)
    needed += len(getattr(unsigned, "operations", ())) + len(getattr(unsigned, "imported_inputs", ()))
    return unsigned_with(unsigned, *empty_credentials(needed))


GOOD = {
    "base": base([out()], [IN]),
    "base, all burned": base([], [IN]),
    "base, fee exactly": base([], [using(amount=FEE)]),
    "two equal outputs": base([out(), out()], [IN]),
    "memo of 256": base([], [IN], b"m" * 256),
    "without owners": base([out(owners=NO_OWNERS)], [IN]),
    "another asset, burned wholly": base([], [IN, spend_any(5, OTHER, b"\2" * 32)]),
    "create": create(STATE),
    "create, all Fxs": create(InitialState(0, ()), InitialState(1, ()), InitialState(2, ())),
    "create, outputs of another Fx": create(InitialState(0, (NftMintOutput(0, ALICE),))),
    "create, equal state outputs": create(InitialState(0, (MintOutput(ALICE), MintOutput(ALICE)))),
    "create, two blanks inside": create(STATE, name="a  b"),
    "create, longest names": create(STATE, name="n" * 128, symbol="ABCD", denomination=32),
    "create, called AVAX": create(STATE, name="Avalanche", symbol="AVAX"),
    "operation": operate(op()),
    "operation on nothing": operate(Operation(AVAX, (), BURN)),
    "operations": operate(op(1), op(2)),
    "nft minted without owners": operate(op(operation=NftMintOperation((0,), 1, b"x" * 1024, ()))),
    "import": import_(IN),
    "import with the same input": import_(IN, inputs=[IN]),
    "export": export(out(), inputs=[IN]),
}

BAD: dict[str, tuple[BaseTx, str]] = {
    "network": (elsewhere(base([], [IN]), network_id=1), "tx has wrong network ID"),
    "chain": (elsewhere(base([], [IN]), blockchain_id=OTHER), "tx has wrong chain ID"),
    "memo": (base([], [IN], b"m" * 257), "memo exceeds maximum length: 257 > 256"),
    "memo of an import": (import_(IN, memo=b"m" * 300), "memo exceeds maximum length: 300 > 256"),
    "memo of an export": (export(out(), inputs=[IN], memo=b"m" * 300), "memo exceeds maximum length: 300 > 256"),
    "output without asset": (base([out(asset_id=EMPTY_ID)], [IN]), "empty asset ID is not valid"),
    "output without value": (base([out(0)], [IN]), "output has no value"),
    "output, threshold": (base([out(owners=UNSPENDABLE)], [IN]), "output is unspendable"),
    "output, threshold 0": (base([out(owners=WASTEFUL)], [IN]), "output representation should be optimized"),
    "output, addresses": (base([out(owners=UNSORTED)], [IN]), "addresses not sorted and unique"),
    "output, address twice": (base([out(owners=TWICE)], [IN]), "addresses not sorted and unique"),
    "outputs by asset": (base([out(1, asset_id=b"\xff" * 32), out(1)], [IN]), "outputs not sorted"),
    "outputs by amount": (base([out(2), out(1)], [IN]), "outputs not sorted"),
    "outputs by locktime": (base([out(owners=Owners(1, 1, ADDRESSES[:1])), out()], [IN]), "outputs not sorted"),
    "outputs by owners": (base([out(), out(owners=NO_OWNERS)], [IN]), "outputs not sorted"),
    "outputs by number of owners": (
        base([out(owners=Owners(0, 1, ADDRESSES[:2])), out(owners=Owners(0, 1, ADDRESSES[3:]))], [IN]),
        "outputs not sorted",
    ),
    "input without asset": (base([], [using(asset_id=EMPTY_ID)]), "empty asset ID is not valid"),
    "input without value": (base([], [using(amount=0)]), "input has no value"),
    "input, indices": (base([], [using((1, 0))]), "address indices not sorted and unique"),
    "input, index twice": (base([], [using((1, 1))]), "address indices not sorted and unique"),
    "inputs unsorted": (base([], [spend_any(txid=b"\2" * 32), IN]), "inputs not sorted and unique"),
    "inputs twice": (base([], [IN, IN]), "inputs not sorted and unique"),
    "nothing in": (base([], []), "insufficient funds"),
    "fee short by one": (base([], [using(amount=FEE - 1)]), "insufficient funds"),
    "one too much out": (base([out(9 * FEE + 1)], [IN]), "insufficient funds"),
    "asset out of nothing": (base([out(1, asset_id=OTHER)], [IN]), "insufficient funds"),
    "inputs overflow": (
        base([], [using(amount=U64_MAX), spend_any(1, txid=b"\2" * 32)]),
        "overflow",
    ),
    "outputs overflow": (base([out(U64_MAX, asset_id=OTHER), out(1, asset_id=OTHER)][::-1], [IN]), "overflow"),
    "fee overflows": (base([out(U64_MAX - FEE + 1)], [using(amount=U64_MAX)]), "overflow"),
    "name empty": (create(STATE, name=""), "name is too short, minimum size is 1"),
    "name long": (create(STATE, name="n" * 129), "name is too long, maximum size is 128"),
    "name long in bytes": (create(STATE, name="é" * 65), "name is too long, maximum size is 128"),
    "symbol empty": (create(STATE, symbol=""), "symbol is too short, minimum size is 1"),
    "symbol long": (create(STATE, symbol="ABCDE"), "symbol is too long, maximum size is 4"),
    "symbol long in bytes": (create(STATE, symbol="ÀÀÀ"), "symbol is too long, maximum size is 4"),
    "no states": (create(), "assets must support at least one Fx"),
    "denomination": (create(STATE, denomination=33), "denomination is too large"),
    "blank in front": (create(STATE, name=" a"), "unexpected whitespace provided"),
    "tab behind": (create(STATE, name="a\t"), "unexpected whitespace provided"),
    "ideographic blank": (create(STATE, name="\u3000a"), "unexpected whitespace provided"),
    "no blank to Go": (create(STATE, name="\x1ca"), "asset's name must be made up of only letters and numbers"),
    "name, dash": (create(STATE, name="a-b"), "asset's name must be made up of only letters and numbers"),
    "name, accent": (create(STATE, name="é"), "asset's name must be made up of only letters and numbers"),
    "name, bad UTF-8": (create(STATE, name="\udcff"), "asset's name must be made up of only letters and numbers"),
    "symbol, lower": (create(STATE, symbol="a"), "asset's symbol must be all upper case letters"),
    "symbol, digit": (create(STATE, symbol="A1"), "asset's symbol must be all upper case letters"),
    "symbol, accent": (create(STATE, symbol="É"), "asset's symbol must be all upper case letters"),
    "create fee": (create(STATE, inputs=[using(amount=FEE - 1)]), "insufficient funds"),
    "unknown Fx": (create(InitialState(3, ())), "unknown feature extension"),
    "state output": (create(InitialState(0, (TransferOutput(0, ALICE),))), "output has no value"),
    "state outputs unsorted": (
        create(InitialState(0, (TransferOutput(1, ALICE), MintOutput(ALICE)))),
        "outputs not sorted",
    ),
    "states unsorted": (create(InitialState(1, ()), STATE), "initial states not sorted and unique"),
    "state twice": (create(STATE, STATE), "initial states not sorted and unique"),
    "no operation": (operate(), "an operationTx must have at least one operation"),
    "operation without asset": (operate(op(asset_id=EMPTY_ID)), "empty asset ID is not valid"),
    "operation UTXOs": (
        operate(Operation(AVAX, (UtxoId(b"\2" * 32, 1), UtxoId(b"\2" * 32, 0)), BURN)),
        "utxo IDs not sorted and unique",
    ),
    "operation spends an input": (
        operate(Operation(AVAX, (UtxoId(b"\1" * 32, 0),), BURN)),
        "inputs attempt to double spend an input",
    ),
    "operations spend the same": (operate(op(), op()), "inputs attempt to double spend an input"),
    "operations unsorted": (operate(op(2), op(1)), "operations not sorted and unique"),
    "operation twice": (
        operate(Operation(AVAX, (), BURN), Operation(AVAX, (), BURN)),
        "operations not sorted and unique",
    ),
    "operation itself": (operate(op(operation=PropertyBurnOperation((1, 0)))), "address indices not sorted and unique"),
    "no imports": (import_(inputs=[IN]), "no import inputs"),
    "imports twice": (import_(IN, IN), "inputs not sorted and unique"),
    "imported input": (import_(using(amount=0)), "input has no value"),
    "no exports": (export(inputs=[IN]), "no export outputs"),
    "exports unsorted": (export(out(2), out(1), inputs=[IN]), "outputs not sorted"),
    "exported output": (export(out(0), inputs=[IN]), "output has no value"),
    "exports too much": (export(out(9 * FEE), inputs=[IN], outputs=[out(1)]), "insufficient funds"),
}

# Two faults each: the one that is named wins.
ORDER: dict[str, tuple[BaseTx, str]] = {
    "name, then network": (elsewhere(create(STATE, name=""), network_id=1), "name is too short, minimum size is 1"),
    "no operation, then network": (
        elsewhere(operate(), network_id=1),
        "an operationTx must have at least one operation",
    ),
    "no imports, then network": (elsewhere(import_(), network_id=1), "no import inputs"),
    "no exports, then network": (elsewhere(export(), network_id=1), "no export outputs"),
    "name, then symbol": (create(STATE, name="", symbol=""), "name is too short, minimum size is 1"),
    "size, then whitespace": (create(STATE, name=" a", symbol=""), "symbol is too short, minimum size is 1"),
    "states, then denomination": (create(denomination=33), "assets must support at least one Fx"),
    "denomination, then whitespace": (create(STATE, name=" a", denomination=33), "denomination is too large"),
    "network, then chain": (elsewhere(base([], [IN]), network_id=1, blockchain_id=OTHER), "tx has wrong network ID"),
    "chain, then memo": (elsewhere(base([], [IN]), blockchain_id=OTHER, memo=b"m" * 300), "tx has wrong chain ID"),
    "memo, then outputs": (base([out(0)], [IN], b"m" * 257), "memo exceeds maximum length: 257 > 256"),
    "value, then owners": (base([out(0, UNSPENDABLE)], [IN]), "output has no value"),
    "each output, then their order": (base([out(2), out(1), out(0)], [IN]), "output has no value"),
    "outputs, then inputs": (base([out(2), out(1)], [using(amount=0)]), "outputs not sorted"),
    "outputs, then exports": (export(out(0), inputs=[IN], outputs=[out(2), out(1)]), "outputs not sorted"),
    "inputs, then flow": (base([out(U64_MAX)], [IN, IN]), "inputs not sorted and unique"),
    "overflow, then funds": (base([out(U64_MAX), out(U64_MAX)], [IN]), "overflow"),
    "flow, then states": (create(InitialState(9, ()), inputs=[]), "insufficient funds"),
    "each state, then their order": (
        create(InitialState(1, ()), InitialState(0, (TransferOutput(0, ALICE),))),
        "output has no value",
    ),
    "flow, then operations": (operate(op(asset_id=EMPTY_ID), inputs=[using(amount=1)]), "insufficient funds"),
    "UTXO order, then asset": (
        operate(Operation(EMPTY_ID, (UtxoId(b"\2" * 32, 1), UtxoId(b"\2" * 32, 0)), BURN)),
        "utxo IDs not sorted and unique",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_well_formed(name: str) -> None:
    verify_syntax(with_all_credentials(GOOD[name]), RULES)


@pytest.mark.parametrize("name", BAD | ORDER)
def test_malformed(name: str) -> None:
    unsigned, text = (BAD | ORDER)[name]
    assert refusal_of(verify_syntax, with_all_credentials(unsigned), RULES) == text


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("difference", [-1, 1, 4])
def test_number_of_credentials(name: str, difference: int) -> None:
    tx = with_all_credentials(GOOD[name])
    needed = len(tx.credentials)
    given = max(0, needed + difference)
    text = refusal_of(verify_syntax, unsigned_with(tx.unsigned, *empty_credentials(given)), RULES)
    assert text == f"wrong number of credentials: {given} != {needed}"


def test_malformed_comes_before_the_number_of_credentials() -> None:
    assert refusal_of(verify_syntax, unsigned_with(base([], []), Credential(())), RULES) == "insufficient funds"


def test_what_stands_in_for_a_credential_is_looked_at_itself() -> None:
    tx = unsigned_with(base([], [IN]), MintOutput(UNSPENDABLE), Credential(()))
    assert refusal_of(verify_syntax, tx, RULES) == "output is unspendable"
    verify_syntax(unsigned_with(base([], [IN]), MintOutput(ALICE)), RULES)


def test_states_are_counted_by_the_chain() -> None:
    fewer = msgspec.structs.replace(RULES, fx_count=1)
    tx = with_all_credentials(create(InitialState(1, ())))
    assert refusal_of(verify_syntax, tx, fewer) == "unknown feature extension"


def test_creating_an_asset_has_its_own_fee() -> None:
    dear = msgspec.structs.replace(RULES, create_asset_tx_fee=10 * FEE + 1)
    verify_syntax(with_all_credentials(base([], [IN])), dear)
    assert refusal_of(verify_syntax, with_all_credentials(create(STATE)), dear) == "insufficient funds"
