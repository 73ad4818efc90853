// The chains, and what happens on them now.
import { announce, h } from "../dom.js";
import { chains, data, hasMetrics, hasNode, maybe, metrics, node, path } from "../api.js";
import { blockColumns, chainColumn, txColumns } from "../columns.js";
import { figure, whole } from "../format.js";
import { listen } from "../live.js";
import { badge, card, later, list, time, to } from "../parts.js";
import { sparkline } from "../sparkline.js";

const DETAILED_MAX = 12; // chains whose figures are fetched

export async function render({ signal }) {
  const all = await chains();
  const names = new Map(all.map((chain) => [chain.chainId, chain.chainName || chain.chainId]));
  const tokens = new Map(all.map((chain) => [chain.chainId, chain.networkToken]));
  const health = hasNode() ? node("/ext/health", "health.health", {}, signal).catch(() => null) : Promise.resolve(null);
  const mark = h("span.live", {}, "connecting");
  const content = h(
    "div.page",
    {},
    h("h1.hidden", { tabindex: "-1" }, "Home"),
    hasNode() ? later(() => primary(health), { rows: 2 }) : null,
    h(
      "section",
      { "aria-label": "Chains" },
      h(
        "div.grid.fit",
        {},
        all.slice(0, DETAILED_MAX).map((chain) => chainCard(chain, health, signal)),
      ),
    ),
    all.length
      ? null
      : card("Chains", h("p.state", {}, "No EVM chain is indexed here. One is added as a [[chain]] of icefall.toml.")),
    all.length > DETAILED_MAX ? others(all.slice(DETAILED_MAX)) : null,
    all.length ? latest({ names, tokens, signal, mark }) : null,
  );
  return { title: "Icefall", content };
}

async function primary(health) {
  const report = await health;
  if (!report) return null;
  const failed = Object.entries(report.checks || {}).filter(([, check]) => check.error);
  const height = (name) => report.checks?.[name]?.message?.engine?.consensus?.lastAcceptedHeight;
  const shown = ["X", "P", "C"].filter((name) => height(name) !== undefined);
  return h(
    "section.card",
    { "aria-label": "Primary network" },
    h(
      "dl.figures",
      {},
      shown.map((name) =>
        h(
          "div",
          {},
          h("dt", {}, `${name}-Chain height`),
          h("dd", {}, h("a", { href: name === "X" ? "#/x" : `#/containers/${name}` }, whole(height(name)))),
        ),
      ),
      h(
        "div",
        {},
        h("dt", {}, "Health"),
        h(
          "dd",
          {},
          h(
            "a",
            { href: "#/operations" },
            failed.length ? badge(`${failed.length} checks fail`, "bad") : badge("All checks pass", "good"),
          ),
        ),
      ),
    ),
  );
}

function chainCard(chain, health, signal) {
  const figures = later(
    async () => {
      const [page, days, rolling, report] = await Promise.all([
        maybe(data(path`/v1/chains/${chain.chainId}/blocks`, { pageSize: 1 }, signal)),
        hasMetrics()
          ? maybe(
              metrics(path`/v2/chains/${chain.chainId}/metrics/txCount`, { timeInterval: "day", pageSize: 30 }, signal),
            ).catch(() => null)
          : null,
        hasMetrics()
          ? maybe(metrics(path`/v2/chains/${chain.chainId}/rollingWindowMetrics/avgTps`, {}, signal)).catch(() => null)
          : null,
        health,
      ]);
      const tip = page?.blocks[0];
      const check = report?.checks?.[`chain-${chain.chainId}`]?.message;
      const behind =
        check && check.head !== null && check.lastIndexedBlock !== null
          ? Math.max(0, check.head - check.lastIndexedBlock)
          : undefined;
      const points = (days?.results || []).map((point) => point.value).reverse();
      const tps = rolling?.result;
      return [
        h(
          "dl.figures",
          {},
          h(
            "div",
            {},
            h("dt", {}, "Tip"),
            h(
              "dd",
              {},
              tip ? h("a.number", { href: to.block(chain.chainId, tip.blockNumber) }, whole(tip.blockNumber)) : "–",
              tip && h("span.note", {}, time(tip.blockTimestamp)),
            ),
          ),
          behind !== undefined &&
            h(
              "div",
              {},
              h("dt", {}, "Lag"),
              h("dd", {}, whole(behind), h("span.note", {}, behind === 1 ? "block" : "blocks")),
            ),
          tps &&
            h(
              "div",
              {},
              h("dt", {}, "TPS"),
              h("dd", {}, figure(tps.lastDay), h("span.note", {}, `${figure(tps.allTime)} overall`)),
            ),
        ),
        points.length > 1 &&
          h(
            "div.spark",
            {},
            h("span.note", {}, `${points.length} days, up to ${figure(Math.max(...points))} transactions a day`),
            sparkline(points),
          ),
      ].filter(Boolean);
    },
    { rows: 3, hideEmpty: false },
  );
  return h(
    "article.card.chain-card",
    {},
    h(
      "div.chain-title",
      {},
      h("a", { href: to.chain(chain.chainId) }, chain.chainName || chain.chainId),
      chain.status === "OK" ? badge("OK", "good") : badge(chain.status.toLowerCase(), "bad"),
    ),
    figures,
  );
}

function others(rest) {
  return card(
    "Further chains",
    h(
      "p",
      {},
      rest.map((chain, index) => [
        index ? ", " : "",
        h("a", { href: to.chain(chain.chainId) }, chain.chainName || chain.chainId),
      ]),
    ),
  );
}

function latest({ names, tokens, signal, mark }) {
  const shown = {};
  const part = (key, title, label, columns, load) =>
    h(
      "section.card",
      { "aria-label": title },
      h("div.card-head", {}, h("h2", {}, title), key === "block" ? mark : null),
      later(
        () =>
          list({
            label,
            columns,
            load,
            none: "Nothing indexed yet.",
            after: (table) => (shown[key] = { table, columns }),
          }),
        { rows: 6, hideEmpty: false },
      ),
    );
  const blocks = blockColumns();
  const blockPart = [blocks[0], chainColumn(names), blocks[1], blocks[2]];
  const txs = txColumns({ tokenOf: (id) => tokens.get(id) });
  const txPart = [txs[0], txs[1], txs[2], txs[4], txs.at(-1)];
  listen(
    { types: "blocks,transactions" },
    {
      block: (row) => arrive(shown.block, row),
      transaction: (row) => arrive(shown.transaction, row),
      state: (on) => {
        mark.textContent = on ? "live" : "not live";
        mark.classList.toggle("on", on);
      },
    },
    signal,
  );
  return h(
    "div.columns",
    {},
    part("block", "Latest blocks", "Latest blocks of all chains", blockPart, async (token) => {
      const page = await data("/v1/blocks", { pageSize: 10, pageToken: token }, signal);
      return { rows: page.blocks, next: null };
    }),
    part("transaction", "Latest transactions", "Latest transactions of all chains", txPart, async (token) => {
      const page = await data("/v1/transactions", { pageSize: 10, pageToken: token }, signal);
      return { rows: page.transactions, next: null };
    }),
  );
}

function arrive(part, row) {
  if (!part) return;
  const { table, columns } = part;
  table.append([row]);
  const added = table.body.lastElementChild;
  added.classList.add("new");
  table.body.prepend(added);
  while (table.body.children.length > 10) table.body.lastElementChild.remove();
  if (columns[0].name === "Block" && document.hasFocus()) announce(`New block ${row.blockNumber}`);
}
