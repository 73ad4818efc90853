// The tokens of a chain, in an order that the reader chooses.
import { h } from "../dom.js";
import { chainOf, data, path } from "../api.js";
import { whole } from "../format.js";
import { badge, blockLink, card, clip, crumbs, header, later, list, to, value } from "../parts.js";
import { tokenMark } from "../token-mark.js";

const ORDERS = [
  ["", "Newest"],
  ["holders", "Holders"],
  ["transfers", "Transfers"],
  ["marketValue", "Market value"],
  ["name", "Name"],
];

const NONE = {
  marketValue: "No token of this chain has a price. The operator gives prices with `prices` of the chain.",
  name: "No token of this chain has a name.",
};

export function tokenList(chain, signal, sortBy = "") {
  return list({
    label: sortBy ? `Tokens by ${sortBy === "marketValue" ? "market value" : sortBy}` : "Tokens",
    none: NONE[sortBy] || "No token has been seen on this chain yet.",
    columns: [
      { name: "Token", on: "lead", cell: (row) => tokenMark(chain, row) },
      { name: "Symbol", cell: (row) => clip(row.symbol || "–", 20) },
      { name: "Standard", on: "aside", cell: (row) => badge(row.ercType) },
      { name: "Holders", right: true, cell: (row) => h("span.number", {}, whole(row.holders)) },
      {
        name: "Transfers",
        on: "below",
        right: true,
        cell: (row) => [
          h("span.number", {}, whole(row.transfers)),
          h("span.phone-only", {}, `transfers, ${whole(row.holders)} holders`),
        ],
      },
      { name: "Price", right: true, cell: (row) => value(row.price) },
      { name: "Market value", on: "side", right: true, cell: (row) => value(row.marketValue) },
      { name: "First seen in block", right: true, cell: (row) => blockLink(chain, row.firstBlock) },
    ],
    load: async (pageToken) => {
      const reply = await data(path`/v1/chains/${chain}/tokens`, { pageSize: 25, pageToken, sortBy }, signal);
      return { rows: reply.tokens, next: reply.nextPageToken };
    },
  });
}

// The list with a choice of its order, which `remember` keeps in the address.
export function sortedTokens(chain, signal, chosen, remember) {
  const place = h("div.later");
  const links = h("div.choice", { role: "group", "aria-label": "Order of the tokens" });
  const show = (order) => {
    for (const button of links.children) button.setAttribute("aria-pressed", String(button.dataset.order === order));
    remember({ sort: order });
    place.replaceChildren(later(() => tokenList(chain, signal, order), { rows: 8, hideEmpty: false }));
  };
  links.append(
    ...ORDERS.map(([order, name]) =>
      h("button", { type: "button", "data-order": order, onclick: () => show(order) }, name),
    ),
  );
  show(ORDERS.some(([order]) => order === chosen) ? chosen : "");
  return h("div.list", {}, h("div.inline", {}, h("span.quiet", {}, "Sorted by"), links), place);
}

export async function render({ params, query, signal, remember }) {
  const chain = await chainOf(params.chain);
  const name = chain.chainName || chain.chainId;
  return {
    title: `Tokens of ${name}`,
    content: h(
      "div.page",
      {},
      crumbs(["Home", "#/"], [name, to.chain(chain.chainId)], ["Tokens"]),
      header(name, "Tokens"),
      card("", sortedTokens(chain.chainId, signal, query.get("sort") || "", remember)),
    ),
  };
}
