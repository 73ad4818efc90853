// The form that stores an ABI file for a contract, with a key made by `icefall keys add --admin`.
import { h } from "./dom.js";
import { CallError, call } from "./api.js";
import { clip } from "./parts.js";
import { changeForm, input } from "./webhooks.js";
import { contractPath } from "./proxy.js";

const WHAT = "A JSON list of declarations, as compilers write it, or an object with the field abi. It needs a key made by ";

export function uploadBox(chain, address, isThere, signal) {
  const file = input("file", "ABI file", { type: "file", accept: ".json,application/json", required: true });
  const note = h("p.quiet.across", {}, WHAT, h("code", {}, "icefall keys add --admin"), ".");
  return h(
    "details.abi-upload",
    {},
    h("summary", {}, isThere ? "Replace this ABI" : "Upload an ABI"),
    changeForm("ABI of this contract", [file, note], "Upload", (_, form) => upload(chain, address, form.elements.file.files[0], signal)),
  );
}

async function upload(chain, address, file, signal) {
  const abi = declarations(file.name, await file.text());
  try {
    await call("POST", `${contractPath(chain, address)}/abi`, { abi }, signal);
  } catch (error) {
    throw error.status === 403 ? new CallError(error.message, 401) : error; // another key helps
  }
  dispatchEvent(new Event("hashchange")); // the whole page is decoded by it
  return "The ABI is stored.";
}

function declarations(name, text) {
  try {
    const found = JSON.parse(text);
    return found?.abi ?? found;
  } catch {
    throw new CallError(`${clip(name, 60)} is not JSON`, 400);
  }
}
