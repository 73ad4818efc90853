"""Checks of a transaction against a state: outputs exist, signatures are valid, and assets allow its operations.

Texts of the part that every transaction has carry a prefix; those of imports, exports and operations do not.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from icefall.wire.avm.types import (
    BaseTx,
    CreateAssetTx,
    Credential,
    ExportTx,
    FxOperation,
    ImportTx,
    MintOperation,
    MintOutput,
    NftCredential,
    NftMintOperation,
    NftMintOutput,
    NftTransferOperation,
    NftTransferOutput,
    Operation,
    OperationTx,
    Output,
    Owners,
    PropertyBurnOperation,
    PropertyCredential,
    PropertyMintOperation,
    PropertyMintOutput,
    PropertyOwnedOutput,
    TransferableInput,
    TransferableOutput,
    TransferOutput,
    Tx,
    Utxo,
    Verifiable,
)
from icefall.wire.ids import PRIMARY_NETWORK, hash256, id_from_text, id_text, input_id
from icefall.xchain.model import ChainRules, LedgerState, TxRefused
from icefall.xchain.ownership import Recover, Signers, verify_ownership


def verify_operation(operation: FxOperation, credential: Verifiable, outputs: Sequence[Output]) -> Owners:
    """The owners who must have signed; TxRefused if the operation does not fit the one output it consumes."""
    rule = _RULES[type(operation)]
    if rule.credential is Credential:  # the first Fx checks the credential first, the others the count
        _verify_credential(rule, credential)
        if len(outputs) != 1:
            raise TxRefused("wrong number of utxos for the operation")
    else:
        if len(outputs) != 1:
            raise TxRefused("wrong number of UTXOs for the operation")
        _verify_credential(rule, credential)
    output = outputs[0]
    if type(output) is not rule.consumes:
        raise TxRefused("wrong utxo type")
    rule.check(operation, output)
    owners: Owners = output.owners
    return owners


def _keeps_mint_owners(operation: MintOperation, output: MintOutput) -> None:
    if operation.mint_output.owners != output.owners:
        raise TxRefused("wrong mint output created from the operation")


def _keeps_group(operation: NftMintOperation, output: NftMintOutput) -> None:
    if operation.group_id != output.group_id:
        raise TxRefused("wrong unique ID provided")


def _keeps_token(operation: NftTransferOperation, output: NftTransferOutput) -> None:
    if operation.output.group_id != output.group_id:
        raise TxRefused("wrong unique ID provided")
    if operation.output.payload != output.payload:
        raise TxRefused("wrong bytes provided")


def _keeps_property_owners(operation: PropertyMintOperation, output: PropertyMintOutput) -> None:
    if operation.mint_output.owners != output.owners:
        raise TxRefused("wrong mint output provided")


def _keeps_nothing(_operation: PropertyBurnOperation, _output: PropertyOwnedOutput) -> None:
    """Nothing is left after burning."""


class _Rule(NamedTuple):
    credential: type
    consumes: type
    check: Callable[[Any, Any], None]


_RULES = {
    MintOperation: _Rule(Credential, MintOutput, _keeps_mint_owners),
    NftMintOperation: _Rule(NftCredential, NftMintOutput, _keeps_group),
    NftTransferOperation: _Rule(NftCredential, NftTransferOutput, _keeps_token),
    PropertyMintOperation: _Rule(PropertyCredential, PropertyMintOutput, _keeps_property_owners),
    PropertyBurnOperation: _Rule(PropertyCredential, PropertyOwnedOutput, _keeps_nothing),
}


def _verify_credential(rule: _Rule, credential: Verifiable) -> None:
    if type(credential) is not rule.credential:
        raise TxRefused("wrong credential type")


SECP_FX = 0

# Mainnet accepted this one before its operations were checked as they are now.
_OPERATIONS_UNCHECKED = frozenset({id_from_text("MkvpJS13eCnEYeYi9B5zuWrU9goG9RBj7nr83U7BjrFV22a12")})


def verify_semantics(tx: Tx, rules: ChainRules, state: LedgerState, now_s: int, recover: Recover | None = None) -> None:
    """Refuses what `state` does not allow. The transaction must have passed `verify_syntax`."""
    verification = _Verification(tx, rules, state, now_s, Signers() if recover is None else recover)
    verification.base(tx.unsigned)
    special = _SPECIAL.get(type(tx.unsigned))
    if special is not None:
        special(verification, tx.unsigned)


def fx_of(value: Any) -> int:
    """The Fx that a value belongs to: type IDs are numbered in fives, after those of the transactions."""
    index: int = value.type_id // 5 - 1
    return index


def unknown_chain(chain_id: bytes) -> TxRefused:
    """The refusal of a `LedgerState` for a chain that does not exist."""
    text = id_text(chain_id)
    reason = f'failed to get subnet of "{text}": problem retrieving blockchain "{text}": not found'
    return TxRefused(reason, is_final=False)  # it may be created later


class _Verification:
    """The verification of one transaction: what it is checked against, and what is cached in between."""

    __slots__ = ("_fxs", "chain_id", "credentials", "digest", "now_s", "recover", "state", "txid")

    def __init__(self, tx: Tx, rules: ChainRules, state: LedgerState, now_s: int, recover: Recover) -> None:
        self.txid = tx.txid
        self.credentials = tx.credentials
        self.digest = hash256(tx.unsigned_raw)
        self.chain_id = rules.chain_id
        self.state = state
        self.now_s = now_s
        self.recover = recover
        self._fxs: dict[bytes, tuple[int, ...]] = {}

    def base(self, tx: BaseTx) -> None:
        """The inputs and outputs that every transaction may have."""
        for given, credential in zip(tx.inputs, self.credentials, strict=False):
            try:
                self.transfer(given, credential, self._utxo_of(given))
            except TxRefused as refusal:
                raise TxRefused(f"failed to verify transfer: {refusal}", is_final=refusal.is_final) from None
        for row in tx.outputs:
            try:
                self.output(row)
            except TxRefused as refusal:
                raise TxRefused(f"failed to verify fx usage: {refusal}", is_final=refusal.is_final) from None

    def transfer(self, given: TransferableInput, credential: Verifiable, utxo: Utxo) -> None:
        """An input spends exactly the UTXO it names."""
        if utxo.asset_id != given.asset_id:
            raise TxRefused("asset IDs in the input don't match the utxo")
        fx = fx_of(credential)
        self.require_fx(fx, given.asset_id)
        if fx != SECP_FX:
            raise TxRefused("cant transfer with this fx")
        if not isinstance(credential, Credential):
            raise TxRefused("wrong credential type")
        output, spend = utxo.output, given.input
        if not isinstance(output, TransferOutput):
            raise TxRefused("wrong utxo type")
        if output.amount != spend.amount:
            raise TxRefused(f"utxo amount and input amount are not equal: {output.amount} != {spend.amount}")
        verify_ownership(
            output.owners, spend.signature_indices, credential.signatures, self.digest, self.now_s, self.recover
        )

    def output(self, row: TransferableOutput) -> None:
        """An output is of an Fx that its asset supports."""
        self.require_fx(fx_of(row.output), row.asset_id)

    def operation(self, operation: Operation, credential: Verifiable) -> None:
        """An operation consumes what it names, in its own asset."""
        outputs = []
        for at in operation.utxo_ids:
            utxo = self.state.utxo(input_id(at.txid, at.output_index))
            if utxo is None:
                raise self._missing(at.txid, "not found")
            if utxo.asset_id != operation.asset_id:
                raise TxRefused("asset IDs in the input don't match the utxo")
            outputs.append(utxo.output)
        done: Any = operation.operation
        self.require_fx(fx_of(done), operation.asset_id)
        owners = verify_operation(done, credential, outputs)
        signatures: tuple[bytes, ...] = credential.signatures  # type: ignore[union-attr]  # verify_operation saw it
        verify_ownership(owners, done.signature_indices, signatures, self.digest, self.now_s, self.recover)

    def require_fx(self, fx: int, asset_id: bytes) -> None:
        """The asset was created with support for an Fx."""
        supported = self._fxs.get(asset_id)
        if supported is None:
            supported = self._fxs[asset_id] = self._fxs_of(asset_id)
        if fx not in supported:
            raise TxRefused("incompatible feature extension")

    def require_peer(self, chain_id: bytes) -> None:
        """Another chain of the same subnet: only those share memory with this one."""
        if chain_id == self.chain_id:
            raise TxRefused("same chainID")
        subnet_id = self.state.subnet_of(chain_id)
        if subnet_id != PRIMARY_NETWORK:
            expected, got = id_text(PRIMARY_NETWORK), id_text(subnet_id)
            raise TxRefused(f'mismatched subnetIDs; expected "{expected}" got "{got}"')

    def _utxo_of(self, given: TransferableInput) -> Utxo:
        utxo_id = input_id(given.txid, given.output_index)
        utxo = self.state.utxo(utxo_id)
        if utxo is None:
            raise self._missing(given.txid, f"failed to get utxo {id_text(utxo_id)}: not found")
        return utxo

    def _missing(self, txid: bytes, text: str) -> TxRefused:
        """The refusal of an input that is not there: final if the transaction that makes it is accepted, for then the
        output is spent or was never made."""
        return TxRefused(text, is_final=self.state.tx(txid) is not None)

    def _fxs_of(self, asset_id: bytes) -> tuple[int, ...]:
        tx = self.state.tx(asset_id)
        if tx is None:
            raise TxRefused("not found", is_final=False)
        if not isinstance(tx.unsigned, CreateAssetTx):
            raise TxRefused("not an asset")
        return tuple([state.fx_index for state in tx.unsigned.initial_states])


def _verify_operations(verification: _Verification, tx: OperationTx) -> None:
    if verification.txid in _OPERATIONS_UNCHECKED:
        return
    credentials = verification.credentials[len(tx.inputs) :]
    for operation, credential in zip(tx.operations, credentials, strict=True):
        verification.operation(operation, credential)


def _verify_import(verification: _Verification, tx: ImportTx) -> None:
    verification.require_peer(tx.source_chain)
    utxos = []
    for given in tx.imported_inputs:
        utxo = verification.state.atomic_utxo(tx.source_chain, input_id(given.txid, given.output_index))
        if utxo is None:  # the peer may export it later; what was imported already leaves no trace
            raise TxRefused("not found", is_final=False)
        utxos.append(utxo)
    credentials = verification.credentials[len(tx.inputs) :]
    for given, credential, utxo in zip(tx.imported_inputs, credentials, utxos, strict=True):
        verification.transfer(given, credential, utxo)


def _verify_export(verification: _Verification, tx: ExportTx) -> None:
    verification.require_peer(tx.destination_chain)
    for row in tx.exported_outputs:
        verification.output(row)


_SPECIAL: dict[type, Callable[[_Verification, Any], None]] = {
    OperationTx: _verify_operations,
    ImportTx: _verify_import,
    ExportTx: _verify_export,
}
