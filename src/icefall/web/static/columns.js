// Columns of the tables that several pages show. On a phone a row has two lines: see `table`.
import { h, icon } from "./dom.js";
import { percent, short, whole } from "./format.js";
import { address, badge, blockLink, clip, id, method, quantity, time, to, txLink } from "./parts.js";

// The token standards, as the API names them: the beginning of its fields, and the name shown. Those with IDs are NFTs.
export const STANDARDS = [
  { key: "erc20", name: "ERC-20", hasIds: false },
  { key: "erc721", name: "ERC-721", hasIds: true },
  { key: "erc1155", name: "ERC-1155", hasIds: true },
];

const age = { name: "Time", on: "aside", cell: (row) => time(row.blockTimestamp) };
const block = (chain) => ({ name: "Block", cell: (row) => blockLink(row.chainId || chain, row.blockNumber) });

// `more`: what a phone shows next to it.
const hash = (chain, more = () => null) => ({
  name: "Transaction",
  on: "lead",
  cell: (row) => [txLink(row.chainId || chain, row.txHash), failedBadge(row), h("span.phone-only", {}, more(row))],
});

const isSame = (party, of) => party?.address?.toLowerCase() === of?.toLowerCase();

export const isSent = (row, of) => isSame(row.from, of);
export const isReceived = (row, of) => isSame(row.to, of);
const ZERO = `0x${"0".repeat(40)}`;

// Tokens that come from the zero address were minted, and those sent to it were burned.
function tokenParty(chain, given, of, what) {
  if (given?.address !== ZERO || isSame(given, of)) return party(chain, given, of);
  return h("a.badge", { href: to.address(chain, ZERO), title: "the zero address" }, what);
}

// The address whose page this is needs no link to it.
function party(chain, given, of) {
  if (!of || !isSame(given, of)) return address(chain, given);
  return h("span.mono.quiet", { title: given.address }, short(given.address));
}

const from = (chain, of) => ({ name: "From", cell: (row) => party(row.chainId || chain, row.from, of) });
const recipient = (chain, of) => ({ name: "To", cell: (row) => party(row.chainId || chain, row.to, of) });

export function direction(row, of) {
  if (isSame(row.from, of) && isSame(row.to, of)) return badge("self");
  return isSame(row.from, of) ? badge("out", "out") : badge("in", "in");
}

const between = (of) => ({ name: "", cell: (row) => (of ? direction(row, of) : icon("arrow")) });

// Sender and recipient on one line, where there is no room for two columns; on the page of one of them the other.
function way(row, chain, of, cell = address) {
  const key = row.chainId || chain;
  const sender = () => cell(key, row.from, undefined, "mint");
  const receiver = () => cell(key, row.to, undefined, "burn");
  if (!of) return h("span.way", {}, sender(), icon("arrow"), receiver());
  return h("span.way", {}, direction(row, of), isSame(row.from, of) ? receiver() : sender());
}

const ways = (chain, of, on = "below") => ({
  name: "From and to",
  phone: true,
  on,
  cell: (row) => way(row, chain, of),
});

export const blockColumns = () => [
  { name: "Block", on: "lead", cell: (row) => blockLink(row.chainId, row.blockNumber) },
  { ...age },
  {
    name: "Hash",
    cell: (row) => id(row.blockHash, { href: to.block(row.chainId, row.blockHash), what: "block hash" }),
  },
  {
    name: "Transactions",
    on: "side",
    right: true,
    cell: (row) => [
      h("span.number", {}, whole(row.txCount)),
      h("span.phone-only.quiet", {}, Number(row.txCount) === 1 ? "transaction" : "transactions"),
    ],
  },
  {
    name: "Gas used",
    on: "below",
    right: true,
    cell: (row) =>
      h(
        "span.number",
        { title: `${whole(row.gasUsed)} of ${whole(row.gasLimit)}` },
        whole(row.gasUsed),
        h("span.phone-only", {}, "gas"),
        h("span.quiet", {}, ` (${percent(row.gasUsed, row.gasLimit)})`),
      ),
  },
];

