// The newest blocks and transactions of all chains. The live stream keeps them current; without it they are read again.
import { announce, h } from "./dom.js";
import { data } from "./api.js";
import { failedBadge } from "./columns.js";
import { percent, whole } from "./format.js";
import { listen } from "./live.js";
import { address, blockLink, empty, failure, loading, method, quantity, table, time, to, txLink } from "./parts.js";

const SHOWN = 10;
const ARRIVED_MAX = 100; // between two looks
const SHOW_MS = 500;
const POLL_MS = 10000;

// A list of the newest rows. While a chain is being indexed events come faster than anyone reads, and may be about old
// blocks: rows are therefore shown together, in the order of their time.
class LiveList {
  constructor(label, columns, keyOf, load) {
    Object.assign(this, { label, columns, keyOf, load, rows: [], arrived: [], isReadAnew: false });
    this.element = h("div.later", { "aria-busy": "true" }, loading(6));
  }

  // What has arrived before may be of blocks that were rolled back; what was not is read too.
  async read() {
    this.arrived = [];
    try {
      this.rows = await this.load();
      this.isReadAnew = true;
      this.show();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.element.replaceChildren(failure(error, () => this.read()));
    }
    this.element.removeAttribute("aria-busy");
  }

  arrive(row) {
    this.arrived = [row, ...this.arrived].slice(0, ARRIVED_MAX);
  }

  // Whether there is something new to see. Nothing moves while the keyboard is in the list.
  show() {
    if (!(this.arrived.length || this.isReadAnew)) return false;
    if (this.element.querySelector("table")?.contains(document.activeElement)) return false;
    const known = new Set(this.rows.map(this.keyOf));
    const added = this.arrived.filter((row) => !known.has(this.keyOf(row)));
    this.arrived = [];
    const newest = [...added, ...this.rows].sort((a, b) => b.blockTimestamp - a.blockTimestamp).slice(0, SHOWN);
    const fresh = new Set(newest.map(this.keyOf).filter((key) => !known.has(key)));
    this.rows = newest;
    if (fresh.size || this.isReadAnew) this.draw(fresh);
    this.isReadAnew = false;
    return fresh.size > 0;
  }

  draw(fresh) {
    if (!this.rows.length) return this.element.replaceChildren(empty("Nothing is indexed yet."));
    const shown = table(this.label, this.columns, this.rows);
    this.rows.forEach((row, at) => fresh.has(this.keyOf(row)) && shown.body.children[at].classList.add("new"));
    this.element.replaceChildren(shown.element);
  }
}

// Two lines in one cell: what it is, and below it what belongs to it.
const two = (first, second) => h("span.two", {}, h("span", {}, first), h("span.note", {}, second));
const chainOf = (row, names) => h("a", { href: to.chain(row.chainId) }, names.get(row.chainId) || row.chainId);

const blockColumns = (names) => [
  { name: "Block", on: "lead", cell: (row) => two(blockLink(row.chainId, row.blockNumber), chainOf(row, names)) },
  {
    name: "Gas used",
    right: true,
    cell: (row) => two(whole(row.gasUsed), `${percent(row.gasUsed, row.gasLimit)} of the limit`),
  },
  {
    name: "Transactions",
    on: "side",
    right: true,
    cell: (row) =>
      two(
        [
          whole(row.txCount),
          h("span.phone-only.quiet", {}, Number(row.txCount) === 1 ? "transaction" : "transactions"),
        ],
        time(row.blockTimestamp),
      ),
  },
];

const txColumns = (names, tokens) => [
  {
    name: "Transaction",
    on: "lead",
    cell: (row) => two([txLink(row.chainId, row.txHash), failedBadge(row)], chainOf(row, names)),
  },
  { name: "Method", cell: (row) => method(row.method) },
  {
    name: "From and to",
    cell: (row) => h("span.parties", {}, address(row.chainId, row.from), address(row.chainId, row.to)),
  },
  {
    name: "Value",
    on: "side",
    right: true,
    cell: (row) => {
      const { decimals, symbol } = tokens.get(row.chainId) || { decimals: 18, symbol: "" };
      return two(quantity(row.value, decimals, symbol), time(row.blockTimestamp));
    },
  },
];

// `onBlock` is called with the newest block of a chain, `onRollback` with the ID of a chain that lost blocks.
export function latest({ names, tokens, signal, onBlock, onRollback }) {
  const blocks = new LiveList(
    "Latest blocks of all chains",
    blockColumns(names),
    (row) => row.blockHash,
    async () => (await data("/v1/blocks", { pageSize: SHOWN }, signal)).blocks,
  );
  const transactions = new LiveList(
    "Latest transactions of all chains",
    txColumns(names, tokens),
    (row) => row.txHash,
    async () => (await data("/v1/transactions", { pageSize: SHOWN }, signal)).transactions,
  );
  const mark = h("span.live", {}, "connecting");
  const tips = new Map();
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
        tips.set(row.chainId, row);
      },
      transaction: (row) => transactions.arrive(row),
      rollback: ({ chainId }) => {
        tips.delete(chainId);
        onRollback(chainId);
        readAll();
      },
      skipped: readAll,
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
  const looking = setInterval(() => {
    tips.forEach(onBlock);
    tips.clear();
    transactions.show();
    if (blocks.show()) announce(`New block ${blocks.rows[0].blockNumber}`);
  }, SHOW_MS);
  signal.addEventListener("abort", () => clearInterval(looking));
  const part = (title, list, all, note) =>
    h(
      "section.card",
      { "aria-label": title },
      h("div.card-head", {}, h("h2", {}, title), note, h("a", { href: `#/all/${all}` }, `All ${all}`)),
      list.element,
    );
  return h(
    "div.columns.latest",
    {},
    part("Latest blocks", blocks, "blocks", mark),
    part("Latest transactions", transactions, "transactions"),
  );
}
