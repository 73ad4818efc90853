// All blocks, or all transactions, of all chains, newest first.
import { h } from "../dom.js";
import { chains, data } from "../api.js";
import { blockColumns, txColumns } from "../columns.js";
import { card, crumbs, header, list, to } from "../parts.js";

export async function render({ params, signal }) {
  const isBlocks = params.what === "blocks";
  const all = await chains();
  const names = new Map(all.map((chain) => [chain.chainId, chain.chainName || chain.chainId]));
  const tokens = new Map(all.map((chain) => [chain.chainId, chain.networkToken]));
  const chain = {
    name: "Chain",
    on: "rest",
    cell: (row) => h("a", { href: to.chain(row.chainId) }, names.get(row.chainId) || row.chainId),
  };
  const [lead, ...others] = isBlocks ? blockColumns() : txColumns({ tokenOf: (key) => tokens.get(key) });
  const title = isBlocks ? "Blocks" : "Transactions";
  const shown = await list({
    label: `${title} of all chains`,
    none: "Nothing is indexed yet. Operations shows how far each chain is.",
    columns: [lead, chain, ...others.filter((column) => column.name !== "Hash")],
    load: async (pageToken) => {
      const page = await data(isBlocks ? "/v1/blocks" : "/v1/transactions", { pageSize: 25, pageToken }, signal);
      return { rows: isBlocks ? page.blocks : page.transactions, next: page.nextPageToken };
    },
  });
  return {
    title,
    content: h("div.page", {}, crumbs(["Home", "#/"], [title]), header("All chains", title), card("", shown)),
  };
}
