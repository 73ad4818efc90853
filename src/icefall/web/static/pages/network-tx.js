// A transaction of P or X, or an atomic one of C: what it does, spends and makes.
import { h, icon } from "../dom.js";
import { CallError, path } from "../api.js";
import { dateTime, whole } from "../format.js";
import {
  addressLink,
  assetAmounts,
  avax,
  blockLink,
  chainLetters,
  nodeLink,
  onNetwork,
  owners,
  subnetLink,
  txLink,
} from "../network.js";
import { badge, card, clip, crumbs, exactTime, facts, header, id, quantity, to } from "../parts.js";

const SHOWN_MAX = 100; // of the inputs and of the outputs

export async function render({ params, signal }) {
  const letter = params.chain;
  if (!["P", "X", "C"].includes(letter)) throw new CallError(`there is no chain ${letter} in the network`, 404);
  const [tx, letters] = await Promise.all([
    onNetwork(path`/blockchains/${letter.toLowerCase()}-chain/transactions/${params.id}`, {}, signal),
    chainLetters(),
  ]);
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Network", "#/network"], [`${letter} transaction`]),
    header(
      `Transaction of the ${letter}-Chain`,
      id(tx.txHash, { full: true, what: "transaction ID" }),
      badge(tx.txType.replace(/Tx$/, ""), "method"),
    ),
    card("Details", facts([...where(tx, letter, letters), ...staking(tx), ...amounts(tx), ...made(tx)])),
    tx.l1ValidatorDetails?.length > 0 && card("Validators of L1s", h("div.grid.fit", {}, tx.l1ValidatorDetails.map(l1Box))),
    flow(tx, letter, letters),
  );
  return { title: `${letter} transaction ${tx.txHash.slice(0, 10)}…`, content };
}

function where(tx, letter, letters) {
  const chain = (key) => (letters.has(key) ? `${letters.get(key)}-Chain` : id(key, { full: true, what: "chain ID" }));
  const height = tx.blockNumber ?? tx.blockHeight;
  return [
    ["Time", exactTime(tx.blockTimestamp ?? tx.timestamp)],
    height !== undefined && ["Block", blockLink(letter, height)],
    tx.vertices?.length > 0 && ["Vertices", tx.vertices.map((one) => h("div", {}, id(one.hash, { what: "vertex ID" })))],
    tx.blockHash && ["Block ID", id(tx.blockHash, { full: true, what: "block ID" })],
    tx.sourceChain && ["From chain", chain(tx.sourceChain)],
    tx.destinationChain && ["To chain", chain(tx.destinationChain)],
    tx.memo && tx.memo !== "0x" && ["Memo", h("span.mono", {}, clip(tx.memo, 500))],
  ];
}

function staking(tx) {
  return [
    tx.nodeId && ["Validator", nodeLink(tx.nodeId, { full: true })],
    tx.subnetId && ["Subnet", subnetLink(tx.subnetId, { full: true })],
    tx.startTimestamp !== undefined && ["From", exactTime(tx.startTimestamp)],
    tx.endTimestamp !== undefined && ["Until", exactTime(tx.endTimestamp)],
    tx.delegationFeePercent !== undefined && ["Delegation fee", `${Number(tx.delegationFeePercent)}%`],
    tx.estimatedReward !== undefined && ["Estimated reward", avax(tx.estimatedReward, { full: true })],
    tx.rewardAddresses?.length > 0 && ["Reward to", tx.rewardAddresses.map((one) => h("div", {}, addressLink(one)))],
    tx.rewardTxHash && ["Reward in", txLink("P", tx.rewardTxHash, { full: true })],
    tx.stakingTxHash && ["Staking transaction", txLink("P", tx.stakingTxHash, { full: true })],
  ];
}

function amounts(tx) {
  const some = (name, all) => all?.length > 0 && [name, assetAmounts(all)];
  return [
    some("Staked", tx.amountStaked),
    some("Burned", tx.amountBurned),
    some("Paid for L1 validators", tx.amountL1ValidatorBalanceBurned),
    some("Consumed", tx.amountUnlocked),
    some("Made", tx.amountCreated),
  ];
}

