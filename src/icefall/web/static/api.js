// The public interfaces, and nothing else. Every call is noted, so that a page can list those it made.
import { h } from "./dom.js";

export const config = { version: "", nodeUrl: "", metricsUrl: "", ipfsGateway: "" };
const bases = { data: new URL(".", document.baseURI).href.replace(/\/$/, ""), node: "", metrics: "" };
let calls = new Map();
let chainList = null;
let labels = {}; // by chain ID or *, then by address

const NOT_THERE = -32000; // in JSON-RPC: the call is right, and there is nothing to answer

// `code`: of an error in a JSON-RPC answer. A path that is not served has none.
export class CallError extends Error {
  constructor(message, status = 0, code = 0) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export async function loadConfig() {
  Object.assign(config, await send(`${bases.data}/explorer/config.json`, { cache: "no-store" }));
  for (const [name, url] of [
    ["node", config.nodeUrl],
    ["metrics", config.metricsUrl],
  ]) {
    bases[name] = url ? new URL(url, document.baseURI).href.replace(/\/$/, "") : "";
  }
  if (config.hasLabels) labels = await send(`${bases.data}/explorer/labels.json`, {}).catch(() => ({}));
}

// The name that the operator gives an address, on its chain or on all chains.
export function labelOf(chain, address) {
  const key = String(address).toLowerCase();
  return labels[chain]?.[key] ?? labels["*"]?.[key];
}

export const hasNode = () => Boolean(bases.node);
export const hasMetrics = () => Boolean(bases.metrics);
export const baseOf = (name) => bases[name];

export function apiKey(value) {
  try {
    if (value !== undefined) sessionStorage.setItem("icefall-key", value);
    return sessionStorage.getItem("icefall-key") || "";
  } catch {
    return "";
  }
}

function withQuery(url, query) {
  const text = new URLSearchParams(
    Object.entries(query || {}).filter(([, value]) => value !== undefined && value !== "" && value !== null),
  );
  return String(text) ? `${url}?${text}` : url;
}

// The node writes amounts of 64 bits as numbers. Those that a number cannot hold stay text.
function keepLarge(_, value, context) {
  const isLarge = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return isLarge && context?.source ? context.source : value;
}

async function send(url, options, signal) {
  let reply;
  try {
    reply = await fetch(url, { ...options, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError(
      `No answer from ${new URL(url).origin}. Is it running, and does it allow this page (--http-allowed-origins)?`,
    );
  }
  const text = await reply.text();
  let body;
  try {
    body = JSON.parse(text, keepLarge);
  } catch {
    body = null;
  }
  if (!reply.ok && !(body && body.jsonrpc)) {
    throw new CallError([body?.message].flat().join("; ") || `the answer was ${reply.status}`, reply.status);
  }
  return body;
}

// GET of the chain data interface: data`/v1/chains/${id}` encodes what is inserted.
export function path(parts, ...values) {
  return parts.reduce((whole, part, index) => whole + encodeURIComponent(values[index - 1]) + part);
}

async function get(base, target, query, signal) {
  if (!bases[base]) throw new CallError(`This Explorer does not know where the ${base} interface is.`, 404);
  const url = withQuery(bases[base] + target, query);
  calls.set(url, { url });
  showCalls();
  return send(url, { headers: base === "data" ? withKey() : {} }, signal);
}

const withKey = () => (apiKey() ? { "x-service-api-key": apiKey() } : {});

export const data = (target, query, signal) => get("data", target, query, signal);

export const metrics = (target, query, signal) => get("metrics", target, query, signal);

// POST, PATCH or DELETE of the chain data interface.
export async function call(verb, target, given, signal) {
  const url = bases.data + target;
  const body = given === undefined ? undefined : JSON.stringify(given);
  calls.set(`${verb} ${url} ${body}`, { url, body, verb });
  showCalls();
  const headers = given === undefined ? withKey() : { ...withKey(), "content-type": "application/json" };
  return send(url, { method: verb, headers, body }, signal);
}

export async function node(target, method, params = {}, signal) {
  if (!bases.node) throw new CallError("This Explorer does not know where the node's interfaces are.", 404);
  const url = bases.node + target;
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  calls.set(url + body, { url, body });
  showCalls();
  const reply = await send(url, { method: "POST", headers: { "content-type": "application/json" }, body }, signal);
  if (reply?.error)
    throw new CallError(
      reply.error.message || "the node refused the call",
      reply.error.code === NOT_THERE ? 404 : 400,
      reply.error.code,
    );
  return reply?.result;
}

// null where there is nothing: the page then leaves that part out.
export async function maybe(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

// The newest container of an index: undefined where there is none yet, null where there is no such index.
export async function lastContainer(target, signal) {
  try {
    return await node(target, "index.getLastAccepted", { encoding: "hex" }, signal);
  } catch (error) {
    if (error.status !== 404) throw error;
    return error.code === NOT_THERE ? undefined : null;
  }
}

// `isFresh`: with the status that each chain has now. Names and tokens stay as they were when the Explorer was opened.
export async function chains({ isFresh = false } = {}) {
  if (isFresh) chainList = null;
  chainList ??= data("/v1/chains").then(
    (reply) => reply.chains,
    (error) => {
      chainList = null;
      throw error;
    },
  );
  return chainList;
}

export async function chainOf(id, options) {
  return (await chains(options)).find((chain) => chain.chainId === String(id)) || data(path`/v1/chains/${id}`);
}

export function resetCalls() {
  calls = new Map();
  showCalls();
}

let shownLater = 0;
function showCalls() {
  cancelAnimationFrame(shownLater);
  shownLater = requestAnimationFrame(() => {
    const list = document.getElementById("call-list");
    list.replaceChildren(...[...calls.values()].slice(0, 60).map(callItem));
    document.querySelector("#calls summary").textContent =
      calls.size === 1 ? "1 call made by this page" : `${calls.size} calls made by this page`;
  });
}

function callItem({ url, body, verb = body ? "POST" : "GET" }) {
  if (verb === "GET")
    return h("li", {}, h("span.verb", {}, "GET"), h("a", { href: url, target: "_blank", rel: "noopener" }, url));
  const sent = body ? ` -H content-type:application/json -d '${body.replaceAll("'", "'\\''")}'` : "";
  return h("li", {}, h("span.verb", {}, verb), h("code", {}, `curl -X ${verb} ${url}${sent}`));
}
