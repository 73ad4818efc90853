// Says on an open page that there is something newer than what it shows, and shows it when the reader asks: rows do not
// move under the pointer by themselves.
import { announce, h } from "./dom.js";
import { data, path } from "./api.js";
import { listen } from "./live.js";

const POLL_MS = 30000;

// `query` chooses the events of the live stream of a chain, `kinds` those that count; `newest()` answers what changes with
// something new, for installations whose stream needs a key. `what`: its name, for one and for many.
export function newer({ chain, query, kinds, newest, what: [one, many] }, signal) {
  const seen = new Set();
  const button = h("button.newer", { type: "button", hidden: true });
  button.addEventListener("click", () => dispatchEvent(new Event("hashchange"))); // loads the page again
  const say = (text) => {
    if (signal.aborted) return;
    if (button.hidden) announce(text);
    button.textContent = `${text}. Show`;
    button.hidden = false;
  };
  // The stream begins with the newest block, which the page shows already.
  const tip = data(path`/v1/chains/${chain}/blocks`, { pageSize: 1 }, signal).then(
    (page) => BigInt(page.blocks[0]?.blockNumber ?? -1),
    () => null,
  );
  const arrive = async (row) => {
    const shown = await tip;
    if (shown === null || BigInt(row.blockNumber) <= shown) return;
    seen.add(row.txHash || row.blockHash);
    say(seen.size === 1 ? `1 newer ${one}` : `${seen.size} newer ${many}`);
  };
  const handlers = {
    rollback: () => say("The newest blocks were replaced"),
    skipped: () => say(`There are newer ${many}`),
    opened: () => {},
    interrupted: () => {},
    refused: () => poll(newest, () => say(`There are newer ${many}`), signal),
  };
  for (const kind of kinds) handlers[kind] = (row) => arrive(row.transfer || row);
  listen({ chainId: chain, ...query }, handlers, signal);
  return button;
}

async function poll(newest, found, signal) {
  const first = await newest().catch(() => undefined);
  const timer = setInterval(async () => {
    if (document.hidden) return;
    const now = await newest().catch(() => undefined);
    if (now !== undefined && first !== undefined && now !== first) found();
  }, POLL_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
}
