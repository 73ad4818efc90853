// The interface (ABI) of a contract: its functions, events and errors, as they were added for this installation.
import { h } from "./dom.js";
import { data } from "./api.js";
import { badge, clip, empty } from "./parts.js";
import { uploadBox } from "./abi-upload.js";
import { raw } from "./decoded.js";
import { contractPath, proxyOf } from "./proxy.js";
import { short } from "./format.js";

const GROUPS = [
  ["Functions that only read", (one) => one.type === "function" && one.stateMutability === "view"],
  ["Functions that change something", (one) => one.type === "function" && one.stateMutability !== "view"],
  ["Events", (one) => one.type === "event"],
  ["Errors", (one) => one.type === "error"],
];

export async function interfaceList(chain, address, signal) {
  const { abi } = await data(`${contractPath(chain, address)}/abi`, {}, signal);
  const proxy = abi.length ? null : await proxyOf(chain, address, signal);
  return h("div.list", {}, abi.length ? declared(abi) : missing(chain, proxy), uploadBox(chain, address, abi.length > 0, signal));
}

const declared = (abi) => [
  GROUPS.map(([name, isOf]) => group(name, abi.filter(isOf))),
  raw("ABI as JSON", h("pre.data", { tabindex: "0" }, clip(JSON.stringify(abi, null, 1), 200000))),
];

function missing(chain, proxy) {
  if (!proxy) return empty("No ABI of this contract was added here. It is decoded by common signatures.");
  return h(
    "p.state",
    {},
    "No ABI of this proxy was added here. It is decoded by that of ",
    h("a.mono", { href: `#/chain/${encodeURIComponent(chain)}/contract/${proxy.implementation}?tab=abi` }, short(proxy.implementation)),
    ", if there is one.",
  );
}

function group(name, found) {
  if (!found.length) return null;
  return h("section", { "aria-label": name }, h("h3", {}, `${name} (${found.length})`), h("ul.declared", {}, found.map(item)));
}

function item(one) {
  return h("li", {}, h("code.break", {}, `${clip(one.name, 128)}(${declaredAs(one.inputs)})`), one.outputs?.length ? returned(one) : null);
}

const returned = (one) => [" ", badge("returns"), " ", h("code.break", {}, declaredAs(one.outputs))];

export const declaredAs = (parameters) =>
  clip((parameters || []).map((one) => [typeOf(one), one.indexed && "indexed", one.name].filter(Boolean).join(" ")).join(", "), 600);

export function typeOf(one) {
  return String(one.type).startsWith("tuple") ? `(${declaredAs(one.components)})${one.type.slice(5)}` : one.type;
}
