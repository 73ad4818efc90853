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
  header,
  id,
  list,
  quantity,
  to,
  txLink,
  value,
} from "./parts.js";

// The contract, and where its lists are: {key: chain ID, contract, base}.
export async function tokenOf(params, signal) {
  const chain = await chainOf(params.chain);
  const key = chain.chainId;
  const contract = await data(path`/v1/chains/${key}/addresses/${params.address}`, {}, signal);
  return { chain, key, contract, base: path`/v1/chains/${key}/tokens/${contract.address}` };
}

// `more`: rows of the details, `links`: behind the badges.
export function tokenHead({ chain, key, contract }, kind, { more = [], links = [] } = {}) {
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
      clip(contract.name || contract.symbol || "Unnamed token", 120),
      badge(contract.ercType),
      contract.symbol && badge(clip(contract.symbol, 24)),
      ...links,
    ),
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

export async function holderList(base, chain, contract, signal) {
  let first;
  const rows = await list({
    label: "Holders",
    none: "No one holds it.",
    columns: [
      { name: "Holder", cell: (row) => address(chain, row.address) },
      {
        name: contract.decimals === undefined ? "Tokens" : "Balance",
        right: true,
        cell: (row) => quantity(row.balance, contract.decimals || 0, contract.symbol),
      },
      { name: "Value", right: true, minor: true, cell: (row) => value(row.balanceValue) },
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
