// What the pages of webhooks share: what a webhook and a message look like, and buttons and forms that change something.
import { announce, h } from "./dom.js";
import { apiKey, chains, data, path } from "./api.js";
import { whole } from "./format.js";
import { badge, card, clip, failure, time, to } from "./parts.js";
import { chainLetters } from "./network.js";

export const WEBHOOKS = "/v1/webhooks";
export const toWebhook = (id) => `#/webhooks/${encodeURIComponent(id)}`;
export const target = (id, rest = "") => path`/v1/webhooks/${id}` + rest;
export const isEvm = (webhook) => webhook.eventType === "address_activity";

export const EVENT_TYPES = [
  ["address_activity", "Activity of addresses on an EVM chain"],
  ["primary_network_address_activity", "Activity of addresses on P, X or C"],
  ["validator_activity", "Activity of validators"],
];
export const eventType = (webhook) => EVENT_TYPES.find(([key]) => key === webhook.eventType)?.[1] ?? webhook.eventType;

const MESSAGE_BADGES = { pending: "warn", delivered: "good", failed: "bad", dropped: "" };

export const statusBadge = (webhook) => badge(webhook.status, webhook.status === "active" ? "good" : "bad");
export const messageBadge = (message) => badge(message.status, MESSAGE_BADGES[message.status]);

// Milliseconds since 1970, as the calls about webhooks have them.
export const moment = (millis) => time(Math.floor(millis / 1000));

// The name and the page of the chain of a webhook. Where neither is known, its ID.
export async function chainNames() {
  const [evm, letters] = await Promise.all([chains().catch(() => []), chainLetters().catch(() => new Map())]);
  const known = new Map(evm.map((one) => [one.chainId, one.chainName]));
  return {
    evm,
    of(webhook) {
      if (!isEvm(webhook)) return `${letters.get(webhook.chainId) ?? clip(webhook.chainId, 14)}-Chain`;
      return h("a", { href: to.chain(webhook.chainId) }, clip(known.get(webhook.chainId) || webhook.chainId, 30));
    },
    letter: (webhook) => letters.get(webhook.chainId),
  };
}

export const counts = (id, signal) => data(target(id, "/messages:count"), {}, signal);

export const countFigures = (found) =>
  ["pending", "delivered", "failed", "dropped"].map((status) => [
    { pending: "Waiting", delivered: "Delivered", failed: "Failed", dropped: "Dropped" }[status],
    whole(found[status]),
    { dropped: "block rolled back", pending: waits(found) }[status],
  ]);

const waits = (found) => found.oldestPendingAt && ["the oldest since ", moment(found.oldestPendingAt)];

// Whose webhooks these are, and the way to those of another key.
export function owner(again) {
  if (!apiKey()) return h("span", {}, "of callers on this machine, without an API key");
  const leave = () => {
    apiKey("");
    again();
  };
  return [h("span", {}, "of the API key of this tab"), h("button", { type: "button", onclick: leave }, "Forget the key")];
}

// A card whose parts keep their distance.
export const spaced = (title, ...parts) => card(title, h("div.page", {}, parts));

// -- what changes something ----------------------------------------------------------------------------------------

// Runs a change, and says beside it what became of it.
export async function attempt(run, said, button) {
  if (button?.ariaDisabled) return; // not `disabled`, which would take the keyboard away from it
  if (button) button.ariaDisabled = "true";
  said.replaceChildren();
  try {
    const text = await run();
    if (text) {
      said.replaceChildren(h("p.quiet", {}, text));
      announce(text);
    }
  } catch (error) {
    const again = error.status === 401 ? () => attempt(run, said, button) : undefined; // with the key that is then given
    if (error.name !== "AbortError") said.replaceChildren(failure(error, again));
  }
  if (button) button.ariaDisabled = null;
}

// `sure`: what the button asks before it does what cannot be undone by the next click.
export function action(text, run, said, { sure, kind = "button" } = {}) {
  const button = h(kind, { type: "button" }, text);
  let asked = false;
  const ask = (now) => {
    asked = now;
    button.textContent = now ? sure : text;
    button.classList.toggle("grave", now);
  };
  button.addEventListener("click", async () => {
    if (sure && !asked) return ask(true);
    if (sure) ask(false);
    await attempt(run, said, button);
  });
  if (sure) button.addEventListener("blur", () => ask(false));
  return button;
}

// A form that does not leave the page. `run` gets a function that reads a field by its name.
export function changeForm(label, fields, text, run, { kind = "button" } = {}) {
  const said = h("div");
  const button = h(kind, { type: "submit" }, text);
  const form = h("form.page", { "aria-label": label }, h("div.fields", {}, fields), h("div.actions", {}, button), said);
  const read = (name) => {
    const field = form.elements[name];
    return field?.type === "checkbox" ? field.checked : field?.value.trim() ?? "";
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await attempt(() => run(read, form), said, button);
  });
  return form;
}

// Fields of forms. What is asked of them is checked by the interface too, which says what is wrong.
const labelled = (spec, text, field, note) =>
  h(spec, {}, h("span", {}, text), field, note && h("span.note", {}, note));

export const input = (name, text, { note, across = false, ...rest } = {}) =>
  labelled(across ? "label.across" : "label", text, h("input", { name, ...rest }), note);

export const area = (name, text, { note, value = "", ...rest } = {}) =>
  labelled("label.across", text, h("textarea", { name, spellcheck: "false", ...rest }, value), note);

export const select = (name, text, options, chosen, { note, onchange } = {}) =>
  labelled(
    "label",
    text,
    h("select", { name, onchange }, options.map(([value, shown]) => h("option", { value, selected: value === chosen }, shown))),
    note,
  );

export const checks = (legend, ...all) =>
  h("fieldset.across", {}, h("legend", {}, legend), h("div.checks", {}, all));

export const check = (name, text, checked = false) =>
  h("label.check", {}, h("input", { type: "checkbox", name, checked }), text);

// What messages about transactions of an EVM chain hold besides.
export const contents = (webhook = {}) =>
  checks(
    "Messages also hold",
    check("logs", "the logs of the transaction", webhook.includeLogs),
    check("internals", "its internal transactions", webhook.includeInternalTxs),
  );

// What is written on lines, or apart by spaces or commas.
export const words = (text) => text.split(/[\s,]+/).filter(Boolean);

// The number of a block or a time in seconds; nothing where the field is empty.
export const number = (text) => (text === "" ? undefined : Number(text));
