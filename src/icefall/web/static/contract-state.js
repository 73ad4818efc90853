// What the upstream says of a contract at the newest indexed block: its code, and functions that read. Each answer names
// the block it is of.
import { h } from "./dom.js";
import { CallError, call, data, maybe } from "./api.js";
import { whole } from "./format.js";
import { blockLink, clip, empty, facts, failure, id } from "./parts.js";
import { errorShown, nameOf, rawData, valueShown } from "./decoded.js";
import { declaredAs, typeOf } from "./interface.js";
import { contractPath, proxyOf } from "./proxy.js";

const SHOWN_MAX = 256; // functions of one contract

export async function codeShown(chain, of, signal) {
  const found = await maybe(data(`${contractPath(chain, of)}/code`, {}, signal));
  if (!found) return empty("It has no code at the newest block.");
  return h(
    "div.list",
    {},
    facts([
      ["Size", `${whole(found.size)} bytes`],
      ["Hash of the code", id(found.codeHash, { full: true, what: "hash of the code" })],
      ["At block", blockLink(chain, found.blockNumber)],
    ]),
    rawData("Bytecode", found.code, true),
  );
}

// The functions of its ABI and of that of the implementation; without one, those of many contracts that its code has.
async function readable(chain, of, signal) {
  const proxy = await proxyOf(chain, of, signal);
  const all = [of, proxy?.implementation].filter(Boolean);
  const abis = await Promise.all(all.map((one) => data(`${contractPath(chain, one)}/abi`, {}, signal)));
  const declared = abis.flatMap((one) => one.abi).filter((one) => one.type === "function");
  if (declared.length) return { functions: declared.filter((one) => one.stateMutability === "view"), isKnown: true };
  const codes = await Promise.all(all.map((one) => maybe(data(`${contractPath(chain, one)}/code`, {}, signal))));
  return { functions: codes.flatMap((one) => one?.readFunctions || []), isKnown: false };
}

export async function readFunctions(chain, of, signal) {
  const { functions, isKnown } = await readable(chain, of, signal);
  if (!functions.length)
    return empty(
      isKnown
        ? "Its ABI has no function that only reads."
        : "No ABI of this contract was added here, and none of the functions that many contracts have is in its code.",
    );
  return h(
    "div.list",
    {},
    h(
      "p.quiet",
      {},
      isKnown
        ? "Called in the node of this installation, at the newest indexed block. Nothing is sent to the chain."
        : "Functions of many contracts that its code seems to have. What they return is what the contract says.",
    ),
    h("ul.functions", {}, functions.slice(0, SHOWN_MAX).map((one, index) => functionItem(chain, of, one, index, signal))),
  );
}

export const signatureOf = (one) => `${one.name}(${one.inputs.map(bareType).join(",")})`;

function bareType(one) {
  if (!String(one.type).startsWith("tuple")) return String(one.type);
  return `(${(one.components || []).map(bareType).join(",")})${one.type.slice(5)}`;
}

function functionItem(chain, of, one, index, signal) {
  const key = `read-${index}`;
  const fields = one.inputs.map((input, at) => argument(`${key}-${at}`, input, at));
  const answer = h("div.answer", { "aria-live": "polite" });
  const form = h(
    "form.choices",
    { "aria-label": clip(one.name, 128) },
    fields.map((field) => field.element),
    h("button", {}, "Read"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    answer.setAttribute("aria-busy", "true");
    try {
      const given = fields.map((field) => field.value());
      const found = await call("POST", `${contractPath(chain, of)}/functions:read`, { function: signatureOf(one), arguments: given }, signal);
      answer.replaceChildren(result(chain, found));
    } catch (error) {
      if (error.name !== "AbortError") answer.replaceChildren(failure(error));
    }
    answer.removeAttribute("aria-busy");
  });
  const name = h("code.break", {}, `${clip(one.name, 128)}(${declaredAs(one.inputs)})`);
  return h("li", {}, name, form, answer);
}

// An array or a tuple is written as JSON; everything else as it is.
function argument(key, input, at) {
  const type = typeOf(input);
  const isNested = /[[(]/.test(type);
  const box = h("input", {
    id: key,
    autocomplete: "off",
    spellcheck: "false",
    placeholder: isNested ? "as JSON" : clip(type, 40),
  });
  return {
    element: h("span.field", {}, h("label", { for: key }, `${clip(input.name || String(at), 60)}, ${clip(type, 60)}`), box),
    value: () => {
      const text = box.value.trim();
      if (!isNested) return type === "string" ? box.value : text;
      try {
        return JSON.parse(text);
      } catch {
        throw new CallError(`${clip(input.name || String(at), 60)} is not JSON such as [1, 2]`, 400);
      }
    },
  };
}

function result(chain, found) {
  const where = h("span.quiet", {}, " at block ", blockLink(chain, found.blockNumber));
  if (found.isReverted) {
    const said = found.revertReason || (found.decodedError && nameOf(found.decodedError)) || "without a reason";
    return h(
      "div",
      {},
      h("p.notice.bad", {}, `Reverted: ${clip(said, 300)}`, where),
      found.decodedError && errorShown(found.decodedError, { chain }),
    );
  }
  if (!found.outputs)
    return h("div", {}, h("p.notice", {}, "The answer is not of the types that the ABI names.", where), rawData("Answer", found.output, true));
  if (!found.outputs.length) return h("p", {}, "It returned nothing.", where);
  return h(
    "dl.facts.returned",
    {},
    found.outputs.map((one) =>
      h("div", {}, h("dt", {}, `${clip(one.name, 80)}, ${clip(one.type, 60)}`), h("dd", {}, valueShown(one, chain))),
    ),
    h("div", {}, h("dt", {}, "Read"), h("dd", {}, where)),
  );
}
