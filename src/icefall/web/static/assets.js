// Assets of the asset chain: their names, read once, and amounts in them.
import { h, plain } from "./dom.js";
import { node } from "./api.js";
import { clip, id, quantity, to } from "./parts.js";

const known = new Map();

export function describe(asset) {
  if (!known.has(asset))
    known.set(
      asset,
      node("/ext/bc/X", "avm.getAssetDescription", { assetID: asset }).catch(() => null),
    );
  return known.get(asset);
}

// An amount with its asset; the name follows when it is known.
export function assetAmount(amount, asset) {
  const box = h(
    "span",
    {},
    quantity(amount, 0),
    " ",
    id(asset, { href: to.x("asset", asset), what: "asset ID", copy: false }),
  );
  describe(asset).then((found) => {
    if (found)
      box.replaceChildren(
        quantity(amount, Number(found.denomination)),
        " ",
        h("a.in-text", { href: to.x("asset", found.assetID), title: found.assetID }, clip(found.symbol, 12)),
      );
  });
  return box;
}

export function assetName(asset) {
  const link = h("a", { href: to.x("asset", asset), title: asset }, clip(asset, 14));
  describe(asset).then((found) => {
    if (found) link.textContent = plain(clip(`${found.name} (${found.symbol})`, 36));
  });
  return link;
}
