// A transaction of the asset chain: what it spends and makes.
import { h, icon } from "../dom.js";
import { node } from "../api.js";
import { assetAmount, assetName } from "../assets.js";
import { fromHex } from "../wire.js";
import { dateTime, whole } from "../format.js";
import { badge, card, clip, crumbs, facts, header, id, to } from "../parts.js";
import { chainFacts, inputOwners, listedTx } from "../x-facts.js";

export function txKind(tx) {
  if (tx.initialStates) return "create asset";
  if (tx.operations) return "operation";
  if (tx.importedInputs) return "import";
  return tx.exportedOutputs ? "export" : "base";
}

export async function render({ params, signal }) {
  const [{ tx }, listed] = await Promise.all([
    node("/ext/bc/X", "avm.getTx", { txID: params.id, encoding: "json" }, signal),
    listedTx(params.id, signal),
  ]);
  const unsigned = tx.unsignedTx;
  const inputs = [
    ...(unsigned.inputs || []),
    ...(unsigned.importedInputs || []).map((one) => ({ ...one, imported: true })),
  ];
  const outputs = [
    ...(unsigned.outputs || []),
    ...(unsigned.exportedOutputs || []).map((one) => ({ ...one, exported: true })),
  ];
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Asset chain", "#/x"], ["Transaction"]),
    header(
      "Transaction of the asset chain",
      id(tx.id, { full: true, what: "transaction ID" }),
      badge(txKind(unsigned)),
    ),
    card(
      "Details",
      facts([
        ...chainFacts(listed),
        unsigned.name !== undefined && [
          "Created asset",
          assetName(tx.id),
          `, ${clip(unsigned.name, 128)} (${clip(unsigned.symbol, 16)}), ${unsigned.denomination} decimals`,
        ],
        unsigned.sourceChain && ["From chain", id(unsigned.sourceChain, { full: true, what: "chain ID" })],
        unsigned.destinationChain && ["To chain", id(unsigned.destinationChain, { full: true, what: "chain ID" })],
        ["Network", String(unsigned.networkID)],
        ["Chain", id(unsigned.blockchainID, { full: true, what: "chain ID" })],
        unsigned.memo && unsigned.memo !== "0x" && ["Memo", memo(unsigned.memo)],
        ["Credentials", whole(tx.credentials.length)],
      ]),
    ),
    h(
      "section.card",
      { "aria-label": "Inputs and outputs" },
      h(
        "div.flow",
        {},
        h("div", {}, h("h2", {}, `Inputs (${inputs.length})`), inputs.map((one) => inputBox(one, listed))),
        icon("arrow"),
        h(
          "div",
          {},
          h("h2", {}, `Outputs (${outputs.length})`),
          outputs.map((one, index) => outputBox(one, index)),
        ),
      ),
    ),
    unsigned.initialStates &&
      card(
        "Initial state",
        unsigned.initialStates.flatMap((state) =>
          state.outputs.map((one, index) => outputBox({ output: one, assetID: tx.id }, index)),
        ),
      ),
    unsigned.operations &&
      card(
        "Operations",
        unsigned.operations.map((one) =>
          h(
            "div.utxo",
            {},
            h("div", {}, "Asset ", assetName(one.assetID)),
            h("pre.data", { tabindex: "0" }, clip(JSON.stringify(one.operation, null, 2), 8000)),
          ),
        ),
      ),
  );
  return { title: `X transaction ${tx.id.slice(0, 10)}…`, content };
}

function memo(hex) {
  const text = new TextDecoder().decode(fromHex(hex));
  return /^[\x20-\x7e\s]*$/.test(text) ? clip(text, 500) : h("span.mono", {}, clip(hex, 500));
}

function inputBox(one, listed) {
  return h(
    "div.utxo",
    {},
    h("div", {}, assetAmount(one.input.amount, one.assetID), one.imported && badge("imported")),
    inputOwners(listed, one),
    h(
      "div.quiet",
      {},
      "output ",
      String(one.outputIndex),
      " of ",
      id(one.txID, { href: one.imported ? undefined : to.x("tx", one.txID), what: "transaction ID" }),
    ),
  );
}

function outputBox(one, index) {
  const out = one.output || {};
  return h(
    "div.utxo",
    {},
    h(
      "div",
      {},
      h("span.quiet", {}, `${index}: `),
      out.amount === undefined
        ? badge(out.payload !== undefined ? "NFT" : "right to mint or own")
        : assetAmount(out.amount, one.assetID),
      one.exported && badge("exported"),
    ),
    (out.addresses || []).map((address) =>
      h("div", {}, id(address, { href: to.x("address", address), what: "address", head: 16, tail: 6 })),
    ),
    out.addresses?.length > 1 || out.threshold > 1
      ? h("div.quiet", {}, `${out.threshold} of ${out.addresses.length} must sign`)
      : null,
    out.locktime ? h("div.quiet", {}, `locked until ${dateTime(out.locktime)}`) : null,
  );
}
