// The newest blocks and transactions of all chains. The live stream keeps them current; without it they are read again.
import { announce, h } from "./dom.js";
import { data } from "./api.js";
import { blockColumns, chainColumn, txColumns } from "./columns.js";
import { listen } from "./live.js";
import { empty, failure, loading, table } from "./parts.js";

const SHOWN = 10;
const POLL_MS = 10000;

class LiveList {
  constructor(label, columns, keyOf, load) {
    Object.assign(this, { label, columns, keyOf, load, keys: [] });
    this.element = h("div.later", { "aria-busy": "true" }, loading(6));
  }

  async read() {
    try {
      this.draw(await this.load());
    } catch (error) {
      if (error.name === "AbortError") return;
      this.element.replaceChildren(failure(error, () => this.read()));
    }
    this.element.removeAttribute("aria-busy");
  }

  draw(rows) {
    this.table = rows.length ? table(this.label, this.columns, rows) : null;
    this.keys = rows.map(this.keyOf);
    this.element.replaceChildren(this.table?.element || empty("Nothing is indexed yet."));
  }

  // An event may be about a row that the list already had when it was read.
  arrive(row) {
    if (this.keys.includes(this.keyOf(row))) return;
    if (!this.table) return this.draw([row]);
    this.keys = [this.keyOf(row), ...this.keys].slice(0, SHOWN);
    this.table.append([row]);
    const { body } = this.table;
    body.lastElementChild.classList.add("new");
    body.prepend(body.lastElementChild);
    while (body.children.length > SHOWN) body.lastElementChild.remove();
  }
}

// `onBlock` is called with every new block.
export function latest({ names, tokens, signal, onBlock }) {
  const [number, age, count] = blockColumns();
  const txs = txColumns({ tokenOf: (id) => tokens.get(id) });
  const named = (name) => txs.find((column) => column.name === name);
  const blocks = new LiveList(
    "Latest blocks of all chains",
    [number, chainColumn(names), age, count],
    (row) => row.blockHash,
    async () => (await data("/v1/blocks", { pageSize: SHOWN }, signal)).blocks,
  );
  const transactions = new LiveList(
    "Latest transactions of all chains",
    ["Transaction", "Method", "Status", "Age", "Value"].map(named),
    (row) => row.txHash,
    async () => (await data("/v1/transactions", { pageSize: SHOWN }, signal)).transactions,
  );
  const mark = h("span.live", {}, "connecting");
  const readAll = () => Promise.all([blocks.read(), transactions.read()]);
  readAll();
  const state = (text, on) => {
    mark.textContent = text;
    mark.classList.toggle("on", on);
  };
  listen(
    { types: "blocks,transactions" },
    {
      block: (row) => {
        blocks.arrive(row);
        onBlock(row);
        announce(`New block ${row.blockNumber} of ${names.get(row.chainId) || row.chainId}`);
      },
      transaction: (row) => transactions.arrive(row),
      rollback: readAll,
      opened: () => state("live", true),
      interrupted: () => state("reconnecting", false),
      refused: () => {
        state(`read again every ${POLL_MS / 1000} s`, false);
        const timer = setInterval(() => document.hidden || readAll(), POLL_MS);
        signal.addEventListener("abort", () => clearInterval(timer));
      },
    },
    signal,
  );
  const part = (title, list, note) =>
    h("section.card", { "aria-label": title }, h("div.card-head", {}, h("h2", {}, title), note), list.element);
  return h("div.columns", {}, part("Latest blocks", blocks, mark), part("Latest transactions", transactions));
}
