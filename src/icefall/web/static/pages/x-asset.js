// An asset of the asset chain.
import { h } from "../dom.js";
import { maybe, node } from "../api.js";
import { card, clip, crumbs, facts, header, id, later, to } from "../parts.js";
import { createdAt } from "../x-facts.js";
import { txKind } from "./x-tx.js";

export async function render({ params, signal }) {
  const asset = await node("/ext/bc/X", "avm.getAssetDescription", { assetID: params.id }, signal);
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Asset chain", "#/x"], ["Asset"]),
    header("Asset", `${clip(asset.name, 128)} (${clip(asset.symbol, 16)})`),
    card(
      "Details",
      facts([
        ["Asset ID", id(asset.assetID, { full: true, what: "asset ID" })],
        ["Symbol", clip(asset.symbol, 16)],
        ["Denomination", `${asset.denomination} decimals`],
      ]),
    ),
    later(async () => {
      const made = await maybe(node("/ext/bc/X", "avm.getTx", { txID: asset.assetID, encoding: "json" }, signal));
      if (!made) return card("Origin", h("p", {}, "It is part of the genesis of this chain."));
      const owners =
        made.tx.unsignedTx.initialStates?.flatMap((state) => state.outputs.flatMap((out) => out.addresses)) || [];
      return card(
        "Origin",
        facts([
          ["Created in", id(made.tx.id, { href: to.x("tx", made.tx.id), full: true, what: "transaction ID" })],
          ["Time", createdAt(asset.assetID, signal)],
          ["Kind", txKind(made.tx.unsignedTx)],
          owners.length && [
            "First owners",
            [...new Set(owners)]
              .slice(0, 20)
              .map((one) => h("div", {}, id(one, { href: to.x("address", one), full: true, what: "address" }))),
          ],
        ]),
      );
    }),
  );
  return { title: `Asset ${clip(asset.symbol, 16)}`, content };
}
