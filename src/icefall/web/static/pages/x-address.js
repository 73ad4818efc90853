// An address of the asset chain: what it can spend, and its history.
import { h } from "../dom.js";
import { node } from "../api.js";
import { assetAmount, assetName } from "../assets.js";
import { decodeUtxo, unchecked } from "../wire.js";
import { dateTime, whole } from "../format.js";
import { badge, card, crumbs, header, id, later, list, table, tabs, to } from "../parts.js";

export async function render({ params, query, signal, remember }) {
  const address = params.address;
  const prefix = address.replace(/^.*?-/, "").split("1")[0];
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Asset chain", "#/x"], ["Address"]),
    header("Address of the asset chain", id(address, { full: true, what: "address" })),
    later(
      async () => {
        const { balances } = await node("/ext/bc/X", "avm.getAllBalances", { address }, signal);
        if (!balances.length) return card("Balances", h("p.state", {}, "It holds nothing that it can spend alone."));
        return card(
          "Balances",
          table(
            "Balances",
            [
              { name: "Asset", on: "lead", cell: (row) => assetName(row.asset) },
              { name: "Balance", on: "side", right: true, cell: (row) => assetAmount(row.balance, row.asset) },
            ],
            balances,
          ).element,
        );
      },
      { hideEmpty: false },
    ),
    tabs(
      "What belongs to the address",
      [
        { key: "utxos", name: "UTXOs", load: () => utxos(address, prefix, signal) },
        { key: "history", name: "Transactions", load: () => history(address, signal) },
      ],
      query.get("tab"),
      (tab) => remember({ tab }),
    ),
  );
  return { title: `Address ${address.slice(0, 14)}…`, content };
}

function utxos(address, prefix, signal) {
  return list({
    label: "Unspent outputs",
    none: "There are none.",
    columns: [
      {
        name: "Output of",
        on: "lead",
        cell: (row) => [
          id(row.txID, { href: to.x("tx", row.txID), what: "transaction ID" }),
          h("span.quiet", {}, ` #${row.outputIndex}`),
        ],
      },
      { name: "Kind", on: "below", cell: (row) => badge(row.kind) },
      {
        name: "Amount",
        on: "side",
        right: true,
        cell: (row) =>
          row.amount === undefined ? assetName(row.assetID) : assetAmount(String(row.amount), row.assetID),
      },
      {
        name: "Owners",
        on: "aside",
        cell: (row) => (row.addresses.length === 1 ? "this address" : `${row.threshold} of ${row.addresses.length}`),
      },
      { name: "Locked until", cell: (row) => (row.locktime ? dateTime(row.locktime) : "–") },
    ],
    load: async (startIndex) => {
      const reply = await node(
        "/ext/bc/X",
        "avm.getUTXOs",
        { addresses: [address], limit: 50, encoding: "hex", ...(startIndex ? { startIndex } : {}) },
        signal,
      );
      const rows = reply.utxos.map((text) => decodeUtxo(unchecked(text), prefix));
      return { rows, next: Number(reply.numFetched) === 50 ? reply.endIndex : null };
    },
  });
}

function history(address, signal) {
  return list({
    label: "Transactions of the address",
    none: "There are none.",
    columns: [
      { name: "#", cell: (row) => whole(row.number) },
      {
        name: "Transaction",
        cell: (row) => id(row.id, { href: to.x("tx", row.id), what: "transaction ID", head: 20, tail: 8 }),
      },
    ],
    load: async (from = { cursor: "", number: 1 }) => {
      const reply = await node(
        "/ext/bc/X",
        "avm.getAddressTxs",
        { address, pageSize: "25", ...(from.cursor ? { cursor: from.cursor } : {}) },
        signal,
      );
      const rows = reply.txIDs.map((txid, index) => ({ id: txid, number: from.number + index }));
      return { rows, next: reply.cursor ? { cursor: reply.cursor, number: from.number + rows.length } : null };
    },
  });
}
