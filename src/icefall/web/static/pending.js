// A transaction that is not indexed: pending, or in a block that is not indexed yet.
import { announce, h } from "./dom.js";
import { chainOf, data, path } from "./api.js";
import { gasPrice, whole } from "./format.js";
import { address, badge, card, crumbs, facts, header, id, quantity, to } from "./parts.js";

const POLL_MS = 4000;
const SAID = {
  pending: "No block holds this transaction yet. The page shows it in full as soon as it is indexed.",
  unknown: "The node no longer knows this transaction: it was dropped, or replaced by another one of its sender.",
  included: (found) => `Block ${whole(found.blockNumber)} holds this transaction, and is indexed in a moment.`,
};

// Null where the node does not know it either, or cannot be asked: then it is just not found.
export async function pendingPage({ params, signal }) {
  const ask = () => data(path`/v1/chains/${params.chain}/transactions/${params.hash}/pending`, {}, signal);
  let chain;
  let found;
  try {
    [chain, found] = await Promise.all([chainOf(params.chain), ask()]);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return null;
  }
  if (found.txState === "unknown") return null;
  const said = h("p.notice.pending", { role: "status" });
  const mark = h("span", {}, badge("Pending", "warn"));
  const say = (now) => {
    const text = SAID[now.txState];
    said.textContent = typeof text === "function" ? text(now) : text || "";
    mark.hidden = now.txState !== "pending";
  };
  say(found);
  watch(found.txState, ask, say, signal);
  const key = chain.chainId;
  const { symbol, decimals } = chain.networkToken;
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], [chain.chainName || key, to.chain(key)], ["Transaction"]),
    header("Transaction", id(found.txHash, { full: true, what: "transaction hash" }), mark),
    said,
    found.from &&
      card(
        "Details",
        facts([
          ["From", address(key, found.from, { full: true })],
          ["To", found.to ? address(key, found.to, { full: true }) : "a new contract"],
          ["Value", quantity(found.value, decimals, symbol, { full: true })],
          found.methodName && ["Method", h("code.break", {}, found.methodName)],
          ["Nonce", whole(found.nonce)],
          ["Gas limit", whole(found.gasLimit)],
          found.gasPrice !== undefined && ["Gas price", gasPrice(found.gasPrice)],
          found.maxFeePerGas !== undefined && ["Maximum fee per gas", gasPrice(found.maxFeePerGas)],
          found.maxPriorityFeePerGas !== undefined && ["Maximum tip per gas", gasPrice(found.maxPriorityFeePerGas)],
        ]),
      ),
  );
  return { title: `Pending transaction ${found.txHash.slice(0, 10)}…`, content };
}

// Asks again while the page is open, and loads it again once the transaction is indexed.
function watch(first, ask, say, signal) {
  let before = first;
  const timer = setInterval(async () => {
    if (document.hidden) return;
    const now = await ask().catch(() => null);
    if (!now || now.txState === before || signal.aborted) return;
    before = now.txState;
    if (before === "indexed") return dispatchEvent(new Event("hashchange"));
    say(now);
    announce(before);
  }, POLL_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
}
