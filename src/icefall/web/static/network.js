// The primary network as the interface of chain data shows it: its name, links, and the columns that its pages share.
import { h } from "./dom.js";
import { data, node, path } from "./api.js";
import { dateTime, exact, percent, span, whole } from "./format.js";
import { badge, id, list, quantity, time, to } from "./parts.js";

export const PRIMARY = "11111111111111111111111111111111LpoYY"; // the primary network, and the P-Chain in it
const PAGE = 25;

// What a read returns is kept; where it fails, the next one reads again.
function once(read) {
  let kept = null;
  return () =>
    (kept ??= read().catch((error) => {
      kept = null;
      throw error;
    }));
}

export const networkName = once(async () => (await node("/ext/info", "info.getNetworkName")).networkName);

// Letter of a chain of the primary network by its ID.
export const chainLetters = once(async () => {
  const ids = await Promise.all(["X", "C"].map((alias) => node("/ext/info", "info.getBlockchainID", { alias })));
  return new Map([[PRIMARY, "P"], ...ids.map((one, at) => [one.blockchainID, "XC"[at]])]);
});

export async function onNetwork(target, query, signal) {
  return data(path`/v1/networks/${await networkName()}` + target, query, signal);
}

const place = (kind) => (key) => `#/network/${kind}/${encodeURIComponent(key)}`;
export const toNetwork = {
  validator: place("validator"),
  subnet: place("subnet"),
  address: (address) => place("address")(address.replace(/^[XPC]-/, "")),
  tx: (letter, txHash) => `${place("tx")(letter)}/${encodeURIComponent(txHash)}`,
};

// -- what is shown of one thing ------------------------------------------------------------------------------------

export const avax = (amount, options) => quantity(amount, 9, "AVAX", options);

// Stake of the primary network is AVAX; in a subnet it is only a weight.
export const staked = (row, options) =>
  row.subnetId === PRIMARY ? avax(row.amountStaked, options) : h("span.number", {}, whole(row.amountStaked));

// Where only the size matters: without what is less than one AVAX.
export function wholeAvax(amount) {
  const text = whole(BigInt(amount) / 1_000_000_000n);
  return h("span.number", { title: `${exact(amount, 9)} AVAX` }, text, h("span.unit", {}, " AVAX"));
}

const maybeAvax = (amount) => (amount === undefined ? "–" : avax(amount));

export const assetAmounts = (all) =>
  all.map((one) => h("div", {}, quantity(one.amount, one.denomination, one.symbol || one.assetId, { full: true })));

export const nodeLink = (nodeId, options = {}) =>
  id(nodeId, { href: toNetwork.validator(nodeId), what: "node ID", head: 13, ...options });

export function subnetLink(subnetId, options = {}) {
  if (subnetId === PRIMARY) return h("a", { href: "#/network" }, "Primary network");
  return id(subnetId, { href: toNetwork.subnet(subnetId), what: "subnet ID", ...options });
}

export const blockLink = (letter, height) => {
  const shown = whole(height);
  if (letter === "X") return h("a", { href: to.x("block", height) }, shown);
  return Number(height) ? h("a", { href: to.container(letter, BigInt(height) - 1n) }, shown) : shown;
};

// What the genesis made is of no transaction.
export function txLink(letter, txHash, options = {}) {
  if (txHash === PRIMARY) return "Genesis";
  return id(txHash, { href: toNetwork.tx(letter, txHash), what: "transaction ID", ...options });
}

export const addressLink = (address, options = {}) =>
  id(address, { href: toNetwork.address(address), what: "address", head: 12, tail: 6, ...options });

export const owners = (addresses, threshold) => [
  addresses.map((one) => h("div", {}, addressLink(one))),
  addresses.length > 1 ? h("div.quiet", {}, `${threshold} of ${addresses.length} must sign`) : null,
];

const KINDS = { active: "good", pending: "warn", removed: "bad" };
export const stakeStatus = (text) => badge(text, KINDS[text]);

export const fee = (text) => (text === undefined ? "–" : `${Number(text).toLocaleString("en")}%`);

export function timeLeft(row) {
  const left = row.endTimestamp - Date.now() / 1000;
  return h("span", { title: dateTime(row.endTimestamp) }, left > 0 ? span(left) : "ended");
}

// -- lists ---------------------------------------------------------------------------------------------------------

// A list of the interface, which is in the field `key` of its answer.
export function networkList({ target, key, query = {}, signal, ...shown }) {
  return list({
    ...shown,
    load: async (pageToken) => {
      const reply = await onNetwork(target, { pageSize: PAGE, ...query, pageToken }, signal);
      return { rows: reply[key], next: reply.nextPageToken };
    },
  });
}

