// How far a chain is and how much happens on it: of the cards on the home page and of the page of a chain.
import { h } from "./dom.js";
import { data, hasMetrics, maybe, metrics, path } from "./api.js";
import { dateTime, figure, whole } from "./format.js";
import { figures } from "./parts.js";
import { axisLine } from "./sparkline.js";

const BLOCKS = 40; // drawn where there are not two days yet

// `tipOf` makes the element that shows the newest block. It is asked for when everything else is there, so that what is
// on the page stays whole until it is replaced.
export async function chainFigures(chain, signal, tipOf) {
  const base = path`/v1/chains/${chain.chainId}`;
  const measured = path`/v2/chains/${chain.chainId}`;
  const [page, index, days, rolling] = await Promise.all([
    data(`${base}/blocks`, { pageSize: 1 }, signal),
    maybe(data(`${base}/indexing`, {}, signal)),
    measure(`${measured}/metrics/txCount`, { timeInterval: "day", pageSize: 30 }, signal),
    measure(`${measured}/rollingWindowMetrics/avgTps`, {}, signal),
  ]);
  if (!page.blocks.length)
    return h(
      "p.quiet",
      {},
      "No block is indexed yet. ",
      h("a.in-text", { href: "#/operations" }, "Operations"),
      " shows why.",
    );
  const drawn = await activity(base, days?.results || [], signal);
  const isKnown = index?.headBlock !== undefined && index.lastBlock !== undefined;
  const lag = isKnown ? Math.max(0, Number(index.headBlock) - Number(index.lastBlock)) : 0;
  const tps = rolling?.result;
  return [
    figures([
      ["Tip", tipOf(page.blocks[0])],
      isKnown && ["Lag", whole(lag), lag === 1 ? "block" : "blocks"],
      tps && ["TPS, last day", figure(tps.lastDay), `${figure(tps.allTime)} overall`],
      ["Transactions", whole(page.blocks[0].cumulativeTransactions), "in all"],
    ]),
    drawn,
  ];
}

// Transactions of each day as a line, or of each block while the chain is younger than two days.
async function activity(base, days, signal) {
  if (days.length > 1) {
    const points = [...days].reverse();
    const labels = points.map((point) => dateTime(point.timestamp).slice(0, 10));
    return line(points.map((point) => point.value), labels, "days", "a day");
  }
  const page = await maybe(data(`${base}/blocks`, { pageSize: BLOCKS }, signal));
  const blocks = [...(page?.blocks || [])].reverse();
  const labels = blocks.map((block) => `block ${whole(block.blockNumber)}`);
  return blocks.length > 1 ? line(blocks.map((block) => Number(block.txCount)), labels, "blocks", "a block") : null;
}

function line(counts, labels, what, each) {
  const most = `Last ${counts.length} ${what}, up to ${figure(Math.max(...counts))} transactions ${each}`;
  return h("div.spark", {}, axisLine(counts, labels, figure), h("span.note", {}, most));
}

// Figures of the metrics interface. The page is of use without them.
const measure = (target, query, signal) => (hasMetrics() ? metrics(target, query, signal).catch(() => null) : null);
