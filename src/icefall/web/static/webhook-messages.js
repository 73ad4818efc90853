// The messages of a webhook: what became of each, and sending them again.
import { h } from "./dom.js";
import { call, data } from "./api.js";
import { whole } from "./format.js";
import { badge, blockLink, clip, id, later, list, to } from "./parts.js";
import { toNetwork } from "./network.js";
import { action, changeForm, input, isEvm, messageBadge, moment, number, select, spaced, target } from "./webhooks.js";

const PAGE = 20;
const STATUSES = [
  ["", "All"],
  ["pending", "Waiting"],
  ["delivered", "Delivered"],
  ["failed", "Failed"],
  ["dropped", "Dropped"],
];

// `redraw` reads the list again; `follow` does where the counts have changed and no reader is at work in it.
export function messagePart(webhook, names, query, remember, signal) {
  const place = h("div");
  const said = h("div");
  let status = query.get("status") || "";
  let before = null;
  const draw = () =>
    place.replaceChildren(later(() => messageList(webhook, names, status, draw, said, signal), { rows: 5, hideEmpty: false }));
  const onchange = (event) => {
    status = event.target.value;
    remember({ status });
    draw();
  };
  const isInUse = () => place.contains(document.activeElement) || place.querySelector("details[open]");
  const follow = (found) => {
    const now = JSON.stringify(found);
    const isNew = before !== null && now !== before;
    if (isNew && isInUse()) return;
    before = now;
    if (isNew) draw();
  };
  draw();
  const element = spaced(
    "Messages",
    h("div.choices", {}, select("status", "Status", STATUSES, status, { onchange })),
    place,
    said,
    h("details", {}, h("summary", {}, "Send a range again"), replayForm(webhook, draw, signal)),
  );
  return { element, redraw: draw, follow };
}

function messageList(webhook, names, status, redraw, said, signal) {
  return list({
    label: "Messages",
    none: status ? "No message has this status." : "There are no messages yet.",
    columns: columns(webhook, names, redraw, said, signal),
    load: async (pageToken) => {
      const page = await data(target(webhook.id, "/messages"), { pageSize: PAGE, status, pageToken }, signal);
      return { rows: page.messages, next: page.nextPageToken };
    },
  });
}

function columns(webhook, names, redraw, said, signal) {
  const replay = (message) => async () => {
    await call("POST", target(webhook.id, ":replay"), { messageIds: [message.messageId] }, signal);
    redraw();
    return "The message is sent again.";
  };
  return [
    { name: "Message", on: "lead", cell: (row) => [id(row.messageId, { what: "message ID", head: 8 }), kind(row)] },
    { name: "Status", on: "side", cell: (row) => messageBadge(row) },
    { name: "Block", cell: (row) => block(webhook, row) },
    { name: "Transaction", on: "below", cell: (row) => transaction(webhook, names, row) },
    { name: "Made", on: "aside", cell: (row) => moment(row.createdAt) },
    { name: "Attempts", on: "rest", wide: true, cell: (row) => attempts(row) },
    {
      name: "",
      on: "rest",
      right: true,
      cell: (row) => (["delivered", "failed"].includes(row.status) ? action("Send again", replay(row), said) : null),
    },
  ];
}

const kind = (row) => (row.kind === "activity" ? null : [" ", badge(row.kind, row.kind === "removed" ? "warn" : "")]);

function block(webhook, row) {
  if (row.blockNumber === undefined) return "–";
  return isEvm(webhook) ? blockLink(webhook.chainId, row.blockNumber) : h("span.number", {}, whole(row.blockNumber));
}

function transaction(webhook, names, row) {
  if (!row.txHash) return h("span.quiet", {}, row.kind === "test" ? "none: a test" : "none");
  const letter = names.letter(webhook);
  const href = isEvm(webhook) ? to.tx(webhook.chainId, row.txHash) : letter && toNetwork.tx(letter, row.txHash);
  return id(row.txHash, { href, what: "transaction hash" });
}

// What the last attempt ended with, and all of them on request.
function attempts(row) {
  const next = row.nextAttemptAt && row.attempts.length > 0 && h("div.quiet", {}, "next try ", moment(row.nextAttemptAt));
  if (!row.attempts.length) return h("span.quiet", {}, row.status === "pending" ? "not tried yet" : "none");
  const last = row.attempts.at(-1);
  const shown = [outcome(last), `, ${whole(last.durationMsecs)} ms`];
  if (row.attempts.length === 1) return [h("div", {}, shown, ", ", moment(last.attemptedAt)), next];
  return [
    h(
      "details.attempts",
      {},
      h("summary", {}, `${whole(row.attempts.length)} attempts, the last: `, shown),
      h("ol", {}, row.attempts.map((one) => h("li", {}, moment(one.attemptedAt), ": ", outcome(one), `, ${whole(one.durationMsecs)} ms`))),
    ),
    next,
  ];
}

const outcome = (one) => (one.error ? clip(one.error, 160) : `taken with ${one.responseCode}`);

// -- ranges --------------------------------------------------------------------------------------------------------

const seconds = (text) => (text ? Math.floor(Date.parse(`${text}Z`) / 1000) : undefined);

export function replayForm(webhook, redraw, signal) {
  const replayed = async (read) => {
    const lastBlock = number(read("last"));
    const until = seconds(read("until"));
    const range = {
      startBlock: number(read("first")),
      endBlock: lastBlock === undefined ? undefined : lastBlock + 1, // the interface excludes it
      startTimestamp: seconds(read("since")),
      endTimestamp: until === undefined ? undefined : until + 1,
    };
    const { replayed } = await call("POST", target(webhook.id, ":replay"), range, signal);
    redraw();
    return replayed === 1 ? "1 message is sent again." : `${whole(replayed)} messages are sent again.`;
  };
  const block = { type: "number", min: 0, inputmode: "numeric" };
  const moment = { type: "datetime-local", step: 1 };
  const fields = [
    input("first", "First block", block),
    input("last", "Last block", block),
    input("since", "Made since (UTC)", moment),
    input("until", "Made until (UTC)", moment),
  ];
  return changeForm("Send a range again", fields, "Send again", replayed);
}
