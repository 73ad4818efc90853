// What a text may be: a chain, something on the EVM chains by the interface's own search, on X, P and C by identifier.
import { h } from "../dom.js";
import { chains, data, hasNode, maybe, node } from "../api.js";
import { dateTime, short, whole } from "../format.js";
import { badge, card, clip, empty, header, to } from "../parts.js";

const BECH32_ADDRESS = /^([XPC])-([a-z0-9]{1,83}1[02-9ac-hj-np-z]{38,})$/i;
const CB58_ID = /^[1-9A-HJ-NP-Za-km-z]{40,60}$/;

const TAKES = [
  "a chain's name or ID",
  "an address, a transaction or block hash, a block number",
  "the beginning of a token's name or symbol",
  "an X- or P-Chain address",
  "the ID of a container, transaction, block or asset",
];

// A single result is opened at once, but not with `all`: a page that links here must not be led back to itself.
export async function render({ params, query, signal }) {
  const text = params.q.trim();
  const found = (
    await Promise.all([chainsNamed(text), onChains(text, signal), hasNode() ? onPrimary(text, signal) : []])
  ).flat();
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

async function chainsNamed(text) {
  const start = text.toLowerCase();
  return (await chains())
    .filter((one) => one.chainId === text || (start && one.chainName?.toLowerCase().startsWith(start)))
    .map((one) => ({
      kind: "Chain",
      name: one.chainName || one.chainId,
      detail: one.chainId,
      href: to.chain(one.chainId),
    }));
}

async function onChains(text, signal) {
  const reply = await maybe(
    data("/v1/search", { query: text, pageSize: 30 }, signal).catch((error) => {
      if (error.status === 400) return null; // not a text that it takes
      throw error;
    }),
  );
  return (reply?.results || [])
    .map((one) => ({ where: one.chainName || one.chainId, ...SHOWN[one.type]?.(one) }))
    .filter((one) => one.href);
}

const SHOWN = {
  block: (one) => ({
    kind: "Block",
    name: whole(one.blockNumber),
    detail: `${short(one.blockHash, 10)}, ${dateTime(one.blockTimestamp)}`,
    href: to.block(one.chainId, one.blockNumber),
  }),
  transaction: (one) => ({
    kind: "Transaction",
    name: short(one.txHash, 12),
    detail: `block ${whole(one.blockNumber)}, ${dateTime(one.blockTimestamp)}`,
    href: to.tx(one.chainId, one.txHash),
  }),
  address: (one) => ({
    kind: one.isContract ? "Contract" : "Address",
    name: short(one.address, 12),
    href: to.address(one.chainId, one.address),
  }),
  token: (one) => ({
    kind: one.ercType,
    name: one.name || one.symbol || "Unnamed token",
    detail: `${one.symbol ? `${clip(one.symbol, 20)}, ` : ""}${short(one.address)}`,
    href: (one.ercType === "ERC-20" ? to.token : to.collection)(one.chainId, one.address),
  }),
};

async function onPrimary(text, signal) {
  const address = text.match(BECH32_ADDRESS);
  if (address) {
    const chain = address[1].toUpperCase();
    const same = `X-${address[2].toLowerCase()}`;
    return [
      {
        kind: "Address",
        name: short(text, 16, 6),
        where: chain === "X" ? "Asset chain" : `The same key on the asset chain`,
        href: to.x("address", same),
      },
    ];
  }
  if (!CB58_ID.test(text)) return [];
  const none = (promise) =>
    promise.catch((error) => {
      if (error.name === "AbortError") throw error;
      return null;
    });
  const [tx, block, asset, ...indexes] = await Promise.all([
    none(node("/ext/bc/X", "avm.getTx", { txID: text, encoding: "json" }, signal)),
    none(node("/ext/bc/X", "avm.getBlock", { blockID: text, encoding: "json" }, signal)),
    none(node("/ext/bc/X", "avm.getAssetDescription", { assetID: text }, signal)),
    ...["X", "P", "C"].map((chain) =>
      none(node(`/ext/index/${chain}/block`, "index.getIndex", { id: text, encoding: "hex" }, signal)),
    ),
  ]);
  return [
    asset && {
      kind: "Asset",
      name: `${asset.name} (${asset.symbol})`,
      where: "Asset chain",
      href: to.x("asset", text),
    },
    tx && { kind: "Transaction", name: short(text, 12), where: "Asset chain", href: to.x("tx", text) },
    block && {
      kind: "Block",
      name: whole(block.block.height),
      detail: short(text, 12),
      where: "Asset chain",
      href: to.x("block", block.block.height),
    },
    ...indexes.map(
      (found, at) =>
        found && {
          kind: "Container",
          name: whole(found.index),
          detail: short(text, 12),
          where: `${"XPC"[at]}-Chain`,
          href: to.container("XPC"[at], found.index),
        },
    ),
  ].filter(Boolean);
}