// Of one chain; blocks that an older release indexed are without them.
export const blockDetailColumns = ({ decimals, symbol }) => [
  {
    name: "Size",
    right: true,
    cell: (row) => (row.size === undefined ? unknown() : h("span.number", {}, whole(row.size), h("span.unit", {}, " B"))),
  },
  {
    name: "Fee recipient",
    cell: (row) => (row.feeRecipient ? address(row.chainId, row.feeRecipient) : unknown()),
  },
  {
    name: "Burnt fees",
    right: true,
    cell: (row) => (row.feesBurned === undefined ? unknown() : quantity(row.feesBurned, decimals, symbol)),
  },
];

const unknown = () => h("span.quiet", { title: "not known: an older release indexed this block" }, "–");

export const failedBadge = (row) => (row.txStatus === "0" ? badge("Failed", "bad") : null);

// `of`: the address whose page this is, to show the direction. `tokenOf`: the native token of a chain ID.
export function txColumns({ chain, tokenOf, of }) {
  const native = (row) => tokenOf(row.chainId || chain) || { decimals: 18, symbol: "" };
  return [
    hash(chain, (row) => method(row.method)),
    { name: "Method", cell: (row) => method(row.method) },
    block(chain),
    age,
    from(chain, of),
    between(of),
    recipient(chain, of),
    ways(chain, of),
    {
      name: "Value",
      on: "side",
      right: true,
      cell: (row) => quantity(row.value, native(row).decimals, native(row).symbol),
    },
  ];
}

export function tokenName(token) {
  return clip(token.symbol || token.name || "Unnamed token", 28);
}

// Token transfers of any standard. `linked`: of many transactions; those of one are exact.
export function transferColumns({ chain, of, token = true, linked = true }) {
  return [
    linked && hash(chain),
    linked && age,
    { name: "From", cell: (row) => tokenParty(row.chainId || chain, row.from, of, "mint") },
    between(of),
    { name: "To", cell: (row) => tokenParty(row.chainId || chain, row.to, of, "burn") },
    { ...ways(chain, of, linked ? "below" : "lead"), cell: (row) => way(row, chain, of, tokenParty) },
    {
      name: "Amount",
      on: "side",
      right: true,
      cell: (row) => [transferred(row, chain, !linked), token && h("span.phone-only", {}, tokenOfTransfer(row, chain))],
    },
    token && { name: "Token", cell: (row) => tokenOfTransfer(row, chain) },
  ].filter(Boolean);
}

function transferred(row, chain, full) {
  if (row.erc20Token) return quantity(row.value, row.erc20Token.decimals, "", { full });
  const token = movedToken(row);
  const number = h(
    "a",
    { href: to.nft(chain, token.address, token.tokenId), title: token.tokenId },
    `#${clip(token.tokenId, 14)}`,
  );
  if (row.lastTokenId) return rangeOf(number, token, row.lastTokenId, chain);
  return row.value === undefined ? number : h("span.number", {}, whole(row.value), " × ", number);
}

// Whether an amount was moved, and not an NFT.
export const isAmount = (row) => Boolean(row.erc20Token);

export function movedToken(row) {
  return row[`${STANDARDS.find(({ key }) => row[`${key}Token`]).key}Token`];
}

// All NFTs from a first to a last ID, moved by one log.
function rangeOf(first, token, lastId, chain) {
  const last = h("a", { href: to.nft(chain, token.address, lastId), title: lastId }, `#${clip(lastId, 14)}`);
  return h("span", {}, first, " to ", last);
}

function tokenOfTransfer(row, chain) {
  const token = movedToken(row);
  const href = (row.erc20Token ? to.token : to.collection)(chain, token.address);
  const isNamed = token.name || token.symbol;
  return h(isNamed ? "a" : "a.mono", { href, title: token.address }, isNamed ? tokenName(token) : short(token.address));
}

export function internalColumns({ chain, of, native, linked = true }) {
  const type = (row) => [badge(row.internalTxType), row.isReverted && badge("reverted", "bad")];
  return [
    linked && hash(chain, type),
    linked && age,
    { name: "Type", on: linked ? undefined : "below", cell: type },
    from(chain, of),
    between(of),
    recipient(chain, of),
    ways(chain, of, linked ? "below" : "lead"),
    { name: "Gas used", right: true, cell: (row) => h("span.number", {}, whole(row.gasUsed)) },
    {
      name: "Value",
      on: "side",
      right: true,
      cell: (row) => quantity(row.value, native.decimals, native.symbol, { full: !linked }),
    },
  ].filter(Boolean);
}
