// One NFT: its picture, what its metadata says, its owner.
import { h } from "../dom.js";
import { chainOf, data, path } from "../api.js";
import { dateTime } from "../format.js";
import { nftPicture } from "../pictures.js";
import { address, badge, card, clip, crumbs, facts, header, id, to } from "../parts.js";

const STATUS = { indexed: "complete", unindexed: "not fetched yet", unknown: "not known" };

export async function render({ params, signal }) {
  const chain = await chainOf(params.chain);
  const key = chain.chainId;
  const token = await data(path`/v1/chains/${key}/nfts/collections/${params.address}/tokens/${params.id}`, {}, signal);
  const about = token.metadata || {};
  const collection = clip(token.name || token.symbol || "Collection", 60);
  const name = clip(about.name || `${collection} #${token.tokenId}`, 120);
  const state = String(about.indexStatus || "unknown").toLowerCase();
  const content = h(
    "div.page",
    {},
    crumbs(
      ["Home", "#/"],
      [chain.chainName || key, to.chain(key)],
      [collection, to.collection(key, token.address)],
      [`#${clip(token.tokenId, 20)}`],
    ),
    header("NFT", name, badge(token.ercType)),
    h(
      "div.nft-page",
      {},
      nftPicture(key, token, name),
      h(
        "div.page",
        {},
        card(
          "Details",
          facts([
            ["Collection", h("a", { href: to.collection(key, token.address) }, collection)],
            ["Contract", id(token.address, { full: true, what: "address", href: to.address(key, token.address) })],
            ["Token ID", id(token.tokenId, { full: true, what: "token ID" })],
            token.ownerAddress && ["Owner", address(key, token.ownerAddress, { full: true })],
            about.description && ["Description", clip(about.description, 2000)],
            ["Metadata", STATUS[state] || state.replaceAll("_", " ")],
            about.metadataLastUpdatedTimestamp && ["Read at", dateTime(about.metadataLastUpdatedTimestamp)],
            token.tokenUri && ["Token URI", uri(token.tokenUri)],
            about.imageUri && ["Image URI", uri(about.imageUri)],
            about.animationUri && ["Animation URI", uri(about.animationUri)],
            about.externalUrl && ["Website, as the token says", uri(about.externalUrl)],
          ]),
        ),
        traits(about),
      ),
    ),
  );
  return { title: name, content };
}

// Addresses that a contract names are text, not links: they may lead anywhere.
const uri = (text) => h("span.mono", {}, clip(text, 400));

function traits(about) {
  const text = about.attributes || about.properties;
  if (!text) return null;
  let given;
  try {
    given = JSON.parse(text);
  } catch {
    return card("Attributes", h("pre.data", { tabindex: "0" }, clip(text, 4000)));
  }
  const rows = Array.isArray(given)
    ? given.map((one) => [one?.trait_type ?? "", one?.value])
    : Object.entries(given || {});
  if (!rows.length) return null;
  const plain = (value) => (value && typeof value === "object" ? JSON.stringify(value) : String(value));
  return card(
    "Attributes",
    h(
      "dl.traits",
      {},
      rows
        .slice(0, 100)
        .map(([name, value]) =>
          h("div", {}, h("dt", {}, clip(name || "attribute", 60)), h("dd", {}, clip(plain(value), 200))),
        ),
    ),
  );
}
