// Health, indexing progress and upstreams.
import { h } from "../dom.js";
import { chains, data, hasMetrics, hasNode, maybe, metrics, node, path } from "../api.js";
import { ago, bytes, figure, percent, span, whole } from "../format.js";
import { badge, card, clip, crumbs, current, facts, header, table, to } from "../parts.js";

const REFRESH_MS = 5000;

export async function render({ signal }) {
  const all = await chains();
  const part = (load) => current(load, REFRESH_MS, signal);
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Operations"]),
    header("This installation", "Operations"),
    part(() => services(signal)),
    all.length ? part(() => progress(all, signal)) : null,
    hasNode() ? part(() => checks(signal)) : null,
  );
  return { title: "Operations", content };
}

const nodeReport = (signal) => node("/ext/health", "health.health", {}, signal);

async function services(signal) {
  const [dataHealth, metricsHealth, nodeHealth, version] = await Promise.all([
    maybe(data("/v1/health-check", {}, signal)),
    hasMetrics()
      ? maybe(metrics("/v2/health-check", {}, signal)).catch((error) => ({
          status: "error",
          error: { reached: { message: error.message } },
        }))
      : null,
    hasNode() ? nodeReport(signal).catch(() => null) : null,
    hasNode() ? maybe(node("/ext/info", "info.getNodeVersion", {}, signal)).catch(() => null) : null,
  ]);
  const verdict = (healthy, why) => [
    healthy ? badge("healthy", "good") : badge("unhealthy", "bad"),
    why && h("div.quiet", {}, clip(why, 300)),
  ];
  const why = (health) =>
    Object.entries(health.error || {})
      .map(([name, one]) => `${name}: ${one.message || one.status}`)
      .join("; ");
  const failed = Object.entries(nodeHealth?.checks || {})
    .filter(([, check]) => check.error)
    .map(([name, check]) => `${name}: ${check.error}`);
  return card(
    "Services",
    facts([
      dataHealth && ["Chain data", verdict(dataHealth.status === "ok", why(dataHealth))],
      metricsHealth && ["Metrics", verdict(metricsHealth.status === "ok", why(metricsHealth))],
      hasNode() && ["Node", nodeHealth ? verdict(nodeHealth.healthy, failed.join("; ")) : badge("no answer", "bad")],
      version && ["Version", version.version],
    ]),
  );
}

async function progress(all, signal) {
  const rows = await Promise.all(
    all.map(async (chain) => ({
      chain,
      now: await maybe(data(path`/v1/chains/${chain.chainId}/indexing`, {}, signal)),
    })),
  );
  const known = rows.filter((row) => row.now);
  return known.length ? [card("Indexing", progressTable(known)), upstreams(known)] : [];
}

// Blocks may have been stored since the head was asked for. Before an upstream has answered, no head is known.
function head(now) {
  return now.headBlock === undefined ? undefined : Math.max(Number(now.headBlock), Number(now.lastBlock ?? 0));
}

function progressText(now) {
  if (now.lastBlock === undefined) return "none yet";
  return head(now) === undefined ? whole(now.lastBlock) : `${whole(now.lastBlock)} of ${whole(head(now))}`;
}

function progressTable(rows) {
  const state = ({ now }) => {
    if (now.problem) return badge("problem", "bad");
    if (!now.isRunning) return badge("stopped", "bad");
    return now.isSynced ? badge("synced", "good") : badge("indexing", "warn");
  };
  const kept = ({ now }) =>
    [
      now.logsStoredFromBlock !== undefined && badge("logs"),
      now.callsStoredFromBlock !== undefined && badge("calls"),
    ].filter(Boolean);
  const shown = table(
    "Indexing progress",
    [
      {
        name: "Chain",
        on: "lead",
        cell: ({ chain }) => h("a", { href: to.chain(chain.chainId) }, clip(chain.chainName || chain.chainId, 30)),
      },
      { name: "State", on: "side", cell: state },
      {
        name: "Block",
        on: "below",
        right: true,
        cell: ({ now }) => [h("span.phone-only.first", {}, "block "), progressText(now)],
      },
      {
        name: "Done",
        right: true,
        cell: ({ now }) => (head(now) === undefined ? "–" : percent(Number(now.lastBlock ?? -1) + 1, head(now) + 1)),
      },
      { name: "Blocks per second", right: true, cell: ({ now }) => figure(now.blocksPerSecond) },
      {
        name: "Time left",
        on: "aside",
        right: true,
        cell: ({ now }) =>
          now.isSynced || now.problem || now.etaSeconds === undefined
            ? ""
            : [span(now.etaSeconds), h("span.phone-only", {}, "left")],
      },
      { name: "Audited to", right: true, cell: ({ now }) => whole(now.auditedToBlock) },
      { name: "Details kept", cell: (row) => (kept(row).length ? kept(row) : "–") },
    ],
    rows,
  );
  const remarks = rows.flatMap(({ chain, now }) =>
    [now.problem, ...(now.limitations || [])]
      .filter(Boolean)
      .map((text) => `${chain.chainName || chain.chainId}: ${text}`),
  );
  return h(
    "div.list",
    {},
    shown.element,
    remarks.length
      ? h(
          "ul.remarks",
          {},
          remarks.map((text) => h("li", {}, clip(text, 300))),
        )
      : null,
  );
}

