// The building blocks of every page: cards, facts, tables, lists, tabs, links, and the states in between.
import { add, announce, h } from "./dom.js";
import { copyButton } from "./copy.js";
import { ago, amount, dateTime, exact, money, short, when } from "./format.js";
import { CallError, apiKey, labelOf } from "./api.js";
import { identicon } from "./identicon.js";
import { keepPages, pagesOf } from "./place.js";

// -- links ---------------------------------------------------------------------------------------------------------

export const to = {
  chain: (chain) => `#/chain/${encodeURIComponent(chain)}`,
  block: (chain, id) => `${to.chain(chain)}/block/${encodeURIComponent(id)}`,
  tx: (chain, hash) => `${to.chain(chain)}/tx/${encodeURIComponent(hash)}`,
  address: (chain, address) => `${to.chain(chain)}/address/${encodeURIComponent(address)}`,
  token: (chain, address) => `${to.chain(chain)}/token/${encodeURIComponent(address)}`,
  collection: (chain, address) => `${to.chain(chain)}/nft/${encodeURIComponent(address)}`,
  nft: (chain, address, id) => `${to.collection(chain, address)}/${encodeURIComponent(id)}`,
  message: (id) => `#/message/${encodeURIComponent(id)}`,
  x: (kind, id) => `#/x/${kind}/${encodeURIComponent(id)}`,
  container: (chain, index) => `#/containers/${chain}/${encodeURIComponent(index)}`,
};

// An identifier: shortened, linked where there is a page for it, with a button that copies all of it.
export function id(text, { href, what = "ID", full = false, copy = true, isQuiet = false, head, tail } = {}) {
  const shown = full ? text : short(text, head, tail);
  const plain = isQuiet ? "span.mono.quiet" : "span.mono";
  const element = href ? h("a.mono", { href, title: text }, shown) : h(plain, { title: text }, shown);
  return h(full ? "span.id.full" : "span.id", {}, element, copy && copyButton(text, what));
}

export function address(chain, party, options = {}) {
  const given = { ...(typeof party === "string" ? { address: party } : party) };
  given.name = labelOf(chain, given.address) || given.name;
  if (!given.address) return h("span.quiet", {}, "none");
  const href = given.decimals !== undefined ? to.token(chain, given.address) : to.address(chain, given.address);
  const mark = identicon(given.address);
  if (!given.name && !given.symbol)
    return h("span.who", {}, mark, id(given.address, { href, what: "address", ...options }));
  const name = clip(given.name || given.symbol, 40);
  if (options.full)
    return [mark, " ", h("a", { href }, name), " ", id(given.address, { what: "address", full: true, isQuiet: true })];
  // Anyone may take a name: the last digits tell two of one name apart.
  const digits = h("span.mono.quiet.digits", {}, given.address.slice(-4));
  return h(
    "span.who",
    {},
    mark,
    h("span.id", {}, h("a", { href, title: given.address }, name), digits, copyButton(given.address, "address")),
  );
}

export const txLink = (chain, hash, options) =>
  id(hash, { href: to.tx(chain, hash), what: "transaction hash", ...options });
export const blockLink = (chain, number) =>
  h("a.number", { href: to.block(chain, number) }, Number(number).toLocaleString("en"));

// What a contract calls itself may be of any length.
export const clip = (text, size = 80) =>
  [...String(text)].length > size ? [...String(text)].slice(0, size - 1).join("") + "…" : String(text);

export function time(seconds, shown = when) {
  const element = h("time", { datetime: isoTime(seconds), title: dateTime(seconds) }, shown(seconds));
  element.update = () => (element.textContent = shown(seconds));
  return element;
}

