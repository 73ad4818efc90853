// A transaction and everything in it.
import { h, icon } from "../dom.js";
import { chainOf, data, maybe, path } from "../api.js";
import { callTree } from "../calls.js";
import { STANDARDS, internalColumns, transferColumns } from "../columns.js";
import { decodedTable, errorShown, nameOf, rawData } from "../decoded.js";
import { happened } from "../happened.js";
import { logList } from "../logs.js";
import { sentence } from "../sentence.js";
import { exact, gasPrice, percent, whole } from "../format.js";
import {
  address,
  blockLink,
  card,
  clip,
  crumbs,
  exactTime,
  facts,
  header,
  id,
  later,
  method,
  quantity,
  status,
  table,
  tabs,
  to,
  value,
} from "../parts.js";

const TYPES = { 0: "legacy", 1: "access list", 2: "dynamic fee", 3: "blob", 4: "set code" };

export async function render(about) {
  try {
    return await indexed(about);
  } catch (error) {
    const page = error.status === 404 && (await (await import("../pending.js")).pendingPage(about));
    if (page) return page;
    throw error;
  }
}

async function indexed({ params, query, signal, remember }) {
  const [chain, whole_] = await Promise.all([
    chainOf(params.chain),
    data(path`/v1/chains/${params.chain}/transactions/${params.hash}`, {}, signal),
  ]);
  const tx = whole_.nativeTransaction;
  const key = chain.chainId;
  const native = chain.networkToken;
  const base = path`/v1/chains/${key}/transactions/${tx.txHash}`;
  const failed = tx.txStatus !== "1";
  const transfers = STANDARDS.flatMap(({ key: standard }) => whole_[`${standard}Transfers`]).sort(
    (a, b) => a.logIndex - b.logIndex,
  );
  const tokens = [tx.to, ...transfers.map((move) => move.erc20Token)].filter((one) => one?.decimals !== undefined);
  const reason = failed ? maybe(data(`${base}/revertReason`, {}, signal)) : null;
  reason?.catch(() => null); // it is reported where it is shown
  const content = h(
    "div.page",
    {},
    crumbs(
      ["Home", "#/"],
      [chain.chainName || key, to.chain(key)],
      [`Block ${whole(tx.blockNumber)}`, to.block(key, tx.blockNumber)],
      ["Transaction"],
    ),
    header(
      "Transaction",
      id(tx.txHash, { full: true, what: "transaction hash" }),
      status(tx.txStatus),
      method(tx.method),
    ),
    later(() => summary(whole_, transfers, { key, native, base, signal, reason }), { rows: 1 }),
    failed &&
      later(() => revertNotice(reason, { key, token: tx.to }), { rows: 1 }),
    card("Details", details(tx, whole_, native, key)),
    tx.input && tx.input !== "0x" && later(() => inputCard(tx, { base, signal }), { rows: 2 }),
    tabs(
      "Content of the transaction",
      [
        transfers.length && {
          key: "transfers",
          name: `Token transfers (${transfers.length})`,
          load: async () => table("Token transfers", transferColumns({ chain: key, linked: false }), transfers).element,
        },
        whole_.internalTransactions.length && {
          key: "internals",
          name: `Internal transactions (${whole_.internalTransactions.length})`,
          load: async () =>
            table(
              "Internal transactions",
              internalColumns({ chain: key, native, linked: false }),
              whole_.internalTransactions,
            ).element,
        },
        { key: "calls", name: "Calls", load: () => callTree(`${base}/calls`, { chain: key, native, signal, tokens }) },
        { key: "logs", name: "Logs", load: () => logList(`${base}/logs`, { chain: key, signal, tokens }) },
      ].filter(Boolean),
      query.get("tab"),
      (tab) => remember({ tab }),
    ),
    whole_.truncated && h("p.notice", {}, "This transaction is large: only its first 2,000 parts are listed here."),
  );
  return { title: `Transaction ${tx.txHash.slice(0, 10)}…`, content };
}

