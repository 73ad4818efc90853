// A grid of NFTs in pages.
import { h } from "./dom.js";
import { whole } from "./format.js";
import { nftPicture } from "./pictures.js";
import { clip, empty, failure, to } from "./parts.js";

// `load(token)` returns {tokens, next}.
export async function nftGrid(chain, load, none) {
  const grid = h("div.nfts");
  let next;
  const addPage = async () => {
    const page = await load(next);
    next = page.next;
    grid.append(...page.tokens.map((one) => nftCard(one, chain)));
  };
  await addPage();
  if (!grid.childElementCount) return empty(none);
  const more = h("button.more", { type: "button" }, "Show more");
  more.addEventListener("click", async () => {
    more.disabled = true;
    await addPage().catch((error) => more.before(failure(error)));
    more.disabled = false;
    if (!next) more.remove();
  });
  return h("div.list", {}, grid, next ? more : null);
}

function nftCard(token, chain) {
  const name = token.metadata?.name || `${token.name || token.symbol || "Token"} #${clip(token.tokenId, 20)}`;
  return h(
    "a.nft",
    { href: to.nft(chain, token.address, token.tokenId) },
    nftPicture(chain, token, name, `#${clip(token.tokenId, 10)}`),
    h(
      "div.nft-text",
      {},
      h("strong", {}, clip(name, 60)),
      h("span.quiet", {}, clip(token.name || token.ercType, 40)),
      token.balance && h("span.quiet", {}, `holds ${whole(token.balance)}`),
    ),
  );
}
