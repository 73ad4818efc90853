// A collection of NFTs.
import { h } from "../dom.js";
import { chainOf, data, path } from "../api.js";
import { tokenName } from "../columns.js";
import { nftGrid } from "../nfts.js";
import { address, badge, card, clip, crumbs, facts, header, id, tabs, to, txLink } from "../parts.js";
import { holderList, transferList } from "./token.js";

export async function render({ params, query, signal, remember }) {
  const chain = await chainOf(params.chain);
  const key = chain.chainId;
  const contract = await data(path`/v1/chains/${key}/addresses/${params.address}`, {}, signal);
  const base = path`/v1/chains/${key}/tokens/${contract.address}`;
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
      "NFT collection",
      clip(contract.name || contract.symbol || "Unnamed collection", 120),
      badge(contract.ercType),
      contract.symbol && badge(clip(contract.symbol, 24)),
    ),
    card(
      "Details",
      facts([
        ["Address", id(contract.address, { full: true, what: "address", href: to.address(key, contract.address) })],
        made && ["Deployed by", address(key, made.deployerAddress, { full: true })],
        made && ["Deployed in", txLink(key, made.txHash, { full: true })],
      ]),
    ),
    tabs(
      "Content of the collection",
      [
        { key: "tokens", name: "Tokens", load: () => tokens(key, contract.address, signal) },
        { key: "holders", name: "Holders", load: () => holderList(base, key, { symbol: "" }, signal) },
        { key: "transfers", name: "Transfers", load: () => transferList(base, key, signal) },
      ],
      query.get("tab"),
      (tab) => remember({ tab: tab === "tokens" ? "" : tab }),
    ),
  );
  return { title: tokenName(contract), content };
}

function tokens(chain, collection, signal) {
  return nftGrid(
    chain,
    async (pageToken) => {
      const page = await data(
        path`/v1/chains/${chain}/nfts/collections/${collection}/tokens`,
        { pageSize: 24, pageToken },
        signal,
      );
      return { tokens: page.tokens, next: page.nextPageToken };
    },
    "It has no tokens.",
  );
}
