// The chains, and what happens on them now.
import { h } from "../dom.js";
import { chains, hasNode, node } from "../api.js";
import { chainFigures } from "../chain-figures.js";
import { whole } from "../format.js";
import { latest } from "../latest.js";
import { badge, blockLink, card, chainStatus, empty, figures, later, time, to } from "../parts.js";

const DETAILED_MAX = 12; // chains whose figures are fetched
const REFRESH_MS = 30000;
const NO_CHAIN = "No EVM chain is indexed here. One is added as a [[chain]] of icefall.toml.";

export async function render({ signal }) {
  const all = await chains({ isFresh: true });
  const names = new Map(all.map((chain) => [chain.chainId, chain.chainName || chain.chainId]));
  const tokens = new Map(all.map((chain) => [chain.chainId, chain.networkToken]));
  const cards = new Map(all.slice(0, DETAILED_MAX).map((chain) => [chain.chainId, new ChainCard(chain, signal)]));
  const elements = [...cards.values()].map((one) => one.element);
  const onBlock = (block) => cards.get(block.chainId)?.arrive(block);
  const onRollback = (chainId) => cards.get(chainId)?.refresh();
  const ask = () => node("/ext/health", "health.health", {}, signal).catch(() => null);
  const report = hasNode() ? ask() : Promise.resolve(null);
  const verdict = hasNode() ? later(() => health(report), { rows: 1 }) : null;
  const timer = setInterval(() => {
    if (document.hidden) return;
    refresh(cards);
    if (verdict) ask().then((found) => verdict.isConnected && verdict.replaceChildren(healthLink(found)));
  }, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
  const content = h(
    "div.page",
    {},
    h("header.home-head", {}, h("h1", { tabindex: "-1" }, "Chains"), verdict),
    all.length ? h("section", { "aria-label": "Chains" }, h("div.grid.fit", {}, elements)) : card("", empty(NO_CHAIN)),
    all.length > DETAILED_MAX ? others(all.slice(DETAILED_MAX)) : null,
    all.length ? latest({ names, tokens, signal, onBlock, onRollback }) : null,
    hasNode() ? later(() => primary(report), { rows: 2 }) : null,
  );
  return { title: "Icefall", content };
}

// What fails stays as it is: the next round may succeed.
async function refresh(cards) {
  const all = await chains({ isFresh: true }).catch(() => []);
  for (const chain of all) cards.get(chain.chainId)?.showStatus(chain.status);
  for (const card of cards.values()) card.refresh();
}

// Without an answer of the node both are left out: Operations says why.
async function health(report) {
  const found = await report;
  return found ? healthLink(found) : null;
}

function healthLink(report) {
  const failed = Object.values(report?.checks || {}).filter((check) => check.error).length;
  const text = failed === 1 ? "1 check fails" : failed ? `${failed} checks fail` : "Node unhealthy";
  const verdict = report?.healthy ? badge("All checks pass", "good") : badge(report ? text : "No answer", "bad");
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
    const name = h("a", { href: to.chain(chain.chainId) }, chain.chainName || chain.chainId);
    this.status = h("span");
    this.showStatus(chain.status);
    this.isLoading = false;
    this.body = later(() => this.load(), { rows: 3, hideEmpty: false });
    this.element = h("article.card.chain-card", {}, h("div.chain-title", {}, name, this.status), this.body);
  }

  showStatus(status) {
    this.status.replaceChildren(...[chainStatus(status)].filter(Boolean));
  }

  async refresh() {
    if (this.isLoading) return;
    const figures = await this.load().catch(() => null);
    if (figures && !this.body.contains(document.activeElement))
      this.body.replaceChildren(...[figures].flat().filter(Boolean));
  }

  // With the first block of a chain come the figures around it.
  arrive(block) {
    const tip = this.body.querySelector(".tip");
    tip ? tip.replaceWith(this.tipOf(block)) : this.refresh();
  }

  tipOf(block) {
    const number = blockLink(this.chain.chainId, block.blockNumber);
    return h("span.tip", {}, number, h("span.note", {}, time(block.blockTimestamp)));
  }

  async load() {
    this.isLoading = true;
    try {
      return await chainFigures(this.chain, this.signal, (block) => this.tipOf(block));
    } finally {
      this.isLoading = false;
    }
  }
}

function others(rest) {
  const links = rest.map((chain) => h("a.badge", { href: to.chain(chain.chainId) }, chain.chainName || chain.chainId));
  return card("Further chains", h("p", {}, links));
}
