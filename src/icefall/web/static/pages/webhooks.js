// The webhooks of the caller, and the secret that their messages are signed with.
import { h } from "../dom.js";
import { call, data, maybe } from "../api.js";
import { whole } from "../format.js";
import { clip, crumbs, empty, facts, header, id, later, list } from "../parts.js";
import { WEBHOOKS, action, chainNames, counts, eventType, moment, owner, select, spaced, statusBadge, toWebhook } from "../webhooks.js";

const STATUSES = [["", "All"], ["active", "Active"], ["inactive", "Switched off"]];
const PAGE = 25;

export async function render({ query, signal, remember }) {
  const place = h("div.page");
  const draw = () => place.replaceChildren(later(() => ownPart(query, signal, remember, draw), { rows: 5 }));
  draw();
  const content = h("div.page", {}, crumbs(["Home", "#/"], ["Webhooks"]), header("Messages to your servers", "Webhooks"), place);
  return { title: "Webhooks", content };
}

// One read first: where a key is needed, it is asked for once.
async function ownPart(query, signal, remember, again) {
  await data(WEBHOOKS, { pageSize: 1 }, signal);
  const names = await chainNames();
  const place = h("div");
  const draw = (status) => place.replaceChildren(later(() => webhookList(status, names, signal), { rows: 5, hideEmpty: false }));
  const chosen = query.get("status") || "";
  const onchange = (event) => {
    remember({ status: event.target.value });
    draw(event.target.value);
  };
  draw(chosen);
  return [
    spaced(
      "Webhooks",
      h("div.card-head", {}, h("p.actions.quiet", {}, owner(again)), h("a.step", { href: "#/webhooks/new" }, "New webhook")),
      h("div.choices", {}, select("status", "Status", STATUSES, chosen, { onchange })),
      place,
    ),
    secretCard(signal),
  ];
}

function webhookList(status, names, signal) {
  return list({
    label: "Webhooks",
    none: status ? "None of them has this status." : "There are none yet.",
    columns: columns(names, signal),
    load: async (pageToken) => {
      const page = await data(WEBHOOKS, { pageSize: PAGE, status, pageToken }, signal);
      return { rows: page.webhooks, next: page.nextPageToken };
    },
  });
}

function columns(names, signal) {
  const known = new Map();
  const countsOf = (row) => {
    if (!known.has(row.id)) known.set(row.id, counts(row.id, signal));
    return known.get(row.id);
  };
  const count = (row, status) => {
    const place = h("span.number", {}, "…");
    countsOf(row).then((found) => (place.textContent = whole(found[status])), () => (place.textContent = "–"));
    return place;
  };
  return [
    {
      name: "Name",
      on: "lead",
      cell: (row) => h("a", { href: toWebhook(row.id), title: row.id }, clip(row.name || row.id.slice(0, 8), 40)),
    },
    { name: "About", cell: (row) => clip(eventType(row), 60) },
    { name: "Chain", on: "aside", cell: (row) => names.of(row) },
    { name: "URL", on: "below", wide: true, cell: (row) => h("span.mono", { title: row.url }, clip(row.url, 60)) },
    { name: "Status", on: "side", cell: (row) => statusBadge(row) },
    { name: "Waiting", right: true, cell: (row) => count(row, "pending") },
    { name: "Delivered", right: true, cell: (row) => count(row, "delivered") },
    { name: "Failed", right: true, cell: (row) => count(row, "failed") },
    { name: "Created", cell: (row) => moment(row.createdAt) },
    { name: "Why it is off", phone: true, on: "rest", cell: (row) => row.statusReason && clip(row.statusReason, 200) },
  ];
}

// The secret is read when its owner asks to see it.
function secretCard(signal) {
  const said = h("div");
  const place = h("div");
  const show = (secret) =>
    place.replaceChildren(
      facts([
        ["In hex", id(secret.secret, { what: "secret", full: true })],
        ["For Standard Webhooks", id(secret.standardSecret, { what: "secret for Standard Webhooks", full: true })],
      ]),
    );
  const read = async () => {
    const found = await maybe(data(`${WEBHOOKS}:getSharedSecret`, {}, signal));
    found ? show(found) : place.replaceChildren(empty("There is none yet: the first webhook makes one."));
  };
  const rotate = async () => {
    show(await call("POST", `${WEBHOOKS}:generateOrRotateSharedSecret`, undefined, signal));
    return "This is the new secret. For 24 hours webhook-signature has the signature of the one before, too.";
  };
  return spaced(
    "Secret",
    h("p.quiet", {}, "Every message is signed with it, so that a receiver can tell it from a forged one."),
    place,
    h("div.actions", {}, action("Show", read, said), action("Make a new one", rotate, said, { sure: "Replace it now?" })),
    said,
  );
}
