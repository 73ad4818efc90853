// Event logs, with what is known of them.
import { h, announce } from "./dom.js";
import { data, maybe } from "./api.js";
import { whole } from "./format.js";
import { decodedTable, hasAmount, raw, tokenLookup } from "./decoded.js";
import { address, badge, clip, empty, failure, time, txLink } from "./parts.js";

// `linked`: the logs are of many transactions. `tokens`: those that the page knows already.
export async function logList(target, { chain, signal, query = {}, linked = false, tokens = [] }) {
  const tokenOf = tokenLookup(chain, tokens, signal);
  const items = (logs) => Promise.all(logs.map((log) => logItem(log, { chain, linked, tokenOf })));
  const load = (pageToken) => maybe(data(target, { ...query, pageSize: 25, pageToken }, signal));
  let page = await load();
  if (!page) return empty("Logs are not available here.");
  while (!page.logs.length && page.nextPageToken) page = await load(page.nextPageToken); // a page may be empty before the last
  if (!page.logs.length) return empty("There are no logs.");
  const box = h("div", {}, await items(page.logs));
  const more = h("button.more", { type: "button" }, "Show more");
  more.addEventListener("click", async () => {
    more.disabled = true;
    try {
      page = await load(page.nextPageToken);
      box.append(...(await items(page.logs)));
      announce(`${page.logs.length} more logs`);
    } catch (error) {
      more.before(failure(error));
    }
    more.disabled = false;
    if (!page.nextPageToken) more.remove();
  });
  return h("div.list", {}, box, page.nextPageToken ? more : null);
}

async function logItem(log, { chain, linked, tokenOf }) {
  const decoded = log.decodedLog;
  const token = hasAmount(decoded) ? await tokenOf(log.address) : null;
  const topics = h(
    "dl.topics",
    {},
    log.topics.map((topic, index) => [h("dt", {}, `topic ${index}`), h("dd", {}, topicShown(topic, chain))]),
    log.data && log.data !== "0x" ? [h("dt", {}, "data"), h("dd", {}, dataShown(log.data))] : null,
  );
  return h(
    "div.log",
    {},
    h(
      "div.inline",
      {},
      badge(`log ${log.logIndex}`),
      address(chain, token?.decimals === undefined ? log.address : { ...token, address: log.address }),
      (decoded || log.eventSignature) && h("code.break", {}, clip(decoded?.signature || log.eventSignature, 300)),
      linked && txLink(chain, log.txHash),
      linked && time(log.blockTimestamp),
    ),
    decoded ? [decodedTable(decoded, { chain, token }), raw("Raw topics and data", topics)] : topics,
  );
}

// A topic that holds an address is shown as one.
function topicShown(topic, chain) {
  const isAddress = /^0x0{24}[0-9a-f]{40}$/i.test(topic) && !/^0x0{32}/.test(topic);
  return isAddress ? address(chain, `0x${topic.slice(26)}`, { full: true }) : topic;
}

// One word of data is mostly a number.
function dataShown(text) {
  if (text.length === 66) return [text, h("span.quiet", {}, ` = ${whole(text)}`)];
  return h("pre.data", { tabindex: "0" }, clip(text, 4000));
}
