// The calls of a transaction as a tree.
import { add, h } from "./dom.js";
import { data, maybe } from "./api.js";
import { decodedTable, errorShown, nameOf, rawData } from "./decoded.js";
import { whole } from "./format.js";
import { address, badge, clip, empty, quantity } from "./parts.js";

const PAGES_MAX = 5; // of 200 calls; a tree of more would not be read

// `tokens`: those that the page knows.
export async function callTree(target, { chain, native, signal, tokens = [] }) {
  const tokenOf = new Map(tokens.map((token) => [token.address.toLowerCase(), token]));
  const all = [];
  let pageToken;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const reply = await maybe(data(target, { pageSize: 200, pageToken }, signal));
    if (!reply) return empty("The calls of this transaction are not available here.");
    all.push(...reply.calls);
    pageToken = reply.nextPageToken;
    if (!pageToken) break;
  }
  const items = new Map();
  const root = h("ul.calls-tree", {});
  for (const call of all) {
    const item = h("li", {}, callRow(call, chain, native), callData(call, chain, tokenOf.get(call.to.toLowerCase())));
    items.set(call.index, item);
    const parent = items.get(call.parentIndex);
    if (!parent) root.append(item);
    else {
      if (parent.lastElementChild.tagName !== "UL") parent.append(h("ul"));
      parent.lastElementChild.append(item);
    }
  }
  return [root, pageToken ? h("p.notice", {}, `Only the first ${whole(all.length)} calls are shown.`) : null];
}

function callRow(call, chain, native) {
  const name = call.methodName || (call.input?.length >= 10 ? call.input.slice(0, 10) : "");
  return h(
    call.isReverted ? "div.call.reverted" : "div.call",
    {},
    badge(call.callType),
    call.isReverted && badge("reverted", "bad"),
    h("span", {}, address(chain, call.from), " → ", call.to ? address(chain, call.to) : h("span.quiet", {}, "none")),
    name && h("code", {}, clip(name, 60)),
    call.value && call.value !== "0" ? quantity(call.value, native.decimals, native.symbol) : null,
    h("span.quiet", {}, `${whole(call.gasUsed)} gas`),
    why(call) && h("span.break", {}, clip(why(call), 200)),
  );
}

const why = (call) => call.revertReason || (call.decodedError ? nameOf(call.decodedError) : call.error);

// What was given and returned. It is made when it is opened: a tree may have a thousand calls.
function callData(call, chain, token) {
  const has = (text) => text && text !== "0x";
  if (!has(call.input) && !has(call.output)) return null;
  const box = h("details.raw", {}, h("summary", {}, call.decodedInput ? "Arguments and data" : "Data"));
  const fill = () => [
    call.decodedInput && decodedTable(call.decodedInput, { chain, token }),
    call.decodedError && errorShown(call.decodedError, { chain, token }),
    has(call.input) && rawData("Input", call.input, !call.decodedInput),
    has(call.output) && rawData("Output", call.output),
    call.isTruncated && h("p.quiet", {}, "Of input and output the first 4 KiB are shown."),
  ];
  box.addEventListener("toggle", () => add(box, fill()), { once: true });
  return box;
}
