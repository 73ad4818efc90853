// Sends 1 AVAX on the X-Chain of a local network from its pre-funded key.
// Usage: node send.mjs [base url]
import { AVM, Context, TransferableOutput, Utxo, addTxSignatures, avm, secp256k1, utils } from '@avalabs/avalanchejs';

const url = process.argv[2] ?? 'http://127.0.0.1:9650';
const api = new avm.AVMApi(url);
const context = await Context.getContextFromURI(url);

// This private key is publicly known: every local network starts with funds on it.
const key = utils.hexToBuffer('0x56289e99c94b6912bfc12adc093c9b51124f0dc54ac7a766b2bc5ccf558d8027');
const owner = (secret) => secp256k1.publicKeyBytesToAddress(secp256k1.getPublicKey(secret));
const sender = owner(key);
const recipient = owner(utils.hexToBuffer('0x' + '11'.repeat(32)));

// The demo's key also holds NFTs and properties, some of which this client cannot decode: only AVAX outputs are needed.
const { utxos: all } = await api.callRpc('getUTXOs', {
  addresses: [utils.format('X', context.hrp, sender)],
  encoding: 'hex',
});
const spendable = all.flatMap((hex) => {
  try {
    const utxo = utils.getManagerForVM(AVM).unpack(utils.hexToBuffer(hex).slice(0, -4), Utxo);
    return utils.isTransferOut(utxo.output) ? [utxo] : [];
  } catch {
    return [];
  }
});

const payment = TransferableOutput.fromNative(context.avaxAssetID, 10n ** 9n, [recipient]);
const unsignedTx = avm.newBaseTx(context, [sender], spendable, [payment]);
await addTxSignatures({ unsignedTx, privateKeys: [key] });

const { txID } = await api.issueSignedTx(unsignedTx.getSignedTx());
console.log(JSON.stringify({ txID, to: utils.format('X', context.hrp, recipient) }));
