// The chains, and what happens on them now.
import { h } from "../dom.js";
import { chains, hasNode, node } from "../api.js";
import { chainFigures } from "../chain-figures.js";
import { whole } from "../format.js";
import { latest } from "../latest.js";
import { badge, blockLink, card, empty, figures, later, time, to } from "../parts.js";

const DETAILED_MAX = 12; // chains whose figures are fetched
const NO_CHAIN = "No EVM chain is indexed here. One is added as a [[chain]] of icefall.toml.";

export async function render({ signal }) {
  const all = await chains();
  const names = new Map(all.map((chain) => [chain.chainId, chain.chainName || chain.chainId]));
  const tokens = new Map(all.map((chain) => [chain.chainId, chain.networkToken]));
  const cards = new Map(all.slice(0, DETAILED_MAX).map((chain) => [chain.chainId, new ChainCard(chain, signal)]));
  const elements = [...cards.values()].map((one) => one.element);
  const onBlock = (block) => cards.get(block.chainId)?.show(block);
  const report = hasNode() ? node("/ext/health", "health.health", {}, signal).catch(() => null) : Promise.resolve(null);
  const content = h(
    "div.page",
    {},
    h(
      "header.home-head",
      {},
      h("h1", { tabindex: "-1" }, "Chains"),
      hasNode() ? later(() => health(report), { rows: 1 }) : null,
    ),
    all.length ? h("section", { "aria-label": "Chains" }, h("div.grid.fit", {}, elements)) : card("", empty(NO_CHAIN)),
    all.length > DETAILED_MAX ? others(all.slice(DETAILED_MAX)) : null,
    all.length ? latest({ names, tokens, signal, onBlock }) : null,
    hasNode() ? later(() => primary(report), { rows: 2 }) : null,
  );
  return { title: "Icefall", content };
}

// Without an answer of the node both are left out: Operations says why.
async function health(report) {
  const found = await report;
  if (!found) return null;
  const failed = Object.values(found.checks || {}).filter((check) => check.error).length;
  const verdict = failed
    ? badge(failed === 1 ? "1 check fails" : `${failed} checks fail`, "bad")
    : badge("All checks pass", "good");
  return h("a", { href: "#/operations" }, verdict);
}

async function primary(report) {
  const found = await report;
  const height = (name) => found?.checks?.[name]?.message?.engine?.consensus?.lastAcceptedHeight;
  const shown = ["X", "P", "C"].filter((name) => height(name) !== undefined);
  if (!shown.length) return null;
  const link = (name) => h("a", { href: name === "X" ? "#/x" : `#/containers/${name}` }, whole(height(name)));
  return card("Primary network", figures(shown.map((name) => [`${name}-Chain height`, link(name)])));
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

  load() {
    return chainFigures(this.chain, this.signal, (block) => this.show(block), this.tip);
  }
}

function others(rest) {
  const links = rest.map((chain) => h("a.badge", { href: to.chain(chain.chainId) }, chain.chainName || chain.chainId));
  return card("Further chains", h("p", {}, links));
}
