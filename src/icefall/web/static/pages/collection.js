// A collection of NFTs.
import { h } from "../dom.js";
import { data, path } from "../api.js";
import { tokenName } from "../columns.js";
import { tokenExportBox } from "../export.js";
import { nftGrid } from "../nfts.js";
import { tabs } from "../parts.js";
import { holderList, tokenHead, tokenOf, transferList } from "../token-parts.js";

export async function render({ params, query, signal, remember }) {
  const token = await tokenOf(params, signal);
  const { key, contract, base, totals } = token;
  const content = h(
    "div.page",
    {},
    tokenHead(token, "NFT collection"),
    tokenExportBox(key, contract.address, signal),
    tabs(
      "Content of the collection",
      [
        { key: "tokens", name: "Tokens", load: () => tokens(key, contract.address, signal) },
        { key: "holders", name: "Holders", load: () => holderList(base, key, { symbol: "" }, signal, totals?.totalSupply) },
        { key: "transfers", name: "Transfers", load: () => transferList(base, key, signal) },
      ],
      query.get("tab"),
      (tab) => remember({ tab }),
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
