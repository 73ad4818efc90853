// The chains, and what happens on them now.
import { h } from "../dom.js";
import { chains, data, hasMetrics, hasNode, maybe, metrics, node, path } from "../api.js";
import { figure, whole } from "../format.js";
import { latest } from "../latest.js";
import { badge, blockLink, card, empty, figures, later, time, to } from "../parts.js";
import { sparkline } from "../sparkline.js";

const DETAILED_MAX = 12; // chains whose figures are fetched
const NO_CHAIN = "No EVM chain is indexed here. One is added as a [[chain]] of icefall.toml.";

export async function render({ signal }) {
  const all = await chains();
  const names = new Map(all.map((chain) => [chain.chainId, chain.chainName || chain.chainId]));
  const tokens = new Map(all.map((chain) => [chain.chainId, chain.networkToken]));
  const cards = new Map(all.slice(0, DETAILED_MAX).map((chain) => [chain.chainId, new ChainCard(chain, signal)]));
  const elements = [...cards.values()].map((one) => one.element);
  const onBlock = (block) => cards.get(block.chainId)?.show(block);
  const content = h(
    "div.page",
    {},
    h("h1.hidden", { tabindex: "-1" }, "Home"),
    hasNode() ? later(() => primary(signal), { rows: 2 }) : null,
    all.length
      ? h("section", { "aria-label": "Chains" }, h("div.grid.fit", {}, elements))
      : card("Chains", empty(NO_CHAIN)),
    all.length > DETAILED_MAX ? others(all.slice(DETAILED_MAX)) : null,
    all.length ? latest({ names, tokens, signal, onBlock }) : null,
  );
  return { title: "Icefall", content };
}

// Heights of X, P and C, and the health of the node. Without an answer they are left out: Operations says why.
async function primary(signal) {
  const report = await node("/ext/health", "health.health", {}, signal).catch(() => null);
  if (!report) return null;
  const failed = Object.values(report.checks || {}).filter((check) => check.error).length;
  const height = (name) => report.checks?.[name]?.message?.engine?.consensus?.lastAcceptedHeight;
  const link = (name) => h("a", { href: name === "X" ? "#/x" : `#/containers/${name}` }, whole(height(name)));
  const verdict = failed ? badge(`${failed} checks fail`, "bad") : badge("All checks pass", "good");
  const shown = ["X", "P", "C"].filter((name) => height(name) !== undefined);
  const section = h("section.card", { "aria-label": "Primary network" });
  section.append(
    figures([
      ...shown.map((name) => [`${name}-Chain height`, link(name)]),
      ["Health", h("a", { href: "#/operations" }, verdict)],
    ]),
  );
  return section;
}

class ChainCard {
  constructor(chain, signal) {
    this.chain = chain;
    this.signal = signal;
    this.tip = h("span", {}, "–");
    const name = h("a", { href: to.chain(chain.chainId) }, chain.chainName || chain.chainId);
    const status = chain.status === "OK" ? badge("OK", "good") : badge(chain.status.toLowerCase(), "bad");
    const body = later(() => this.load(), { rows: 3, hideEmpty: false });
    this.element = h("article.card.chain-card", {}, h("div.chain-title", {}, name, status), body);
  }

  show(block) {
    const number = blockLink(this.chain.chainId, block.blockNumber);
    this.tip.replaceChildren(number, h("span.note", {}, time(block.blockTimestamp)));
  }

  async load() {
    const { chain, signal } = this;
    const base = path`/v1/chains/${chain.chainId}`;
    const measured = path`/v2/chains/${chain.chainId}`;
    const [page, index, days, rolling] = await Promise.all([
      data(`${base}/blocks`, { pageSize: 1 }, signal),
      maybe(data(`${base}/indexing`, {}, signal)),
      measure(`${measured}/metrics/txCount`, { timeInterval: "day", pageSize: 30 }, signal),
      measure(`${measured}/rollingWindowMetrics/avgTps`, {}, signal),
    ]);
    if (page.blocks.length) this.show(page.blocks[0]);
    const isKnown = index?.headBlock !== undefined && index.lastBlock !== undefined;
    const lag = isKnown ? Math.max(0, Number(index.headBlock) - Number(index.lastBlock)) : 0;
    const tps = rolling?.result;
    const counts = (days?.results || []).map((point) => point.value).reverse();
    const most = `${counts.length} days, up to ${figure(Math.max(...counts))} transactions a day`;
    return [
      figures([
        ["Tip", this.tip],
        isKnown && ["Lag", whole(lag), lag === 1 ? "block" : "blocks"],
        tps && ["TPS", figure(tps.lastDay), `${figure(tps.allTime)} overall`],
      ]),
      counts.length > 1 ? h("div.spark", {}, h("span.note", {}, most), sparkline(counts)) : null,
    ];
  }
}

// Figures of the metrics interface. The page is of use without them.
const measure = (target, query, signal) => (hasMetrics() ? metrics(target, query, signal).catch(() => null) : null);

function others(rest) {
  const links = rest.map((chain) => h("a.badge", { href: to.chain(chain.chainId) }, chain.chainName || chain.chainId));
  return card("Further chains", h("p", {}, links));
}
