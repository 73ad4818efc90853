// An ERC-20 token: details, price, holders and transfers.
import { h } from "../dom.js";
import { data, maybe } from "../api.js";
import { chart } from "../chart.js";
import { STANDARDS, tokenName } from "../columns.js";
import { tokenExportBox } from "../export.js";
import { card, later, tabs, to } from "../parts.js";
import { holderList, tokenHead, tokenOf, transferList } from "../token-parts.js";

export async function render({ params, query, signal, remember }) {
  const token = await tokenOf(params, signal);
  const { key, contract, base, totals } = token;
  const isNft = STANDARDS.some(({ name, hasIds }) => hasIds && name === contract.ercType);
  const prices = maybe(data(`${base}/prices`, { pageSize: 100 }, signal)).catch(() => null);
  const content = h(
    "div.page",
    {},
    tokenHead(token, "Token", {
      links: [isNft && h("a", { href: to.collection(key, contract.address) }, "Collection")],
      more: [
        contract.decimals !== undefined && ["Decimals", String(contract.decimals)],
      ],
    }),
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
    tokenExportBox(key, contract.address, signal),
    tabs(
      "Holders and transfers",
      [
        { key: "transfers", name: "Transfers", load: () => transferList(base, key, signal) },
        { key: "holders", name: "Holders", load: () => holderList(base, key, contract, signal, totals?.totalSupply) },
      ],
      query.get("tab"),
      (tab) => remember({ tab }),
    ),
  );
  return { title: tokenName(contract), content };
}
