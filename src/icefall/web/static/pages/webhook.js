// One webhook: its state, what became of its messages, and what can be done about them.
import { h } from "../dom.js";
import { call, data } from "../api.js";
import { whole } from "../format.js";
import { badge, clip, crumbs, current, facts, figures, header, id, later, list } from "../parts.js";
import { messagePart, replayForm } from "../webhook-messages.js";
import {
  action,
  area,
  chainNames,
  changeForm,
  contents,
  countFigures,
  counts,
  eventType,
  input,
  isEvm,
  moment,
  owner,
  spaced,
  statusBadge,
  target,
  words,
} from "../webhooks.js";

const REFRESH_MS = 3000;
const ADDRESSES_PAGE = 25;

export async function render({ params, query, signal, remember }) {
  const place = h("div.page");
  const draw = () => place.replaceChildren(later(() => ownPart(params.id, query, signal, remember, draw), { rows: 8, hideEmpty: false }));
  draw();
  const title = h("span.mono", {}, params.id);
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Webhooks", "#/webhooks"], [clip(params.id, 13)]),
    header("Webhook", title),
    place,
  );
  return { title: "Webhook", content };
}

async function ownPart(key, query, signal, remember, again) {
  const [webhook, names] = await Promise.all([data(target(key), {}, signal), chainNames()]);
  const messages = messagePart(webhook, names, query, remember, signal);
  return [
    stateCard(webhook, names, messages, again, signal),
    messages.element,
    isEvm(webhook) ? addressesCard(webhook, signal) : null,
    spaced("Change", h("details", {}, h("summary", {}, "Name, description and URL"), editForm(webhook, again, signal))),
  ];
}

// -- state ---------------------------------------------------------------------------------------------------------

function stateCard(webhook, names, messages, again, signal) {
  const said = h("div");
  const isActive = webhook.status === "active";
  const sendTest = async () => {
    await call("POST", target(webhook.id, ":test"), undefined, signal);
    messages.redraw();
    return "A test is on its way: it is the first of the messages.";
  };
  const switchOff = async () => {
    await call("DELETE", target(webhook.id), undefined, signal);
    again();
  };
  const switchOn = async () => {
    await call("PATCH", target(webhook.id), { status: "active" }, signal);
    again();
  };
  // A webhook may be switched off while it is looked at.
  const refreshed = async () => {
    const [now, found] = await Promise.all([data(target(webhook.id), {}, signal), counts(webhook.id, signal)]);
    if (now.status !== webhook.status) return again();
    messages.follow(found);
    return figures(countFigures(found));
  };
  return spaced(
    webhook.name || "State",
    facts([
      ["Status", statusBadge(webhook), " ", webhook.statusReason && h("span", {}, clip(webhook.statusReason, 300))],
      webhook.description && ["Description", clip(webhook.description, 1000)],
      ["About", eventType(webhook), subject(webhook)],
      ["Chain", names.of(webhook)],
      ["URL", h("span.mono.break", {}, webhook.url)],
      ["Matched from block", webhook.startBlock === undefined ? "the next one on" : whole(webhook.startBlock)],
      ["Sent", ...manner(webhook)],
      ["Created", moment(webhook.createdAt)],
      ["Owner", h("span.actions", {}, owner(again))],
    ]),
    h("section", { "aria-label": "Number of messages" }, h("h3", {}, "Messages of the last 30 days"), current(refreshed, REFRESH_MS, signal)),
    h(
      "div.actions",
      {},
      isActive && action("Send a test", sendTest, said),
      isActive && action("Switch off", switchOff, said, { sure: "Switch it off now?" }),
      !isActive && action("Switch on", switchOn, said, { kind: "button.primary" }),
      !isActive && h("span.quiet", {}, "What failed in the last two days is tried again. Blocks stored meanwhile were not matched."),
    ),
    said,
  );
}

