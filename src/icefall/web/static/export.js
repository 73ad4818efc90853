// What an address did, or how a token moved, as files for a spreadsheet: a job that is ordered here, watched, and
// cancelled or downloaded. Its ID is kept in the tab, so a reload or a look at another page loses nothing.
import { announce, h } from "./dom.js";
import { baseOf, call, data, path } from "./api.js";
import { whole } from "./format.js";
import { clip, exactTime, failure } from "./parts.js";
import { action, changeForm, input } from "./webhooks.js";

const OPERATIONS = "/v1/operations";
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5000;
const RETRY_MS = 15_000; // after an answer that says: later
const LATER = [0, 429, 503];

const STATUSES = {
  RUNNING: "The files are being made",
  COMPLETED: "The files are ready",
  COMPLETED_WITH_WARNING: "The files are ready, but do not hold everything",
  FAILED: "There are no files",
};

// Where the job of a page is kept, what it takes, and how that is said.
const ofAddress = (chain, address) => ({
  key: `${chain}/${address.toLowerCase()}`,
  options: { addresses: [address], includeChains: [chain] },
  says: "Its transactions and transfers as CSV files in a ZIP archive. Without days: all of it.",
});
const ofToken = (chain, token) => ({
  key: `${chain}/token/${token.toLowerCase()}`,
  options: { tokens: [token], includeChains: [chain] },
  says: "Its transfers, by all holders, as CSV files in a ZIP archive. Without days: all of them.",
});

export const exportBox = (chain, address, signal) => box(ofAddress(chain, address), signal);
export const tokenExportBox = (chain, token, signal) => box(ofToken(chain, token), signal);

// The ID of the job of a page. Where the browser keeps nothing, it lasts as long as the page.
function kept(key) {
  const name = `icefall-export/${key}`;
  let here = "";
  return (given) => {
    if (given !== undefined) here = given;
    try {
      if (given !== undefined) given ? sessionStorage.setItem(name, given) : sessionStorage.removeItem(name);
      return sessionStorage.getItem(name) || "";
    } catch {
      return here;
    }
  };
}

// Closed until it is wanted, and open where a job was ordered in this tab.
function box(wanted, signal) {
  const job = kept(wanted.key);
  const place = h("div.page");
  const order = (note) => place.replaceChildren(...[note, orderForm(wanted, signal, start)].filter(Boolean));
  const again = () => {
    job("");
    order();
    place.querySelector("input").focus();
  };
  const start = (id) => {
    job(id);
    const shown = jobView(id, signal, again);
    const hadFocus = place.contains(document.activeElement);
    place.replaceChildren(shown.element);
    if (hadFocus) shown.element.focus();
    watch(id, shown, { job, order, retry: () => start(id) }, signal);
  };
  job() ? start(job()) : order();
  return h("details.export", { open: Boolean(job()) }, h("summary", {}, "Export"), h("div.card", {}, place));
}

function orderForm({ options, says }, signal, start) {
  const day = (name, text) => input(name, text, { type: "date" });
  return changeForm(
    "Export",
    [
      h("p.across.quiet", {}, says),
      day("first", "First day (UTC)"),
      day("last", "Last day (UTC)"),
    ],
    "Make the files",
    async (read) => {
      const wanted = {
        type: "TRANSACTION_EXPORT_EVM",
        options,
        firstDate: read("first") || undefined,
        lastDate: read("last") || undefined,
      };
      const made = await call("POST", `${OPERATIONS}/transactions:export`, wanted, signal);
      start(made.operationId);
    },
  );
}

// A job, changed in place: the keyboard may be at its button.
function jobView(id, signal, again) {
  const text = h("p", { role: "status" }, "Reading how far it is");
  const bar = h("progress.progress", { max: 100, "aria-label": "Progress of the export" });
  const said = h("div");
  const place = h("div.actions");
  const end = async () => (view.update(await call("DELETE", path`/v1/operations/${id}`, undefined, signal)), "");
  const view = {
    element: h("div.page", { tabindex: "-1" }, text, bar, place, said),
    hasEnded: false,
    update(found) {
      const { operationStatus: status, metadata } = found;
      said.replaceChildren();
      view.hasEnded = status !== "RUNNING";
      bar.value = metadata.progress;
      bar.hidden = view.hasEnded;
      text.replaceChildren(...spoken(found));
      if (!view.hasEnded) {
        if (!place.childElementCount) place.append(action("Cancel", end, said, { sure: "Cancel it now?" }));
        return;
      }
      const hadFocus = place.contains(document.activeElement);
      const another = h("button", { type: "button", onclick: again }, "New export");
      const url = metadata.downloadUrl;
      const link = url && h("a.step", { href: linkOf(url), download: "" }, "Download");
      place.replaceChildren(another);
      if (link) another.before(link);
      if (link) another.after(action("Remove the files", end, said, { sure: "Remove them now?" }));
      if (hadFocus) (link || another).focus();
    },
    fail: (...parts) => said.replaceChildren(...parts),
  };
  return view;
}

function spoken({ operationStatus, message, metadata }) {
  const { progress, rows, expiresAt, nextDate, downloadUrl } = metadata;
  const counted = `${whole(rows)} ${rows === 1 ? "row" : "rows"}`;
  if (operationStatus === "RUNNING") return [`${STATUSES.RUNNING}: ${progress} % of the days, ${counted}.`];
  return [
    `${downloadUrl || operationStatus === "FAILED" ? STATUSES[operationStatus] : "The files have been removed"}`,
    message ? `: ${clip(message, 300)}. ` : ". ",
    operationStatus !== "FAILED" && `They have ${counted}. `,
    nextDate && `What is missing begins at ${nextDate}. `,
    downloadUrl && expiresAt && [`They are kept until `, exactTime(expiresAt), "."],
  ]
    .flat()
    .filter(Boolean);
}

// The file lies where this interface is, whatever name of it the server knows: a proxy may have another one, or TLS.
function linkOf(url) {
  const { pathname, search } = new URL(url);
  return baseOf("data") + pathname.slice(pathname.indexOf(`${OPERATIONS}/`)) + search;
}

// Reads the job until it has ended: soon at first, because most are short.
async function watch(id, shown, { job, order, retry }, signal) {
  let wait = FIRST_WAIT_MS;
  while (!signal.aborted && job() === id && !shown.hasEnded) {
    let next = (wait = Math.min(wait * 1.5, LONGEST_WAIT_MS));
    try {
      const found = await data(path`/v1/operations/${id}`, {}, signal);
      if (shown.hasEnded || job() !== id) return; // it was cancelled meanwhile
      shown.update(found);
      if (shown.hasEnded) return announce(STATUSES[found.operationStatus]);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 404) {
        job("");
        return order(h("p.notice", {}, "The export that was ordered here is no longer there."));
      }
      const isOver = !LATER.includes(error.status);
      shown.fail(failure(error, isOver ? retry : undefined));
      if (isOver) return;
      next = RETRY_MS;
    }
    await pause(next, signal);
  }
}

const pause = (millis, signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, millis);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });
