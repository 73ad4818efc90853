// Columns of the tables that several pages show.
import { h, icon } from "./dom.js";
import { percent, whole } from "./format.js";
import { address, badge, blockLink, clip, id, method, quantity, status, time, to, txLink } from "./parts.js";

const age = { name: "Age", cell: (row) => time(row.blockTimestamp) };
const block = (chain) => ({
  name: "Block",
  minor: true,
  cell: (row) => blockLink(row.chainId || chain, row.blockNumber),
});
const hash = (chain, of) => ({
  name: "Transaction",
  cell: (row) => [
    txLink(row.chainId || chain, row.txHash),
    of && h("span.phone-only", {}, direction(row, of)),
    row.txStatus === "0" && h("span.badge.bad.phone-only", {}, "failed"),
  ],
});
const from = (chain) => ({ name: "From", minor: true, cell: (row) => address(row.chainId || chain, row.from) });
const recipient = (chain) => ({ name: "To", minor: true, cell: (row) => address(row.chainId || chain, row.to) });

export const chainColumn = (names) => ({
  name: "Chain",
  minor: true,
  cell: (row) => h("a", { href: to.chain(row.chainId) }, names.get(row.chainId) || row.chainId),
});

export const blockColumns = () => [
  { name: "Block", cell: (row) => blockLink(row.chainId, row.blockNumber) },
  age,
  { name: "Transactions", right: true, cell: (row) => h("span.number", {}, whole(row.txCount)) },
  {
    name: "Gas used",
    right: true,
    minor: true,
    cell: (row) =>
      h(
        "span.number",
        { title: `${whole(row.gasUsed)} of ${whole(row.gasLimit)}` },
        `${whole(row.gasUsed)} (${percent(row.gasUsed, row.gasLimit)})`,
      ),
  },
  {
    name: "Hash",
    minor: true,
    cell: (row) => id(row.blockHash, { href: to.block(row.chainId, row.blockHash), what: "block hash" }),
  },
];

// `of`: the address whose page this is, to show the direction. `tokenOf`: the native token of a chain ID.
export function txColumns({ chain, tokenOf, of }) {
  const native = (row) => tokenOf(row.chainId || chain) || { decimals: 18, symbol: "" };
  return [
    hash(chain, of),
    { name: "Method", minor: true, cell: (row) => method(row.method) },
    { name: "Status", minor: true, cell: (row) => status(row.txStatus) },
    block(chain),
    age,
    from(chain),
    of && { name: "", minor: true, cell: (row) => direction(row, of) },
    recipient(chain),
    { name: "Value", right: true, cell: (row) => quantity(row.value, native(row).decimals, native(row).symbol) },
  ].filter(Boolean);
}

export function direction(row, of) {
  const mine = (party) => party?.address?.toLowerCase() === of.toLowerCase();
  if (mine(row.from) && mine(row.to)) return badge("self");
  return mine(row.from) ? badge("out", "out") : badge("in", "in");
}

export function tokenName(token) {
  return clip(token.symbol || token.name || "Unnamed token", 28);
}

// Sender and recipient, one above the other, where there is no room for two columns.
const parties = (chain) => ({
  name: "From and to",
  phone: true,
  cell: (row) => h("span.parties", {}, address(chain, row.from), address(chain, row.to)),
});

// Token transfers of any standard.
export function transferColumns({ chain, of, token = true, linked = true }) {
  return [
    linked && hash(chain, of),
    linked && age,
    !linked && parties(chain),
    from(chain),
    of
      ? { name: "", minor: true, cell: (row) => direction(row, of) }
      : { name: "", minor: true, cell: () => icon("arrow") },
    recipient(chain),
    { name: "Amount", right: true, cell: (row) => transferred(row, chain) },
    token && { name: "Token", cell: (row) => tokenOfTransfer(row, chain) },
  ].filter(Boolean);
}

function transferred(row, chain) {
  if (row.erc20Token) return quantity(row.value, row.erc20Token.decimals);
  const token = row.erc721Token || row.erc1155Token;
  const number = h(
    "a",
    { href: to.nft(chain, token.address, token.tokenId), title: token.tokenId },
    `#${clip(token.tokenId, 14)}`,
  );
  return row.erc1155Token ? h("span.number", {}, whole(row.value), " × ", number) : number;
}

function tokenOfTransfer(row, chain) {
  if (row.erc20Token)
    return h(
      "a",
      { href: to.token(chain, row.erc20Token.address), title: row.erc20Token.address },
      tokenName(row.erc20Token),
    );
  const token = row.erc721Token || row.erc1155Token;
  return h(
    "a",
    { href: to.collection(chain, token.address), title: token.address },
    token.name || token.symbol ? tokenName(token) : `${token.address.slice(0, 8)}…`,
  );
}

export function internalColumns({ chain, of, native, linked = true }) {
  return [
    linked && hash(chain, of),
    linked && age,
    !linked && parties(chain),
    { name: "Type", cell: (row) => [badge(row.internalTxType), row.isReverted && badge("reverted", "bad")] },
    from(chain),
    of && { name: "", minor: true, cell: (row) => direction(row, of) },
    recipient(chain),
    { name: "Gas used", right: true, minor: true, cell: (row) => h("span.number", {}, whole(row.gasUsed)) },
    { name: "Value", right: true, cell: (row) => quantity(row.value, native.decimals, native.symbol) },
  ].filter(Boolean);
}
