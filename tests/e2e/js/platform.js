// The real JavaScript client against the platform chain of a node.
// Usage: node platform.js read <base url> <address> <node ID> | node platform.js issue <base url> <node ID>
// Prints one JSON object; any failure ends with a non-zero exit code.
import { Context, TransferableOutput, addTxSignatures, pvm, secp256k1, utils } from '@avalabs/avalanchejs';

const [mode, url, ...names] = process.argv.slice(2);
const api = new pvm.PVMApi(url);
const AVAX = 10n ** 9n;

const read = async ([address, nodeID]) => {
  const { utxos } = await api.getUTXOs({ addresses: [address] });
  const { validators } = await api.getCurrentValidators();
  const [one] = (await api.getCurrentValidators({ nodeIDs: [nodeID] })).validators;
  const fees = await api.getFeeState();
  return {
    height: (await api.getHeight()).height,
    utxos: utxos.length,
    unlocked: (await api.getBalance({ addresses: [address] })).unlocked,
    validators: validators.length,
    delegators: one.delegators.length,
    rewards: one.validationRewardOwner.addresses,
    price: fees.price,
    capacity: fees.capacity,
    weights: (await api.getFeeConfig()).weights,
    supply: (await api.getCurrentSupply()).supply,
    subnets: (await api.getSubnets({ ids: [] })).subnets.length,
    stake: (await api.getTotalStake('11111111111111111111111111111111LpoYY')).weight,
  };
};

const committed = async (txID) => {
  for (let i = 0; i < 2000; i++) {
    const { status, reason } = await api.getTxStatus({ txID });
    if (status === 'Committed') return;
    if (status === 'Dropped') throw new Error(`${txID}: ${reason}`);
    await new Promise((wake) => setTimeout(wake, 50));
  }
  throw new Error(`${txID} was not accepted`);
};

const issue = async ([nodeId]) => {
  const context = await Context.getContextFromURI(url);
  const key = utils.hexToBuffer('0x56289e99c94b6912bfc12adc093c9b51124f0dc54ac7a766b2bc5ccf558d8027');
  const owner = secp256k1.publicKeyBytesToAddress(secp256k1.getPublicKey(key));
  const address = utils.format('P', context.hrp, owner);
  const send = async (build, fields) => {
    const { utxos } = await api.getUTXOs({ addresses: [address] });
    const feeState = await api.getFeeState();
    const unsignedTx = build({ feeState, fromAddressesBytes: [owner], utxos, ...fields }, context);
    await addTxSignatures({ unsignedTx, privateKeys: [key] });
    const { txID } = await api.issueSignedTx(unsignedTx.getSignedTx());
    await committed(txID);
    return txID;
  };
  const paid = [TransferableOutput.fromNative(context.avaxAssetID, 3n * AVAX, [owner])];
  const now = BigInt(Math.floor(Date.now() / 1000));
  return {
    base: await send(pvm.newBaseTx, { outputs: paid }),
    delegation: await send(pvm.newAddPermissionlessDelegatorTx, {
      end: now + 60n, start: now, nodeId, rewardAddresses: [owner], weight: 25n * AVAX,
      subnetId: '11111111111111111111111111111111LpoYY',
    }),
    subnet: await send(pvm.newCreateSubnetTx, { subnetOwners: [owner] }),
    exported: await send(pvm.newExportTx, { destinationChainId: context.xBlockchainID, outputs: paid }),
  };
};

const text = (_, value) => (typeof value === 'bigint' ? value.toString() : value);
console.log(JSON.stringify(mode === 'read' ? await read(names) : await issue(names), text));
