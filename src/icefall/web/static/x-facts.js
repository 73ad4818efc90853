// What the chain itself says of a transaction or an asset of X: its block, time, fee and the owners of its inputs. Nothing
// here is the time at which this installation read it.
import { h } from "./dom.js";
import { path } from "./api.js";
import { onNetwork } from "./network.js";
import { exactTime, id, quantity, time, to } from "./parts.js";
import { whole } from "./format.js";

// null where this installation does not list the chain, or has not listed it yet.
const known = (target, signal) => onNetwork(target, {}, signal).catch((error) => {
  if ([404, 503].includes(error.status)) return null;
  throw error;
});

export const listedTx = (txHash, signal) => known(path`/blockchains/x-chain/transactions/${txHash}`, signal);
const listedAsset = (asset, signal) => known(path`/blockchains/x-chain/assets/${asset}`, signal);

// What was consumed and not made again, by asset. Pure.
export function fees(tx) {
  const left = new Map();
  const add = (all, sign) => {
    for (const one of all || []) {
      const before = left.get(one.assetId) || { ...one, amount: 0n };
      left.set(one.assetId, { ...before, amount: before.amount + sign * BigInt(one.amount || 0) });
    }
  };
  add(tx.amountUnlocked, 1n);
  add(tx.amountCreated, -1n);
  return [...left.values()].filter((one) => one.amount > 0n);
}

// Rows of the details of a transaction.
export function chainFacts(tx) {
  if (!tx) return [];
  const height = tx.blockHeight ?? tx.blockNumber;
  return [
    ["Status", "Accepted"],
    height !== undefined && ["Block", h("a.number", { href: to.x("block", height) }, whole(height))],
    tx.blockHash && ["Block ID", id(tx.blockHash, { full: true, what: "block ID", href: to.x("block", tx.blockHash) })],
    ["Time", exactTime(tx.timestamp)],
    ["Fee", fees(tx).map((one) => h("div", {}, quantity(String(one.amount), one.denomination, one.symbol, { full: true })))],
  ];
}

// The owners of an input: the addresses of the output that it spends.
export function inputOwners(tx, input) {
  const spent = tx?.consumedUtxos.find(
    (one) => one.creationTxHash === input.txID && Number(one.outputIndex) === Number(input.outputIndex),
  );
  const named = (address) => (/^[XPC]-/.test(address) ? address : `X-${address}`);
  return (spent?.addresses || []).map((one) =>
    h("div", {}, id(named(one), { href: to.x("address", named(one)), what: "address", head: 16, tail: 6 })),
  );
}

// The time of an asset, which follows when it is known.
export function createdAt(asset, signal) {
  const box = h("span", {}, "–");
  listedAsset(asset, signal).then(
    (found) => found?.createdAtTimestamp && box.replaceChildren(time(found.createdAtTimestamp)),
    () => {},
  );
  return box;
}
