// The tokens of a chain.
import { h } from "../dom.js";
import { chainOf, data, path } from "../api.js";
import { badge, blockLink, card, clip, crumbs, header, id, list, to, value } from "../parts.js";

export function tokenList(chain, signal) {
  const page = (token) => (token.ercType === "ERC-20" ? to.token : to.collection)(chain, token.address);
  return list({
    label: "Tokens",
    none: "No token has been seen on this chain.",
    columns: [
      {
        name: "Token",
        on: "lead",
        cell: (row) => [
          h("a", { href: page(row) }, clip(row.name || row.symbol || "Unnamed token", 40)),
          row.symbol && h("span.phone-only.quiet", {}, clip(row.symbol, 20)),
        ],
      },
      { name: "Symbol", cell: (row) => clip(row.symbol || "–", 20) },
      { name: "Standard", on: "aside", cell: (row) => badge(row.ercType) },
      { name: "Address", on: "below", cell: (row) => id(row.address, { href: page(row), what: "address" }) },
      { name: "First seen in block", right: true, cell: (row) => blockLink(chain, row.firstBlock) },
      { name: "Price", on: "side", right: true, cell: (row) => value(row.price) },
    ],
    load: async (pageToken) => {
      const reply = await data(path`/v1/chains/${chain}/tokens`, { pageSize: 25, pageToken }, signal);
      return { rows: reply.tokens, next: reply.nextPageToken };
    },
  });
}

export async function render({ params, signal }) {
  const chain = await chainOf(params.chain);
  const name = chain.chainName || chain.chainId;
  return {
    title: `Tokens of ${name}`,
    content: h(
      "div.page",
      {},
      crumbs(["Home", "#/"], [name, to.chain(chain.chainId)], ["Tokens"]),
      header(name, "Tokens"),
      card("", await tokenList(chain.chainId, signal)),
    ),
  };
}
