// Call data, events and errors as the interface decodes them: names, types and values, and the raw data a click away.
import { h } from "./dom.js";
import { data, path } from "./api.js";
import { whole } from "./format.js";
import { address, clip, quantity, table, to } from "./parts.js";

const VALUE_MAX = 2000; // characters of one value
const LOOKUPS_MAX = 12; // tokens of a page whose decimals are asked for

// Where an amount of the token itself is, by position. Only these are scaled: the unit of other numbers is unknown.
const AMOUNTS = {
  "Transfer(address,address,uint256)": [2],
  "Approval(address,address,uint256)": [2],
  "Deposit(address,uint256)": [1],
  "Withdrawal(address,uint256)": [1],
  "transfer(address,uint256)": [1],
  "transferFrom(address,address,uint256)": [2],
  "approve(address,uint256)": [1],
  "increaseAllowance(address,uint256)": [1],
  "decreaseAllowance(address,uint256)": [1],
  "mint(address,uint256)": [1],
  "burn(uint256)": [0],
  "burn(address,uint256)": [1],
  "burnFrom(address,uint256)": [1],
  "withdraw(uint256)": [0],
  "ERC20InsufficientBalance(address,uint256,uint256)": [1, 2],
  "ERC20InsufficientAllowance(address,uint256,uint256)": [1, 2],
};

export const hasAmount = (decoded) => Object.hasOwn(AMOUNTS, decoded?.signature ?? "");

// `decoded`: {signature, parameters}; `token`: what the contract is, where it is a token with decimals.
export function decodedTable(decoded, { chain, token }) {
  if (!decoded.parameters.length) return h("p.quiet", {}, "Without values.");
  const isAmount = (row) => token?.decimals !== undefined && !row.isIndexed && (AMOUNTS[decoded.signature] || []).includes(row.index);
  return table(
    "Values",
    [
      { name: "Name", on: "lead", cell: (row) => h("span.break", {}, clip(row.name, 256)) },
      { name: "Type", on: "side", cell: (row) => h("code.break", {}, clip(row.type, 120)) },
      { name: "Value", wide: true, on: "rest", cell: (row) => (isAmount(row) ? scaled(row, chain, token) : valueShown(row, chain)) },
    ],
    decoded.parameters.map((one, index) => ({ ...one, index })),
  ).element;
}

function scaled({ value }, chain, token) {
  const name = token.symbol || token.name;
  return h(
    "span",
    {},
    quantity(value, token.decimals, "", { full: true }),
    " ",
    name && h("a.in-text", { href: to.token(chain, token.address), title: token.address }, clip(name, 24)),
  );
}

export function valueShown({ type, value, isHash }, chain) {
  if (isHash) return [h("span.mono", {}, value), h("span.quiet", {}, " (only its hash is in the log)")];
  if (type === "address") return address(chain, value, { full: true });
  if (type === "string") return h("span.said", {}, clip(value, VALUE_MAX));
  return h("span.mono", {}, clip(value, VALUE_MAX));
}

export function raw(what, content, isOpen = false) {
  return h("details.raw", { open: isOpen || null }, h("summary", {}, what), content);
}

export const rawData = (what, text, isOpen) =>
  raw(`${what}, ${whole((text.length - 2) / 2)} bytes`, h("pre.data", { tabindex: "0" }, clip(text, 20000)), isOpen);

export const nameOf = (decoded) => decoded.signature.slice(0, decoded.signature.indexOf("("));

// The error of a call. A text or a number of the compiler says it all; others have values.
export function errorShown(decoded, { chain, token }) {
  if (["Error", "Panic"].includes(nameOf(decoded))) return null;
  return h("div", {}, h("p", {}, h("code.break", {}, clip(decoded.signature, 300))), decodedTable(decoded, { chain, token }));
}

// Tokens by address: those that are known, and a few that are asked for.
export function tokenLookup(chain, known, signal) {
  const found = new Map(known.filter((one) => one?.address).map((one) => [one.address.toLowerCase(), one]));
  let asked = 0;
  return async (of) => {
    const key = String(of).toLowerCase();
    if (!found.has(key) && asked < LOOKUPS_MAX) {
      asked += 1;
      found.set(key, data(path`/v1/chains/${chain}/addresses/${of}`, {}, signal).catch(() => null));
    }
    return (await found.get(key)) || null;
  };
}
