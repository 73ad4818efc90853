// An ERC-20 token: details, price, holders and transfers.
import { h } from "../dom.js";
import { chainOf, data, maybe, path } from "../api.js";
import { chart } from "../chart.js";
import { tokenName, transferColumns } from "../columns.js";
import { money, whole } from "../format.js";
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
  later,
  list,
  quantity,
  tabs,
  to,
  txLink,
  value,
} from "../parts.js";

export async function render({ params, query, signal, remember }) {
  const chain = await chainOf(params.chain);
  const key = chain.chainId;
  const contract = await data(path`/v1/chains/${key}/addresses/${params.address}`, {}, signal);
  const isNft = ["ERC-721", "ERC-1155"].includes(contract.ercType);
  const base = path`/v1/chains/${key}/tokens/${contract.address}`;
  const prices = maybe(data(`${base}/prices`, { pageSize: 100 }, signal)).catch(() => null);
  const made = contract.deploymentDetails;
  const content = h(
    "div.page",
    {},
    crumbs(
      ["Home", "#/"],
      [chain.chainName || key, to.chain(key)],
      ["Tokens", `${to.chain(key)}/tokens`],
      [tokenName(contract)],
    ),
    header(
      "Token",
      clip(contract.name || contract.symbol || "Unnamed token", 120),
      badge(contract.ercType),
      contract.symbol && badge(clip(contract.symbol, 24)),
      isNft && h("a", { href: to.collection(key, contract.address) }, "Collection"),
    ),
    card(
      "Details",
      facts([
        ["Address", id(contract.address, { full: true, what: "address", href: to.address(key, contract.address) })],
        contract.decimals !== undefined && ["Decimals", String(contract.decimals)],
        [
          "Price",
          later(
            async () => {
              const reply = await prices;
              return reply?.currentPrice
                ? h("span", {}, money({ currencyCode: reply.currencyCode, value: reply.currentPrice }))
                : h("span.quiet", {}, "no price known");
            },
            { rows: 1, hideEmpty: false },
          ),
        ],
        made && ["Deployed by", address(key, made.deployerAddress, { full: true })],
        made && ["Deployed in", txLink(key, made.txHash, { full: true })],
      ]),
    ),
    later(async () => {
      const reply = await prices;
      if (!reply || reply.prices.length < 2) return null;
      const points = reply.prices.map((one) => ({ t: one.timestamp, v: Number(one.value) })).reverse();
      return card(
        "",
        chart({
          title: "Price by day",
          unit: reply.currencyCode.toUpperCase(),
          interval: "day",
          fromZero: false,
          series: [{ name: "Price", points }],
        }),
      );
    }),
    tabs(
      "Holders and transfers",
      [
        { key: "transfers", name: "Transfers", load: () => transferList(base, key, signal) },
        { key: "holders", name: "Holders", load: () => holderList(base, key, contract, signal) },
      ],
      query.get("tab"),
      (tab) => remember({ tab: tab === "transfers" ? "" : tab }),
    ),
  );
  return { title: tokenName(contract), content };
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
