// A block of the asset chain.
import { h } from "../dom.js";
import { node } from "../api.js";
import { whole } from "../format.js";
import { txKind } from "./x-tx.js";
import { badge, card, crumbs, exactTime, facts, header, id, steps, table, to } from "../parts.js";

export async function render({ params, signal }) {
  const [{ block }, { height }] = await Promise.all([
    /^\d{1,20}$/.test(params.id)
      ? node("/ext/bc/X", "avm.getBlockByHeight", { height: params.id, encoding: "json" }, signal)
      : node("/ext/bc/X", "avm.getBlock", { blockID: params.id, encoding: "json" }, signal),
    node("/ext/bc/X", "avm.getHeight", {}, signal),
  ]);
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Asset chain", "#/x"], [`Block ${whole(block.height)}`]),
    header(
      "Block of the asset chain",
      whole(block.height),
      steps(
        "block",
        block.height > 1 && to.x("block", block.height - 1),
        block.height < Number(height) && to.x("block", block.height + 1),
      ),
    ),
    card(
      "Details",
      facts([
        ["Time", exactTime(block.time)],
        ["ID", id(block.id, { full: true, what: "block ID" })],
        ["Parent", id(block.parentID, { full: true, what: "block ID", href: to.x("block", block.parentID) })],
        ["Merkle root", id(block.merkleRoot, { full: true, what: "merkle root" })],
      ]),
    ),
    card(
      `Transactions (${block.txs.length})`,
      table(
        "Transactions of the block",
        [
          {
            name: "Transaction",
            on: "lead",
            cell: (row) => id(row.id, { href: to.x("tx", row.id), what: "transaction ID", head: 14 }),
          },
          { name: "Type", on: "side", cell: (row) => badge(txKind(row.unsignedTx)) },
          {
            name: "Inputs",
            on: "below",
            right: true,
            cell: (row) =>
              counted("input", (row.unsignedTx.inputs?.length || 0) + (row.unsignedTx.importedInputs?.length || 0)),
          },
          {
            name: "Outputs",
            on: "aside",
            right: true,
            cell: (row) =>
              counted("output", (row.unsignedTx.outputs?.length || 0) + (row.unsignedTx.exportedOutputs?.length || 0)),
          },
        ],
        block.txs,
      ).element,
    ),
  );
  return { title: `X block ${whole(block.height)}`, content };
}

const counted = (what, count) => [whole(count), h("span.phone-only", {}, count === 1 ? what : `${what}s`)];