function made(tx) {
  const manager = tx.l1ValidatorManagerDetails;
  const owner = tx.subnetOwnershipInfo;
  return [
    tx.blockchainInfo && ["Blockchain", clip(tx.blockchainInfo.chainName, 128)],
    tx.blockchainInfo && ["Virtual machine", id(tx.blockchainInfo.vmId, { full: true, what: "VM ID" })],
    tx.assetCreated && [
      "Asset",
      h("a", { href: to.x("asset", tx.assetCreated.assetId) }, clip(tx.assetCreated.name, 128)),
    ],
    owner && ["Owners", owners(owner.addresses, owner.threshold)],
    manager && ["Validator manager", h("span.mono", {}, manager.contractAddress)],
    manager && ["Manager's chain", id(manager.blockchainId, { full: true, what: "chain ID" })],
  ];
}

function l1Box(one) {
  return h(
    "div.utxo",
    {},
    h("div", {}, nodeLink(one.nodeId, { full: true })),
    h("div.quiet", {}, "validation ", id(one.validationId, { what: "validation ID" })),
    h("div", {}, `weight ${whole(one.weight)}, balance `, avax(one.remainingBalance, { full: true })),
  );
}

function flow(tx, letter, letters) {
  const inputs = [...(tx.consumedUtxos || []), ...(tx.evmInputs || [])];
  const outputs = [...(tx.emittedUtxos || []), ...(tx.evmOutputs || [])];
  const side = (name, all, box) =>
    h(
      "div",
      {},
      h("h2", {}, `${name} (${whole(all.length)})`),
      all.length ? null : h("p.quiet", {}, "none"),
      all.slice(0, SHOWN_MAX).map(box),
      all.length > SHOWN_MAX ? h("p.quiet", {}, `and ${whole(all.length - SHOWN_MAX)} more`) : null,
    );
  return h(
    "section.card",
    { "aria-label": "Inputs and outputs" },
    h(
      "div.flow",
      {},
      side("Inputs", inputs, (one) => partBox(one, letter, letters, "from")),
      icon("arrow"),
      side("Outputs", outputs, (one) => partBox(one, letter, letters, "to")),
    ),
  );
}

// One input or output, or an amount of an account of C.
function partBox(one, letter, letters, direction) {
  const { asset } = one;
  const account = one.fromAddress || one.toAddress;
  const creator = letters.get(one.createdOnChainId);
  const consumer = letters.get(one.consumedOnChainId);
  return h(
    "div.utxo",
    {},
    h(
      "div",
      {},
      quantity(asset.amount, asset.denomination, asset.symbol || asset.assetId, { full: true }),
      " ",
      one.staked && badge("staked", "warn"),
      one.rewardType && badge("reward", "good"),
      direction === "from" && creator && creator !== letter && badge(`from ${creator}`),
      direction === "to" && consumer && consumer !== letter && badge(`to ${consumer}`),
    ),
    account ? h("div.mono", {}, account) : owners(one.addresses, one.threshold),
    locked(one),
    direction === "from" ? origin(one, creator) : use(one, consumer),
  );
}

function locked(one) {
  const until = Math.max(Number(one.platformLocktime || one.locktime || 0), Number(one.stakeableLocktime || 0));
  return until ? h("div.quiet", {}, `locked until ${dateTime(until)}`) : null;
}

function origin(one, creator) {
  const txHash = one.txHash || one.creationTxHash;
  if (!txHash || !creator) return null;
  return h("div.quiet", {}, `output ${one.outputIndex} of `, txLink(creator, txHash));
}

function use(one, consumer) {
  if (!one.utxoId) return null;
  if (!one.consumingTxHash || !consumer) return h("div.quiet", {}, "not spent");
  return h("div.quiet", {}, "spent in ", txLink(consumer, one.consumingTxHash));
}