const STATES = { usable: "good", "backing off": "warn", disabled: "bad", "no answer": "bad" };

// What an indexer knew last is no longer true when it, or the upstream that it waits for, is silent.
function stateOf(upstream, now) {
  return upstream.state === "usable" && !now.isRunning ? "no answer" : upstream.state;
}

function upstreams(known) {
  const rows = known.flatMap(({ chain, now }) =>
    (now.upstreams || []).map((one) => ({ of: chain.chainName || chain.chainId, ...one, state: stateOf(one, now) })),
  );
  if (!rows.length) return null;
  return card(
    "Upstreams",
    table(
      "Upstreams",
      [
        { name: "Chain", on: "lead", cell: (row) => clip(row.of, 30) },
        { name: "Address", on: "below", cell: (row) => h("span.mono", {}, clip(row.name, 80)) },
        { name: "State", on: "side", cell: (row) => badge(row.state, STATES[row.state]) },
        { name: "Problem", on: "rest", wide: true, cell: (row) => clip(row.problem || "", 300) },
      ],
      rows,
    ).element,
  );
}

// The check `engine` fails when the others could not be run or stored since: on a full disk, for example.
async function checks(signal) {
  const health = await nodeReport(signal);
  const rows = Object.entries(health.checks).map(([name, check]) => ({ name, ...check }));
  const areOld = Boolean(health.checks.engine?.error);
  const result = (row) => {
    if (row.error) return badge("fails", "bad");
    return areOld ? badge("passed earlier", "warn") : badge("passes", "good");
  };
  return card(
    "Health checks of the node",
    table(
      "Health checks",
      [
        { name: "Check", on: "lead", cell: (row) => row.name },
        { name: "Result", on: "side", cell: result },
        { name: "Measured", cell: (row) => ago(Date.parse(row.timestamp) / 1000) },
        { name: "Details", on: "rest", wide: true, cell: (row) => clip(row.error || summary(row.message), 400) },
      ],
      rows,
    ).element,
  );
}

function summary(message) {
  if (!message || typeof message !== "object") return message ? String(message) : "–";
  if (message.availableDiskBytes !== undefined)
    return `${bytes(message.availableDiskBytes)} free (${message.availableDiskPercentage}%)`;
  if (message.engine?.consensus) return `height ${whole(message.engine.consensus.lastAcceptedHeight)}`;
  const parts = Object.entries(message).filter(
    ([name, value]) => name !== "upstreams" && value !== null && typeof value !== "object",
  );
  return parts.map(([name, value]) => shown(name, value)).join(", ") || "–";
}

// storeBytes 16834592 becomes "store 16.8 MB", secondsSinceProgress 3 "3 s since progress", synced true "synced", auditsDone false "audits not done".
function shown(name, value) {
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  if (typeof value === "boolean") return value ? words : words.replace(/ ?(\S+)$/, (last) => ` not ${last.trim()}`).trim();
  if (name.endsWith("Bytes")) return `${words.replace(/ bytes$/, "")} ${bytes(value)}`;
  if (name.startsWith("seconds")) return `${whole(value)} s ${words.replace(/^seconds /, "")}`;
  return `${words} ${typeof value === "number" ? whole(value) : value}`;
}
