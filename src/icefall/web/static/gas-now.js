// What gas costs now: of the newest transactions, the price that a tenth, half and nine tenths of them did not exceed.
import { h } from "./dom.js";
import { data, path } from "./api.js";
import { gasPrice } from "./format.js";
import { card, figures } from "./parts.js";

const LOOKED_AT = 100; // transactions
const SPEEDS = [
  ["Slow", 0.1],
  ["Usual", 0.5],
  ["Fast", 0.9],
];

// The price of each speed in wei, or null where there are too few transactions to say. Pure.
export function speeds(prices) {
  if (prices.length < 3) return null;
  const sorted = prices.map(BigInt).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return SPEEDS.map(([name, part]) => [name, sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]]);
}

// Three places after the point: no price is chosen by its wei.
function rounded(wei) {
  if (wei < 1_000_000n) return gasPrice(String(wei));
  const gwei = Number(wei / 1_000_000n) / 1000;
  return `${gwei.toLocaleString("en", { maximumFractionDigits: 3 })} gwei`;
}

export async function gasNow(chain, signal) {
  const [{ transactions }, { blocks }] = await Promise.all([
    data(path`/v1/chains/${chain}/transactions`, { pageSize: LOOKED_AT }, signal),
    data(path`/v1/chains/${chain}/blocks`, { pageSize: 1 }, signal),
  ]);
  const found = speeds(transactions.map((tx) => tx.gasPrice));
  if (!found) return null;
  const range = `from block ${transactions.at(-1).blockNumber} to ${transactions[0].blockNumber}`;
  return card(
    "Gas price",
    figures([
      ...found.map(([name, wei]) => [name, h("span", { title: gasPrice(String(wei)) }, rounded(wei))]),
      blocks.length && ["Base fee", h("span", { title: gasPrice(blocks[0].baseFee) }, rounded(BigInt(blocks[0].baseFee)))],
    ]),
    h("p.note.below-figures", {}, `Of the newest ${transactions.length} transactions, ${range}.`),
  );
}
