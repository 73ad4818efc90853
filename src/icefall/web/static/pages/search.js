// Everything that a text may be. Suggestions of the search box come from the same place.
import { h } from "../dom.js";
import { chains, data, path } from "../api.js";
import { find } from "../finding.js";
import { short } from "../format.js";
import { badge, card, clip, empty, header, to } from "../parts.js";

const TAKES = [
  "a chain's name or ID, or the symbol of its native token",
  "an address, a transaction or block hash, or its first six digits or more",
  "a block number: 1968, 1,968 or 0x7b0",
  "any part of a token's name or symbol",
  "an X- or P-Chain address",
  "the ID of a container, transaction, block, asset, subnet, blockchain, L1 validation or node",
];

const WHOLE_HASH = /^(0x)?[0-9a-f]{64}$/i;
const ASKED_MAX = 8; // chains

// A transaction that no block holds yet is known to the nodes of its chain only.
async function pending(text, signal) {
  const hash = `0x${text.toLowerCase().replace(/^0x/, "")}`;
  const asked = (await chains()).slice(0, ASKED_MAX).map(async (chain) => {
    const found = await data(path`/v1/chains/${chain.chainId}/transactions/${hash}/pending`, {}, signal).catch(() => null);
    const isKnown = found && found.txState !== "unknown";
    const where = chain.chainName || chain.chainId;
    return isKnown && { kind: "Pending transaction", name: short(hash, 12), where, href: to.tx(chain.chainId, hash) };
  });
  return (await Promise.all(asked)).filter(Boolean);
}

// A single result is opened at once, but not with `all`: a page that links here must not be led back to itself.
export async function render({ params, query, signal }) {
  const text = params.q.trim();
  let found = await find(text, signal);
  if (!found.length && WHOLE_HASH.test(text)) found = await pending(text, signal);
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