async function summary(all, transfers, { key, native, base, signal, reason }) {
  const logs = async () => (await maybe(data(`${base}/logs`, { pageSize: 25 }, signal).catch(() => null)))?.logs;
  const parts = await happened({
    tx: all.nativeTransaction,
    transfers,
    internals: all.internalTransactions,
    isCut: Boolean(all.truncated),
    logs,
    reason: async () => {
      const found = await reason?.catch(() => null);
      return found?.revertReason || (found?.decodedError && nameOf(found.decodedError));
    },
  });
  return sentence(parts, { chain: key, native });
}

function details(tx, all, native, chain) {
  const fee = BigInt(tx.gasUsed) * BigInt(tx.gasPrice);
  const price = all.networkTokenDetails?.historicalPrice || all.networkTokenDetails?.currentPrice;
  const message = all.teleporterMessageInfo;
  return facts([
    ["Block", blockLink(chain, tx.blockNumber), h("span.quiet", {}, `, position ${tx.blockIndex}`)],
    ["Time", exactTime(tx.blockTimestamp)],
    ["From", address(chain, tx.from, { full: true })],
    [tx.method.callType === "CONTRACT_CREATION" ? "Created contract" : "To", address(chain, tx.to, { full: true })],
    ["Value", quantity(tx.value, native.decimals, native.symbol, { full: true }), worth(tx.value, native, price)],
    ["Fee", quantity(String(fee), native.decimals, native.symbol, { full: true }), worth(String(fee), native, price)],
    ["Gas used", `${whole(tx.gasUsed)} of ${whole(tx.gasLimit)} (${percent(tx.gasUsed, tx.gasLimit)})`],
    [
      "Gas price",
      gasPrice(tx.gasPrice),
      tx.baseFeePerGas && h("span.quiet", {}, `, of which base fee ${gasPrice(tx.baseFeePerGas)}`),
    ],
    tx.maxFeePerGas && ["Max fee per gas", gasPrice(tx.maxFeePerGas)],
    tx.maxFeePerGas && ["Max priority fee per gas", gasPrice(tx.maxPriorityFeePerGas || 0)],
    ["Nonce", whole(tx.nonce)],
    ["Type", `${tx.txType} (${TYPES[tx.txType] || "other"})`],
    price && [`Price of ${native.symbol} that day`, value(price)],
    message && [
      "Interchain message",
      h("span", {}, message.direction === "SOURCE_TRANSACTION" ? "sent" : "received", " ", icon("arrow"), " "),
      id(message.teleporterMessageId, { href: to.message(message.teleporterMessageId), what: "message ID", full: true }),
      h("span.quiet", {}, ` from ${message.sourceChainId || "?"} to ${message.destinationChainId || "?"}`),
    ],
  ]);
}

function worth(integer, native, price) {
  if (!price || integer === "0") return null;
  const number = Number(exact(integer, native.decimals).replaceAll(",", "")) * Number(price.value);
  return h("span.quiet", {}, " (", value({ ...price, value: number }), ")");
}

// What the call was, with names where they are known; the data itself is a click away.
async function inputCard(tx, { base, signal }) {
  const found = await maybe(data(`${base}/input`, {}, signal).catch(() => null));
  const known = found?.methodName || tx.method.methodName;
  const decoded = found?.decodedInput;
  return card(
    "Input",
    known && h("p", {}, h("code.break", {}, clip(known, 300)), " ", h("span.quiet.mono", {}, tx.method.methodHash)),
    decoded && decodedTable(decoded, { chain: tx.chainId, token: tx.to }),
    rawData("Raw input", tx.input, !decoded),
  );
}

// Why it failed. Values of the error, and data that nothing here can name, follow in a card of their own.
async function revertNotice(asked, { key, token }) {
  const reason = await asked;
  const error = reason?.decodedError;
  if (!reason || !(reason.revertReason || reason.error || error)) return null;
  const values = error?.parameters.length ? errorShown(error, { chain: key, token }) : null;
  const isUnknown = !error && reason.revertData;
  return [
    h("p.notice.bad", {}, h("strong", {}, "Reverted: "), clip(reason.revertReason || error?.signature || reason.error, 500)),
    isUnknown &&
      card(
        "Error data",
        h("p.quiet", {}, "No ABI and no common signature names this error. An ABI of the contract that reverted would."),
        rawData("Data", reason.revertData, true),
      ),
    values && card("Error", values, reason.revertData && rawData("Raw error data", reason.revertData)),
  ];
}
