// What the pages of a token and of an NFT collection begin with, and the lists that both have.
import { h } from "./dom.js";
import { chainOf, data, maybe, path } from "./api.js";
import { tokenName, transferColumns } from "./columns.js";
import { whole } from "./format.js";
import {
  address,
  badge,
  card,
  clip,
  crumbs,
  empty,
  facts,
  figures,
  header,
  id,
  list,
  quantity,
  to,
  txLink,
  value,
} from "./parts.js";
import { namesakeWarning, tokenPicture } from "./token-mark.js";

// The contract, its totals, and where its lists are: {key: chain ID, contract, totals, base}.
export async function tokenOf(params, signal) {
  const chain = await chainOf(params.chain);
  const key = chain.chainId;
  const contract = await data(path`/v1/chains/${key}/addresses/${params.address}`, {}, signal);
  const base = path`/v1/chains/${key}/tokens/${contract.address}`;
  const totals = await maybe(data(base, {}, signal)); // null where it has moved no tokens yet
  return { chain, key, contract, base, totals };
}

// `more`: rows of the details, `links`: behind the badges.
export function tokenHead({ chain, key, contract, totals }, kind, { more = [], links = [] } = {}) {
  const made = contract.deploymentDetails;
  return [
    crumbs(
      ["Home", "#/"],
      [chain.chainName || key, to.chain(key)],
      ["Tokens", `${to.chain(key)}/tokens`],
      [tokenName(contract)],
    ),
    header(
      kind,
      [tokenPicture(key, { logoUri: totals?.logoUri, address: contract.address }, 22), " ", clip(contract.name || contract.symbol || "Unnamed token", 120)],
      badge(contract.ercType),
      contract.symbol && badge(clip(contract.symbol, 24)),
      ...links,
    ),
    namesakeWarning(key, totals),
    totals && card("", totalFigures(contract, totals)),
    card(
      "Details",
      facts([
        ["Address", id(contract.address, { full: true, what: "address", href: to.address(key, contract.address) })],
        ...more,
        made && ["Deployed by", address(key, made.deployerAddress, { full: true })],
        made && ["Deployed in", txLink(key, made.txHash, { full: true })],
      ]),
    ),
  ];
}

function totalFigures(contract, totals) {
  const isAmount = contract.ercType === "ERC-20";
  const supply =
    isAmount && totals.totalSupply !== undefined
      ? quantity(totals.totalSupply, contract.decimals || 0, contract.symbol)
      : whole(totals.totalSupply);
  return figures([
    [isAmount ? "Total supply" : "NFTs", supply],
    ["Holders", whole(totals.holders)],
    ["Transfers", whole(totals.transfers)],
    isAmount && ["Price", value(totals.price)],
    isAmount && ["Market value", value(totals.marketValue)],
  ]);
}

export function transferList(base, chain, signal) {
  return list({
    label: "Transfers",
    columns: transferColumns({ chain, token: false }),
    none: "It has not been transferred.",
    load: async (pageToken) => {
      const page = await data(`${base}/transfers`, { pageSize: 25, pageToken }, signal);
      return { rows: page.transfers, next: page.nextPageToken };
    },
  });
}

// `supply`: what the share of each holder is a part of; absent where it is not known.
export async function holderList(base, chain, contract, signal, supply) {
  let first;
  const rows = await list({
    label: "Holders",
    none: "No one holds it.",
    columns: [
      { name: "Holder", on: "lead", cell: (row) => address(chain, row.address) },
      {
        name: contract.decimals === undefined ? "Tokens" : "Balance",
        on: "side",
        right: true,
        cell: (row) => quantity(row.balance, contract.decimals || 0, contract.symbol),
      },
      { name: "Share", on: "below", right: true, cell: (row) => share(row.balance, supply) },
      { name: "Value", on: "aside", right: true, cell: (row) => value(row.balanceValue) },
    ],
    load: async (pageToken) => {
      const page = await maybe(data(`${base}/holders`, { pageSize: 25, pageToken }, signal));
      first ??= page;
      return page && { rows: page.holders, next: page.nextPageToken };
    },
  });
  if (!first) return empty("The holders are not available here.");
  return [
    h(
      "p.quiet",
      {},
      `${whole(first.totalHolders)} holders after block ${whole(first.countedToBlock)}, the largest first`,
    ),
    rows,
  ];
}

// A part of the supply, to a hundredth of a percent: both may be larger than a number holds.
export function share(balance, supply) {
  if (!supply || BigInt(supply) === 0n) return "–";
  const parts = (BigInt(balance) * 10_000n) / BigInt(supply);
  return h("span.number", {}, parts === 0n && BigInt(balance) ? "<0.01%" : `${Number(parts) / 100}%`);
}
