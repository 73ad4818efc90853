// Event logs, with what is known of them.
import { h, announce } from "./dom.js";
import { data, maybe } from "./api.js";
import { whole } from "./format.js";
import { address, badge, clip, empty, failure, time, txLink } from "./parts.js";

// `linked`: the logs are of many transactions.
export async function logList(target, { chain, signal, query = {}, linked = false }) {
  const load = (pageToken) => maybe(data(target, { ...query, pageSize: 25, pageToken }, signal));
  let page = await load();
  if (!page) return empty("Logs are not available here.");
  while (!page.logs.length && page.nextPageToken) page = await load(page.nextPageToken); // a page may be empty before the last
  if (!page.logs.length) return empty("There are no logs.");
  const box = h(
    "div",
    {},
    page.logs.map((log) => logItem(log, chain, linked)),
  );
  const more = h("button.more", { type: "button" }, "Show more");
  more.addEventListener("click", async () => {
    more.disabled = true;
    try {
      page = await load(page.nextPageToken);
      box.append(...page.logs.map((log) => logItem(log, chain, linked)));
      announce(`${page.logs.length} more logs`);
    } catch (error) {
      more.before(failure(error));
    }
    more.disabled = false;
    if (!page.nextPageToken) more.remove();
  });
  return h("div.list", {}, box, page.nextPageToken ? more : null);
}

function logItem(log, chain, linked) {
  return h(
    "div.log",
    {},
    h(
      "div.inline",
      {},
      badge(`log ${log.logIndex}`),
      address(chain, log.address),
      log.eventSignature && h("code", {}, clip(log.eventSignature, 120)),
      linked && txLink(chain, log.txHash),
      linked && time(log.blockTimestamp),
    ),
    h(
      "dl.topics",
      {},
      log.topics.map((topic, index) => [h("dt", {}, `topic ${index}`), h("dd", {}, topicShown(topic, chain))]),
      log.data && log.data !== "0x" ? [h("dt", {}, "data"), h("dd", {}, dataShown(log.data))] : null,
    ),
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