function isoTime(seconds) {
  const date = new Date(Number(seconds) * 1000);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

export function exactTime(seconds) {
  return h("span", {}, dateTime(seconds), " ", h("span.quiet", {}, "(", time(seconds, ago), ")"));
}

setInterval(() => {
  for (const one of document.querySelectorAll("time")) one.update?.();
}, 5000);

// `full`: with every digit, where one amount is looked at and not a list of them.
export function quantity(integer, decimals = 0, symbol = "", { full = false } = {}) {
  const whole = exact(integer, Number(decimals) || 0);
  return h(
    "span.number",
    { title: symbol ? `${whole} ${symbol}` : whole },
    full ? whole : amount(integer, Number(decimals) || 0),
    symbol && h("span.unit", {}, " ", clip(symbol, 16)),
  );
}

export const value = (price) => (price ? h("span.number", {}, money(price)) : h("span.quiet", {}, "–"));

export function badge(text, kind = "") {
  return h(kind ? `span.badge.${kind}` : "span.badge", {}, text);
}

// What is as it should be needs no mark: failures are seen because nothing else is coloured.
export const chainStatus = (text) => (text === "OK" ? null : badge(text.toLowerCase(), "bad"));
export const status = (txStatus) => (String(txStatus) === "1" ? badge("Success") : badge("Failed", "bad"));

export function method(shown) {
  const name = shown.methodName
    ? shown.methodName.replace(/\(.*$/s, "")
    : { NATIVE_TRANSFER: "Transfer", CONTRACT_CREATION: "Create" }[shown.callType] || shown.methodHash;
  return h("span.badge.method", { title: shown.methodName || shown.methodHash }, clip(name, 24));
}

// -- cards and facts -----------------------------------------------------------------------------------------------

export function card(title, ...content) {
  const heading = title && h("h2", {}, title);
  return h("section.card", title ? { "aria-label": title } : {}, heading, ...content);
}

export function facts(rows) {
  return h(
    "dl.facts",
    {},
    rows
      .filter((row) => row && row[1] !== undefined && row[1] !== null && row[1] !== "")
      .map(([name, ...shown]) => h("div", {}, h("dt", {}, name), h("dd", {}, ...shown))),
  );
}

export function figures(rows) {
  return h(
    "dl.figures",
    {},
    rows
      .filter(Boolean)
      .map(([name, shown, note]) =>
        h("div", {}, h("dt", {}, name), h("dd", {}, shown, note && h("span.note", {}, note))),
      ),
  );
}

export function header(kind, title, ...rest) {
  return h(
    "header.page-head",
    {},
    h("p.kind", {}, kind),
    h("h1", { tabindex: "-1" }, title),
    rest.length ? h("div.page-sub", {}, ...rest) : null,
  );
}

// To the neighbours of what a page shows; where there is none, the step is shown as not possible.
export function steps(what, before, after) {
  const step = (text, href) =>
    href ? h("a.step", { href }, text) : h("span.step.quiet", { "aria-disabled": "true" }, text);
  return h("nav.steps", { "aria-label": `Other ${what}s` }, step("Previous", before), step("Next", after));
}

export function crumbs(...parts) {
  return h(
    "nav.crumbs",
    { "aria-label": "Breadcrumb" },
    h(
      "ol",
      {},
      parts
        .filter(Boolean)
        .map(([text, href]) =>
          h("li", {}, href ? h("a", { href }, text) : h("span", { "aria-current": "page" }, text)),
        ),
    ),
  );
}

// -- states --------------------------------------------------------------------------------------------------------

export const empty = (text) => h("p.state", {}, text);
export const loading = (rows = 3) =>
  h(
    "div.loading",
    { role: "status" },
    h("span.hidden", {}, "Loading"),
    Array.from({ length: rows }, () => h("span.bar", {})),
  );

const sentence = (text) => `${text[0]?.toUpperCase() ?? ""}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

// Trying again helps where something failed, not where there is nothing or the address is wrong.
export function failure(error, again) {
  const isAnswer = [400, 404].includes(error.status);
  const text = sentence(error instanceof CallError ? error.message : `something went wrong: ${error.message}`);
  const box = h(isAnswer ? "div.state" : "div.state.failed", { role: "alert" }, h("p", {}, text));
  if (error.status === 401 || (error.status === 403 && apiKey())) box.append(keyForm(again));
  else if (again && !isAnswer) box.append(h("button", { type: "button", onclick: again }, "Try again"));
  return box;
}

function keyForm(again) {
  const input = h("input", { id: "api-key", type: "password", autocomplete: "off", required: true });
  const note = h("span.quiet", {}, "It is kept in this tab only.");
  const form = h("form.inline", {}, h("label", { for: "api-key" }, "API key"), input, h("button", {}, "Use it"), note);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    apiKey(input.value.trim());
    again?.();
  });
  return form;
}

// A part of a page that loads by itself. `load` returns its content, or null where there is nothing to show.
export function later(load, { rows = 3, hideEmpty = true } = {}) {
  const box = h("div.later", { "aria-busy": "true" }, loading(rows));
  const run = async () => {
    box.replaceChildren(loading(rows));
    box.setAttribute("aria-busy", "true");
    try {
      const content = await load();
      if (content) box.replaceChildren(...[content].flat().filter(Boolean));
      else if (hideEmpty) box.remove();
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 404 && hideEmpty) box.remove();
      else box.replaceChildren(failure(error, run));
    }
    box.removeAttribute("aria-busy");
  };
  run();
  return box;
}

// A part of a page that is read again while the page is open. It stays as it is while the keyboard is in it.
export function current(load, everyMs, signal) {
  const box = h("div.page", { "aria-busy": "true" }, loading());
  const read = async () => {
    const content = await load().catch((error) => (error.name === "AbortError" ? null : failure(error)));
    box.removeAttribute("aria-busy");
    if (content && !box.contains(document.activeElement)) box.replaceChildren(...[content].flat().filter(Boolean));
  };
  const timer = setInterval(() => document.hidden || read(), everyMs);
  signal.addEventListener("abort", () => clearInterval(timer));
  read();
  return box;
}

// -- tables --------------------------------------------------------------------------------------------------------

// columns: [{name, cell(row), right, minor, phone, on}]; a minor column is left out on a phone, a phone one is only there.
// `on`: a row is stacked on a phone, and this its place: lead and side in the first line, below and aside in the second,
// rest across both after them.
// Roles are explicit because some browsers forget those of tables that are not displayed as such.
export function table(label, columns, rows) {
  const isStacked = columns.some((column) => column.on);
  const kinds = (column) =>
    [...["right", "minor", "phone", "wide"].filter((name) => column[name]), column.on].filter(Boolean).join(" ") ||
    null;
  const body = h("tbody", { role: "rowgroup" });
  const append = (more) =>
    add(
      body,
      more.map((row) =>
        h(
          "tr",
          { role: "row" },
          columns.map((column) => h("td", { role: "cell", class: kinds(column) }, column.cell(row))),
        ),
      ),
    );
  append(rows);
  const head = h(
    "tr",
    { role: "row" },
    columns.map((column) => h("th", { role: "columnheader", scope: "col", class: kinds(column) }, column.name)),
  );
  const element = h(
    isStacked ? "div.table-box.stacked" : "div.table-box",
    { role: "region", "aria-label": label, tabindex: "0" },
    h("table", { role: "table" }, h("caption.hidden", {}, label), h("thead", { role: "rowgroup" }, head), body),
  );
  return { element, append, body };
}

const EMPTY_PAGES_MAX = 20;

// A list in pages. `load(token)` returns {rows, next}; a page may be empty although more follow. `hideEmpty`: null where
// there are none.
export async function list({ label, columns, load, none, hideEmpty = false }) {
  const loadRows = async (token) => {
    let page = await load(token);
    for (let read = 0; read < EMPTY_PAGES_MAX && page && !page.rows.length && page.next; read += 1) {
      page = await load(page.next);
    }
    return page;
  };
  const first = await loadRows();
  if (!first || !first.rows.length) return hideEmpty ? null : empty(none || "Nothing here yet.");
  const shown = table(label, columns, first.rows);
  const box = h("div.list", {}, shown.element);
  let next = first.next;
  let pages = 1;
  for (const wanted = pagesOf(label); next && pages < wanted; pages += 1) {
    const page = await loadRows(next); // the reader has seen these rows, and comes back to them
    shown.append(page.rows);
    next = page.next;
  }
  const failed = h("div");
  const more = h("button.more", { type: "button" }, "Show more");
  more.addEventListener("click", async () => {
    if (more.ariaDisabled) return; // not `disabled`, which would take the keyboard away from it
    more.ariaDisabled = "true";
    more.textContent = "Loading…";
    failed.replaceChildren();
    try {
      const page = await loadRows(next);
      shown.append(page.rows);
      next = page.next;
      keepPages(label, (pages += 1));
      announce(`${page.rows.length} more rows`);
    } catch (error) {
      failed.replaceChildren(failure(error));
    }
    more.ariaDisabled = null;
    more.textContent = "Show more";
    if (next) return;
    if (document.activeElement === more) shown.element.focus({ preventScroll: true });
    more.remove();
  });
  if (next) box.append(failed, more);
  return box;
}

// Scrolls a row of tabs or links sideways so far that the chosen one is seen, whenever there is more or less room.
export function keepInView(row, chosen) {
  const reveal = () => {
    const one = row.querySelector(chosen);
    if (!one) return;
    const at = one.offsetLeft - row.offsetLeft;
    if (at < row.scrollLeft || at + one.offsetWidth > row.scrollLeft + row.clientWidth - 40) row.scrollLeft = at - 40;
  };
  new ResizeObserver(reveal).observe(row);
  return reveal;
}

// -- tabs ----------------------------------------------------------------------------------------------------------

// tabs: [{key, name, load}]; loaded when first opened. The choice is part of the address.
export function tabs(label, all, chosen, remember) {
  const row = h("div.tabs", { role: "tablist", "aria-label": label });
  const panel = h("div.tab-panel", { role: "tabpanel", tabindex: "0", id: "tab-panel" });
  const cache = new Map();
  const open = (key, focus) => {
    for (const button of row.children) {
      const on = button.dataset.key === key;
      button.setAttribute("aria-selected", String(on));
      button.tabIndex = on ? 0 : -1;
      if (on) panel.setAttribute("aria-labelledby", button.id);
      if (on && focus) button.focus();
    }
    if (!cache.has(key)) cache.set(key, later(all.find((tab) => tab.key === key).load, { rows: 5, hideEmpty: false }));
    panel.replaceChildren(cache.get(key));
  };
  const choose = (key, focus) => {
    open(key, focus);
    remember?.(key === all[0].key ? "" : key); // the bare address opens the first one
  };
  for (const tab of all) {
    row.append(
      h(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${tab.key}`,
          "data-key": tab.key,
          "aria-controls": "tab-panel",
          onclick: () => choose(tab.key),
        },
        tab.name,
      ),
    );
  }
  row.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = all.findIndex((tab) => `tab-${tab.key}` === document.activeElement.id);
    if (at < 0 || (!step && !["Home", "End"].includes(event.key))) return;
    event.preventDefault();
    const next = step ? (at + step + all.length) % all.length : event.key === "Home" ? 0 : all.length - 1;
    choose(all[next].key, true);
  });
  keepInView(row, "[aria-selected=true]");
  open(all.some((tab) => tab.key === chosen) ? chosen : all[0].key);
  return h("section.card.tabbed", { "aria-label": label }, row, panel);
}
