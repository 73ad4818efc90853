// The real JavaScript client against a node: a transfer, a multisig spend, exports to P and C.
// Usage: node wallet.js <base url>. Prints one JSON object; any failure ends with a non-zero exit code.
import { Context, TransferableOutput, addTxSignatures, avm, secp256k1, utils } from '@avalabs/avalanchejs';

const url = process.argv[2];
const api = new avm.AVMApi(url);
const context = await Context.getContextFromURI(url);
const AVAX = 10n ** 9n;

const ewoq = utils.hexToBuffer('0x56289e99c94b6912bfc12adc093c9b51124f0dc54ac7a766b2bc5ccf558d8027');
const other = utils.hexToBuffer('0x' + '11'.repeat(32));
const owner = (secret) => secp256k1.publicKeyBytesToAddress(secp256k1.getPublicKey(secret));
const text = (chain, bytes) => utils.format(chain, context.hrp, bytes);

const rpc = async (method, params) => {
  const answer = await fetch(url + '/ext/bc/X', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const body = await answer.json();
  if (body.error) throw new Error(`${method}: ${body.error.message}`);
  return body.result;
};

const accepted = async (txID) => {
  for (let i = 0; i < 4000; i++) {
    if ((await rpc('avm.getTxStatus', { txID })).status === 'Accepted') return;
    await new Promise((wake) => setTimeout(wake, 25));
  }
  throw new Error(`${txID} was not accepted`);
};

const issue = async (unsignedTx, keys) => {
  await addTxSignatures({ unsignedTx, privateKeys: keys });
  const { txID } = await api.issueSignedTx(unsignedTx.getSignedTx());
  await accepted(txID);
  return txID;
};

const utxosOf = async (...secrets) =>
  (await api.getUTXOs({ addresses: secrets.map((secret) => text('X', owner(secret))) })).utxos;
const pay = (amount, owners, threshold = 1) =>
  TransferableOutput.fromNative(context.avaxAssetID, amount, owners, undefined, threshold);

const transfer = await issue(
  avm.newBaseTx(context, [owner(ewoq)], await utxosOf(ewoq), [pay(5n * AVAX, [owner(other)])]), [ewoq]);

const both = [owner(ewoq), owner(other)].sort(Buffer.compare);
const fund = await issue(
  avm.newBaseTx(context, [owner(ewoq)], await utxosOf(ewoq), [pay(3n * AVAX, both, 2)]), [ewoq]);
const shared = (await utxosOf(ewoq)).filter((utxo) => utxo.utxoId.txID.toString() === fund
  && utxo.output.outputOwners.threshold.value() === 2);
if (shared.length !== 1) throw new Error(`expected one shared output, got ${shared.length}`);
const multisig = await issue(
  avm.newBaseTx(context, both, shared, [pay(2n * AVAX, [owner(other)])]), [ewoq, other]);

const exportP = await issue(
  avm.newExportTx(context, context.pBlockchainID, [owner(ewoq)], await utxosOf(ewoq), [pay(AVAX, [owner(ewoq)])]), [ewoq]);
const exportC = await issue(
  avm.newExportTx(context, context.cBlockchainID, [owner(ewoq)], await utxosOf(ewoq), [pay(2n * AVAX, [owner(ewoq)])]), [ewoq]);

const seen = {};
for (const [name, txID] of Object.entries({ transfer, fund, multisig, exportP, exportC })) {
  const { tx } = await rpc('avm.getTx', { txID, encoding: 'json' });
  if (tx.id !== txID) throw new Error(`getTx gave ${tx.id} for ${txID}`);
  seen[name] = tx;
}
const { height } = await rpc('avm.getHeight', {});
const { block } = await rpc('avm.getBlockByHeight', { height, encoding: 'json' });
const again = await rpc('avm.getBlock', { blockID: block.id, encoding: 'json' });
const balance = await rpc('avm.getBalance', { address: text('X', owner(other)), assetID: 'AVAX' });
console.log(JSON.stringify({
  context: { ...context, baseTxFee: String(context.baseTxFee), createAssetTxFee: String(context.createAssetTxFee), platformFeeConfig: undefined },
  seen, height, block, same: JSON.stringify(again.block) === JSON.stringify(block),
  balance: balance.balance, utxos: (await utxosOf(other)).length,
}));
