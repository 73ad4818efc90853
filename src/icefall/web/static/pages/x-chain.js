// The asset chain: its newest blocks and transactions.
import { h } from "../dom.js";
import { lastContainer, maybe, node } from "../api.js";
import { whole } from "../format.js";
import { assetName } from "../assets.js";
import { onNetwork } from "../network.js";
import { createdAt } from "../x-facts.js";
import { badge, card, crumbs, empty, facts, header, id, list, quantity, tabs, time, to } from "../parts.js";

const PAGE = 15;
const CREATE_ASSET = "0x000000000001"; // version and type

export async function render({ query, signal, remember }) {
  const [{ height }, fees, avax] = await Promise.all([
    node("/ext/bc/X", "avm.getHeight", {}, signal),
    maybe(node("/ext/bc/X", "avm.getTxFee", {}, signal)),
    maybe(node("/ext/bc/X", "avm.getAssetDescription", { assetID: "AVAX" }, signal)),
  ]);
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Asset chain"]),
    header("Primary network", "Asset chain (X)"),
    card(
      "About",
      facts([
        ["Height", whole(height)],
        avax && ["Native asset", assetName(avax.assetID)],
        fees && ["Fee of a transaction", quantity(fees.txFee, 9, "AVAX")],
        fees && ["Fee of creating an asset", quantity(fees.createAssetTxFee, 9, "AVAX")],
      ]),
    ),
    tabs(
      "Content of the asset chain",
      [
        { key: "blocks", name: "Blocks", load: () => blocks(Number(height), signal) },
        { key: "transactions", name: "Transactions", load: () => transactions(signal) },
        { key: "assets", name: "Assets", load: () => assets(signal) },
      ],
      query.get("tab"),
      (tab) => remember({ tab }),
    ),
  );
  return { title: "Asset chain", content };
}

function blocks(height, signal) {
  return list({
    label: "Blocks of the asset chain",
    none: "No block has been accepted yet.",
    columns: [
      {
        name: "Block",
        on: "lead",
        cell: (row) => h("a.number", { href: to.x("block", row.height) }, whole(row.height)),
      },
      { name: "Time", on: "aside", cell: (row) => time(row.time) },
      {
        name: "ID",
        on: "below",
        cell: (row) => id(row.id, { href: to.x("block", row.id), what: "block ID", head: 10 }),
      },
      {
        name: "Parent",
        cell: (row) => id(row.parentID, { href: to.x("block", row.parentID), what: "block ID", head: 10 }),
      },
      {
        name: "Transactions",
        on: "side",
        right: true,
        cell: (row) => [
          whole(row.txs.length),
          h("span.phone-only.quiet", {}, row.txs.length === 1 ? "transaction" : "transactions"),
        ],
      },
    ],
    load: async (from = height) => {
      const heights = Array.from({ length: Math.min(PAGE, from + 1) }, (_, index) => from - index).filter(
        (one) => one > 0,
      );
      const rows = await Promise.all(
        heights.map(
          async (one) =>
            (await node("/ext/bc/X", "avm.getBlockByHeight", { height: String(one), encoding: "json" }, signal)).block,
        ),
      );
      return { rows, next: from - PAGE > 0 ? from - PAGE : null };
    },
  });
}

// The index of transactions, newest first, `size` at a time; null where the node has no such index.
async function newest(signal, size) {
  const last = await lastContainer("/ext/index/X/tx", signal);
  if (last === null) return null;
  if (last === undefined) return async () => ({ rows: [], next: null });
  return async (until = Number(last.index)) => {
    const first = Math.max(0, until - size + 1);
    const reply = await node(
      "/ext/index/X/tx",
      "index.getContainerRange",
      { startIndex: String(first), numToFetch: String(until - first + 1), encoding: "hex" },
      signal,
    );
    return { rows: (reply.containers || reply).reverse(), next: first > 0 ? first - 1 : null };
  };
}

const NO_INDEX = "This list needs the container index (--index-enabled).";

// Times are those of the chain: an index knows only when it was written.
function transactions(signal) {
  return list({
    label: "Transactions of the asset chain",
    none: "No transaction has been accepted yet.",
    columns: [
      {
        name: "Transaction",
        on: "lead",
        cell: (row) => id(row.txHash, { href: to.x("tx", row.txHash), what: "transaction ID", head: 14 }),
      },
      { name: "Type", on: "below", cell: (row) => badge(row.txType.replace(/Tx$/, "")) },
      {
        name: "Block",
        on: "side",
        right: true,
        cell: (row) => {
          const height = row.blockHeight ?? row.blockNumber;
          return height === undefined ? "–" : h("a.number", { href: to.x("block", height) }, whole(height));
        },
      },
      { name: "Time", on: "aside", right: true, cell: (row) => time(row.timestamp) },
    ],
    load: async (pageToken) => {
      const page = await maybe(onNetwork("/blockchains/x-chain/transactions", { pageSize: 25, pageToken }, signal));
      return page && { rows: page.transactions, next: page.nextPageToken };
    },
  });
}

// An asset has the ID of the transaction that created it, and such transactions are of type 1.
async function assets(signal) {
  const load = await newest(signal, 500);
  if (!load) return empty(NO_INDEX);
  return list({
    label: "Assets",
    none: "No asset was created in the latest transactions.",
    columns: [
      { name: "Asset", on: "lead", cell: (row) => assetName(row.id) },
      {
        name: "ID",
        on: "below",
        cell: (row) => id(row.id, { href: to.x("asset", row.id), what: "asset ID", head: 14 }),
      },
      { name: "Created", on: "aside", right: true, cell: (row) => createdAt(row.id, signal) },
    ],
    load: async (until) => {
      const page = await load(until);
      return { ...page, rows: page.rows.filter((row) => row.bytes.startsWith(CREATE_ASSET)) };
    },
  });
}