function manner(webhook) {
  const blocks = webhook.confirmations === 1 ? "a block is" : `${whole(webhook.confirmations)} blocks are`;
  const after = webhook.confirmations ? `when ${blocks} above the block` : "as soon as the block is stored";
  const rest = [
    webhook.ordered && badge("one after the other"),
    webhook.includeLogs && badge("with logs"),
    webhook.includeInternalTxs && badge("with internal transactions"),
  ];
  return [after, ...rest.filter(Boolean).flatMap((one) => [" ", one])];
}

// Keys and sub-events of a webhook of the primary network, and topics of one of an EVM chain.
function subject(webhook) {
  const { keys, subEvents, eventSignatures, balanceThresholdFilter, ...rest } = webhook.metadata;
  const wanted = Object.values(subEvents || {}).flat();
  const threshold = balanceThresholdFilter
    ? `${balanceThresholdFilter.balanceType} ${whole(balanceThresholdFilter.balanceThreshold)} nAVAX`
    : rest.l1ValidatorFeeBalanceThreshold && `${whole(rest.l1ValidatorFeeBalanceThreshold)} nAVAX`;
  return [
    wanted.map((one) => [" ", badge(one)]),
    threshold && h("div.quiet", {}, `Threshold: ${threshold}`),
    [...(keys || []), ...(rest.nodeIds || []), ...(rest.subnetIds || [])]
      .slice(0, 20)
      .map((one) => h("div", {}, id(one, { what: "key", head: 14 }))),
    (eventSignatures || []).map((one) => h("div", {}, "only with topic ", id(one, { what: "topic", head: 14 }))),
  ];
}

// -- addresses -----------------------------------------------------------------------------------------------------

function addressesCard(webhook, signal) {
  const place = h("div");
  const said = h("div");
  const draw = () => place.replaceChildren(later(() => addressList(webhook, draw, said, signal), { rows: 3, hideEmpty: false }));
  const added = async (read, form) => {
    const { length } = words(read("addresses"));
    await call("PATCH", target(webhook.id, "/addresses"), { addresses: words(read("addresses")) }, signal);
    form.reset();
    draw();
    return length === 1 ? "The address is watched from the next block on." : "They are watched from the next block on.";
  };
  draw();
  const fields = [area("addresses", "Addresses", { required: true, note: "On lines, or apart by commas." })];
  return spaced(
    "Addresses",
    place,
    said,
    h("details", {}, h("summary", {}, "Add addresses"), changeForm("Add addresses", fields, "Add", added)),
  );
}

function addressList(webhook, redraw, said, signal) {
  const remove = (address) => async () => {
    await call("DELETE", target(webhook.id, "/addresses"), { addresses: [address] }, signal);
    redraw();
  };
  return list({
    label: "Addresses",
    columns: [
      { name: "Address", on: "lead", cell: (address) => id(address, { what: "address", href: `#/chain/${webhook.chainId}/address/${address}`, head: 12, tail: 8 }) },
      { name: "", on: "side", right: true, cell: (address) => action("Remove", remove(address), said, { sure: "Remove it?" }) },
    ],
    load: async (pageToken) => {
      const page = await data(target(webhook.id, "/addresses"), { pageSize: ADDRESSES_PAGE, pageToken }, signal);
      return { rows: page.addresses, next: page.nextPageToken };
    },
  });
}

// -- changes -------------------------------------------------------------------------------------------------------

function editForm(webhook, again, signal) {
  const changed = async (read) => {
    const given = { name: read("name"), description: read("description"), url: read("url") };
    if (isEvm(webhook)) Object.assign(given, { includeLogs: read("logs"), includeInternalTxs: read("internals") });
    await call("PATCH", target(webhook.id), given, signal);
    again();
  };
  const fields = [
    input("name", "Name", { value: webhook.name, maxlength: 1000 }),
    input("description", "Description", { value: webhook.description, maxlength: 1000 }),
    input("url", "URL", { value: webhook.url, type: "url", required: true, maxlength: 2048, across: true }),
    isEvm(webhook) && contents(webhook),
  ];
  return changeForm("Change the webhook", fields, "Save", changed);
}
