// The frame around the pages: addresses after #, navigation, search box, keyboard.
import { announce, h, plain } from "./dom.js";
import { config, hasMetrics, hasNode, loadConfig, resetCalls } from "./api.js";
import { failure, header, keepInView, later, loading } from "./parts.js";
import { keepPlaces, restorePlace } from "./place.js";
import { installThemeToggle } from "./theme-toggle.js";

// Address, module of the page, and what it cannot be shown without.
const ROUTES = [
  ["", "home"],
  ["search/:q", "search"],
  ["all/:what", "everything"],
  ["chain/:chain", "chain"],
  ["chain/:chain/block/:id", "block"],
  ["chain/:chain/tx/:hash", "transaction"],
  ["chain/:chain/address/:address", "address"],
  ["chain/:chain/contract/:address", "contract"],
  ["chain/:chain/tokens", "tokens"],
  ["chain/:chain/token/:address", "token"],
  ["chain/:chain/nft/:address", "collection"],
  ["chain/:chain/nft/:address/:id", "nft"],
  ["message/:id", "message"],
  ["metrics", "metrics", hasMetrics],
  ["metrics/:metric", "metrics", hasMetrics],
  ["network", "network", hasNode],
  ["network/validator/:node", "validator", hasNode],
  ["network/subnet/:id", "subnet", hasNode],
  ["network/tx/:chain/:id", "network-tx", hasNode],
  ["network/address/:address", "network-address", hasNode],
  ["x", "x-chain", hasNode],
  ["x/block/:id", "x-block", hasNode],
  ["x/tx/:id", "x-tx", hasNode],
  ["x/address/:address", "x-address", hasNode],
  ["x/asset/:id", "x-asset", hasNode],
  ["containers/:chain", "containers", hasNode],
  ["containers/:chain/:index", "container", hasNode],
  ["webhooks", "webhooks"],
  ["webhooks/new", "webhook-new"],
  ["webhooks/:id", "webhook"],
  ["operations", "operations"],
];
const NAVIGATION = [
  ["#/", "Home"],
  ["#/metrics", "Metrics", hasMetrics],
  ["#/network", "Network", hasNode],
  ["#/x", "Asset chain", hasNode],
  ["#/containers/X", "Containers", hasNode],
  ["#/webhooks", "Webhooks"],
  ["#/operations", "Operations"],
  ["docs", "API"],
];

const NOT_SHOWN = { 400: "This is not a valid address", 404: "Not found" };

const main = document.getElementById("main");
let leave = new AbortController();
let shownBefore = false;
let pageBefore = "";
let revealPage = () => {};

// `isKnown`: what the page needs can be checked. Before that, the module of the page is loaded in any case.
function parse(isKnown = true) {
  const [address, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = address.split("/").filter(Boolean).map(decoded);
  for (const [pattern, page, needs] of ROUTES) {
    const wanted = pattern.split("/").filter(Boolean);
    if (wanted.length !== parts.length || (isKnown && needs && !needs())) continue;
    const params = {};
    if (
      wanted.every((part, index) =>
        part.startsWith(":") ? ((params[part.slice(1)] = parts[index]), true) : part === parts[index],
      )
    ) {
      return { page, params, query: new URLSearchParams(query) };
    }
  }
  return { page: "not-found", params: { ...parts }, query: new URLSearchParams(query) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function show() {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  resetCalls();
  markNavigation();
  revealPage();
  const { page, params, query } = parse();
  if (page === "search" && !isTyping()) document.getElementById("search").value = params.q;
  else if (pageBefore !== "search" && !isTyping()) document.getElementById("search").value = ""; // of an earlier page
  pageBefore = page;
  main.setAttribute("aria-busy", "true");
  const waiting = setTimeout(() => main.replaceChildren(loading(8)), shownBefore ? 150 : 0);
  let content;
  let title = "Icefall";
  try {
    const module = await import(`./pages/${page}.js`);
    ({ title, content } = await module.render({ params, query, signal, remember }));
  } catch (error) {
    if (signal.aborted) return;
    content = notShown(error, show, params);
    title = "Not loaded";
  } finally {
    clearTimeout(waiting);
  }
  if (signal.aborted) return;
  main.replaceChildren(content);
  main.removeAttribute("aria-busy");
  document.title = title === "Icefall" ? title : `${plain(title)} · Icefall`;
  if (shownBefore) {
    if (!restorePlace(main, signal)) scrollTo(0, 0);
    if (!isTyping()) main.querySelector("h1")?.focus({ preventScroll: true });
    announce(document.title);
  } else restorePlace(main, signal);
  shownBefore = true;
}

// Whether the reader is at the search box: a page that arrives late neither clears it nor takes the focus away.
function isTyping() {
  return document.activeElement?.id === "search";
}

function notShown(error, again, params = {}) {
  const title = header("Icefall", NOT_SHOWN[error.status] || "This page could not be loaded");
  const todo = later(async () => (await import("./advice.js")).advice(error.status, params), { rows: 2 });
  return h("div.page", {}, title, h("section.card", {}, failure(error, again), todo));
}

// Keeps a choice (a tab, a range) in the address without loading the page again.
function remember(choices) {
  const [address, query = ""] = location.hash.split("?");
  const kept = new URLSearchParams(query);
  for (const [name, chosen] of Object.entries(choices)) chosen ? kept.set(name, chosen) : kept.delete(name);
  history.replaceState(null, "", `${address || "#/"}${String(kept) ? `?${kept}` : ""}`);
}

function markNavigation() {
  const here = location.hash || "#/";
  for (const link of document.querySelectorAll("#nav a")) {
    const target = link.getAttribute("href");
    const start = target.split("/").slice(0, 2).join("/");
    const on = target === "#/" ? here === "#/" : target.startsWith("#/") && here.startsWith(start);
    on ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
}

function installFrame() {
  document
    .getElementById("nav")
    .replaceChildren(
      ...NAVIGATION.filter(([, , needs]) => !needs || needs()).map(([href, text]) => h("a", { href }, text)),
    );
  revealPage = keepInView(document.getElementById("nav"), "[aria-current]");
  document.getElementById("about").textContent = `Icefall ${config.version}`;
  const input = document.getElementById("search");
  document.getElementById("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (!text) return;
    input.blur();
    location.hash = `#/search/${encodeURIComponent(text)}`;
  });
  // Loaded when the box is first used: the home page is shown without them.
  const suggest = () => import("./suggestions.js").then((module) => module.installSuggestions(input), () => {});
  if (isTyping()) suggest();
  else input.addEventListener("focus", suggest, { once: true });
  document.addEventListener("keydown", (event) => {
    if (
      event.key === "/" &&
      !event.ctrlKey &&
      !event.metaKey &&
      !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)
    ) {
      event.preventDefault();
      input.focus();
    }
  });
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
}

keepPlaces(main);
history.scrollRestoration = "manual"; // what the browser would scroll to has not loaded yet
installThemeToggle(document.getElementById("theme"));
const loaded = loadConfig();
import(`./pages/${parse(false).page}.js`).catch(() => {}); // meanwhile; `show` reports what fails
try {
  await loaded;
  installFrame();
  addEventListener("hashchange", show);
  await show();
} catch (error) {
  const again = () => location.reload();
  main.replaceChildren(notShown(error, again));
  addEventListener("hashchange", again);
  main.removeAttribute("aria-busy");
}
