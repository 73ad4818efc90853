// A list of an address with filters: direction, failures, token and time. Times become a range of blocks, which the server
// reads; the rest is chosen from the rows that it answers. Every read is a page, and a choice that fits no row ends after
// some of them (`list` in parts.js), so no choice reads the whole history.
import { h } from "./dom.js";
import { data, maybe, path } from "./api.js";
import { isReceived, isSent, movedToken } from "./columns.js";
import { later, list } from "./parts.js";

const PAGE = 25;
const FILTERED_PAGE = 100; // most rows may not fit
const NAMES = ["way", "failed", "token", "from", "to"];

const read = (query) => Object.fromEntries(NAMES.map((name) => [name, query.get(name) || ""]));
const isChosen = (chosen, kinds) => kinds.some((kind) => chosen[kind]);

// Whether a row fits. Pure.
export function fits(row, chosen, of) {
  if (chosen.way && !(chosen.way === "out" ? isSent : isReceived)(row, of)) return false; // to itself is both
  if (chosen.failed && row.txStatus !== "0") return false;
  if (!chosen.token) return true;
  const token = movedToken(row);
  const wanted = chosen.token.trim().toLowerCase();
  return [token.address, token.symbol, token.name].some((text) => String(text || "").toLowerCase().includes(wanted));
}

const seconds = (text) => Math.floor(Date.parse(`${text}Z`) / 1000);

// The blocks of a time frame, or null where it has none.
async function blocksOf(chain, { from, to }, signal) {
  const at = (timestamp, closest) =>
    maybe(data(path`/v1/chains/${chain}/blocks:getByTime`, { timestamp, closest }, signal));
  const range = {};
  if (from && Number.isFinite(seconds(from))) {
    const first = await at(seconds(from), "after");
    if (!first) return null;
    range.startBlock = first.blockNumber;
  }
  if (to && Number.isFinite(seconds(to))) {
    const last = await at(seconds(to), "before");
    if (!last) return null;
    range.endBlock = String(BigInt(last.blockNumber) + 1n);
  }
  return range.startBlock && range.endBlock && BigInt(range.startBlock) >= BigInt(range.endBlock) ? null : range;
}

// `kinds`: of NAMES, those that the rows have. `load(query)` answers {rows, next} for the parameters of a page.
export function filteredList({ label, none, columns, kinds, of, chain, query, remember, signal, load }) {
  const chosen = read(query);
  const place = h("div.later");
  const shown = async () => {
    if (!isChosen(chosen, kinds))
      return list({ label, none, columns, load: (pageToken) => load({ pageSize: PAGE, pageToken }) });
    const range = await blocksOf(chain, chosen, signal);
    const only = Object.fromEntries(NAMES.map((name) => [name, kinds.includes(name) ? chosen[name] : ""]));
    return list({
      label: `${label}, filtered`,
      none: "Nothing fits among the newest rows that were looked at. Choose an earlier time to look further back.",
      columns,
      load: async (pageToken) => {
        if (!range) return { rows: [], next: null };
        const page = await load({ pageSize: FILTERED_PAGE, pageToken, ...range });
        return { rows: page.rows.filter((row) => fits(row, only, of)), next: page.next };
      },
    });
  };
  const draw = () => place.replaceChildren(later(shown, { rows: 5, hideEmpty: false }));
  draw();
  return h("div.list", {}, filterForm(label, chosen, kinds, remember, draw), place);
}

function filterForm(label, chosen, kinds, remember, draw) {
  const change = (name, given) => {
    chosen[name] = given;
    remember({ [name]: given });
    draw();
  };
  const select = (name, text, options) => {
    const box = h(
      "select",
      {},
      options.map(([given, shown]) => h("option", { value: given, selected: chosen[name] === given }, shown)),
    );
    box.addEventListener("change", () => change(name, box.value));
    return h("label", {}, text, box);
  };
  const input = (name, text, type) => {
    const box = h("input", { type, value: chosen[name], maxlength: 80, step: type === "datetime-local" ? 1 : null });
    box.addEventListener("change", () => change(name, box.value));
    return h("label", {}, text, box);
  };
  const fields = {
    way: () => select("way", "Direction", [["", "in and out"], ["in", "in"], ["out", "out"]]),
    failed: () => select("failed", "Status", [["", "all"], ["1", "failed"]]),
    token: () => input("token", "Token (name or address)", "text"),
    from: () => input("from", "From (UTC)", "datetime-local"),
    to: () => input("to", "Until (UTC)", "datetime-local"),
  };
  const form = h("form.choices.filters", { "aria-label": `Filter of ${label}` }, kinds.map((kind) => fields[kind]()));
  form.addEventListener("submit", (event) => event.preventDefault());
  return h("details.filter", { open: isChosen(chosen, kinds) }, h("summary", {}, "Filter"), form);
}
