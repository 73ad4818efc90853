// A collection of NFTs.
import { h } from "../dom.js";
import { chainOf, data, path } from "../api.js";
import { tokenName } from "../columns.js";
import { address, badge, card, clip, crumbs, empty, facts, header, id, tabs, to, txLink } from "../parts.js";
import { nftCard } from "./address.js";
import { holderList, transferList } from "./token.js";

export async function render({ params, query, signal, remember }) {
  const chain = await chainOf(params.chain);
  const key = chain.chainId;
  const contract = await data(path`/v1/chains/${key}/addresses/${params.address}`, {}, signal);
  const base = path`/v1/chains/${key}/tokens/${contract.address}`;
  const made = contract.deploymentDetails;
  const content = h("div.page", {},
    crumbs(["Home", "#/"], [chain.chainName || key, to.chain(key)], ["Tokens", `${to.chain(key)}/tokens`], [tokenName(contract)]),
    header("NFT collection", clip(contract.name || contract.symbol || "Unnamed collection", 120), badge(contract.ercType), contract.symbol && badge(clip(contract.symbol, 24))),
    card("Details", facts([
      ["Address", id(contract.address, { full: true, what: "address", href: to.address(key, contract.address) })],
      made && ["Deployed by", address(key, made.deployerAddress, { full: true })],
      made && ["Deployed in", txLink(key, made.txHash, { full: true })],
    ])),
    tabs("Content of the collection", [
      { key: "tokens", name: "Tokens", load: () => tokens(key, contract.address, signal) },
      { key: "holders", name: "Holders", load: () => holderList(base, key, { symbol: "" }, signal) },
      { key: "transfers", name: "Transfers", load: () => transferList(base, key, signal) },
    ], query.get("tab"), (tab) => remember({ tab: tab === "tokens" ? "" : tab })));
  return { title: tokenName(contract), content };
}

async function tokens(chain, collection, signal) {
  const grid = h("div.nfts");
  let next;
  const load = async () => {
    const page = await data(path`/v1/chains/${chain}/nfts/collections/${collection}/tokens`, { pageSize: 24, pageToken: next }, signal);
    next = page.nextPageToken;
    grid.append(...page.tokens.map((one) => nftCard(one, chain)));
  };
  await load();
  if (!grid.children.length) return empty("It has no tokens.");
  const more = h("button.more", { type: "button", onclick: async () => {
    await load();
    if (!next) more.remove();
  } }, "Show more");
  return h("div.list", {}, grid, next ? more : null);
}
