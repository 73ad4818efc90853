// Everything that a text may be. Suggestions of the search box come from the same place.
import { h } from "../dom.js";
import { find } from "../finding.js";
import { badge, card, clip, empty, header } from "../parts.js";

const TAKES = [
  "a chain's name or ID, or the symbol of its native token",
  "an address, a transaction or block hash, or its first six digits or more",
  "a block number: 1968, 1,968 or 0x7b0",
  "any part of a token's name or symbol",
  "an X- or P-Chain address",
  "the ID of a container, transaction, block, asset, subnet, blockchain, L1 validation or node",
];

// A single result is opened at once, but not with `all`: a page that links here must not be led back to itself.
export async function render({ params, query, signal }) {
  const text = params.q.trim();
  const found = await find(text, signal);
  if (found.length === 1 && !query.has("all")) location.replace(found[0].href);
  const content = h(
    "div.page",
    {},
    header("Search", clip(text, 120)),
    found.length
      ? h(
          "div.results",
          {},
          found.map((one) =>
            h(
              "a.result",
              { href: one.href },
              badge(one.kind),
              h("strong", {}, clip(one.name, 60)),
              one.detail && h("span.mono.quiet", {}, clip(one.detail, 90)),
              one.where && h("span.quiet", {}, one.where),
            ),
          ),
        )
      : card(
          "",
          empty("Nothing was found. Search takes:"),
          h(
            "ul.bullets",
            {},
            TAKES.map((one) => h("li", {}, one)),
          ),
        ),
  );
  return { title: "Search", content };
}