const period = {
  name: "Until",
  on: "aside",
  right: true,
  cell: (row) => time(row.removeTimestamp || row.endTimestamp),
};

export const validatorColumns = () => [
  { name: "Validator", on: "lead", cell: (row) => nodeLink(row.nodeId) },
  { name: "Status", on: "below", cell: (row) => stakeStatus(row.validationStatus) },
  { name: "Stake", on: "side", right: true, cell: staked },
  { name: "Share", right: true, cell: (row) => percent(row.stakePercentage || 0, 100) },
  { name: "Delegated", right: true, cell: (row) => maybeAvax(row.amountDelegated) },
  { name: "Capacity", right: true, cell: (row) => maybeAvax(row.delegationCapacity) },
  { name: "Fee", right: true, cell: (row) => fee(row.delegationFee) },
  { name: "Time left", on: "aside", right: true, cell: timeLeft },
  {
    name: "Fee and capacity",
    phone: true,
    on: "rest",
    cell: (row) => [`fee ${fee(row.delegationFee)}, capacity `, maybeAvax(row.delegationCapacity)],
  },
];

// The validation periods of one node, in all subnets.
export const periodColumns = () => [
  { name: "Transaction", on: "lead", cell: (row) => txLink("P", row.txHash) },
  { name: "Status", on: "below", cell: (row) => stakeStatus(row.validationStatus) },
  { name: "Subnet", cell: (row) => subnetLink(row.subnetId) },
  { name: "Stake", on: "side", right: true, cell: staked },
  { name: "Fee", right: true, cell: (row) => fee(row.delegationFee) },
  { name: "Delegators", right: true, cell: (row) => whole(row.delegatorCount) },
  {
    name: "Reward",
    right: true,
    cell: (row) => {
      const rewards = row.rewards || row.potentialRewards;
      return rewards && row.subnetId === PRIMARY ? avax(rewards.validationRewardAmount) : "–";
    },
  },
  { name: "From", right: true, cell: (row) => time(row.startTimestamp) },
  period,
];

// `of`: without the node, on its own page.
export const delegatorColumns = ({ of } = {}) =>
  [
    { name: "Transaction", on: "lead", cell: (row) => txLink("P", row.txHash) },
    { name: "Status", on: "below", cell: (row) => stakeStatus(row.delegationStatus) },
    !of && { name: "Validator", cell: (row) => nodeLink(row.nodeId) },
    { name: "Amount", on: "side", right: true, cell: (row) => avax(row.amountDelegated) },
    { name: "Fee", right: true, cell: (row) => fee(row.delegationFee) },
    { name: "Reward", right: true, cell: (row) => avax(row.netReward ?? row.estimatedNetReward ?? "0") },
    { name: "Paid to", cell: (row) => row.rewardAddresses.slice(0, 1).map((one) => addressLink(one)) },
    period,
  ].filter(Boolean);

export const l1ValidatorColumns = ({ of } = {}) =>
  [
    { name: "Validation", on: "lead", cell: (row) => id(row.validationId, { what: "validation ID" }) },
    { name: "Node", on: "below", cell: (row) => nodeLink(row.nodeId) },
    !of && { name: "Subnet", cell: (row) => subnetLink(row.subnetId) },
    { name: "Weight", right: true, cell: (row) => h("span.number", {}, whole(row.weight)) },
    {
      name: "Balance",
      on: "side",
      right: true,
      cell: (row) => (Number(row.remainingBalance) ? avax(row.remainingBalance) : badge("inactive", "bad")),
    },
    { name: "Since", on: "aside", right: true, cell: (row) => time(row.creationTimestamp) },
  ].filter(Boolean);

export const txColumns = (letter) => [
  { name: "Transaction", on: "lead", cell: (row) => txLink(letter, row.txHash, { head: 10 }) },
  { name: "Type", on: "below", cell: (row) => badge(row.txType.replace(/Tx$/, ""), "method") },
  { name: "Block", cell: (row) => blockLink(letter, row.blockNumber ?? row.blockHeight ?? 0) },
  { name: "Inputs", right: true, cell: (row) => whole((row.consumedUtxos || row.evmInputs || []).length) },
  { name: "Outputs", right: true, cell: (row) => whole((row.emittedUtxos || row.evmOutputs || []).length) },
  { name: "Time", on: "aside", right: true, cell: (row) => time(row.blockTimestamp ?? row.timestamp) },
];
