// Every series as a chart: with its range and interval, for one chain or several, and as CSV.
import { h } from "../dom.js";
import { metrics, path } from "../api.js";
import { chart, pointTime } from "../chart.js";
import { figure } from "../format.js";
import { card, crumbs, empty, header, later, table } from "../parts.js";
import { axisLine } from "../sparkline.js";

const RANGES = { 7: "7 days", 30: "30 days", 90: "90 days", 365: "1 year", all: "All" };
const PAGES_MAX = 30; // of 100 points
const COMPARED_MAX = 6;
const COUNTED_MAX = 20; // chains that are asked how much data they have
const HOURLY_DAYS = 3; // with fewer, hours are drawn

export async function render({ params, query, signal, remember }) {
  const [{ metrics: catalogue }, { chains }] = await Promise.all([
    metrics("/v1/metrics", {}, signal),
    metrics("/v2/chains", {}, signal),
  ]);
  if (!chains.length)
    return {
      title: "Metrics",
      content: h("div.page", {}, header("Metrics", "Metrics"), empty("No chain has metrics yet.")),
    };
  const chosen = catalogue.find((one) => one.name === params.metric);
  const first = await fullest(chains, query, signal);
  return chosen
    ? one(chosen, catalogue, chains, query, signal, remember, first)
    : overview(catalogue, chains, query, signal, first);
}

// The chain with the most days of data, and whether they are so few that hours say more: {id, interval}. The chain that
// the address names is taken as it is.
async function fullest(chains, query, signal) {
  const named = query.get("chain") || query.get("chains")?.split(",")[0];
  const counted = chains.filter((one) => !named || String(one.evmChainId) === named).slice(0, COUNTED_MAX);
  const days = await Promise.all(
    (counted.length ? counted : chains.slice(0, COUNTED_MAX)).map(async (chain) => {
      const target = path`/v2/chains/${chain.evmChainId}/metrics/txCount`;
      const reply = await metrics(target, { timeInterval: "day", pageSize: 100 }, signal).catch(() => null);
      const points = reply?.results || [];
      return { id: chain.evmChainId, days: points.length, sum: points.reduce((all, one) => all + Number(one.value), 0) };
    }),
  );
  const [best] = days.sort((a, b) => b.days - a.days || b.sum - a.sum);
  return { id: String(best.id), interval: best.days < HOURLY_DAYS ? "hour" : "day" };
}

const intervalOf = (metric, wanted) =>
  [wanted, "day"].find((each) => metric.timeIntervals.includes(each)) || metric.timeIntervals[0];

async function points(chain, metric, interval, days, signal) {
  const found = [];
  let pageToken;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const reply = await metrics(
      path`/v2/chains/${chain}/metrics/${metric.chainMetric}`,
      { timeInterval: interval, pageSize: 100, pageToken },
      signal,
    );
    found.push(...reply.results);
    pageToken = reply.nextPageToken;
    const enough =
      days !== "all" && found.length && found[0].timestamp - found.at(-1).timestamp >= Number(days) * 86400;
    if (!pageToken || enough) break;
  }
  const least = days === "all" || !found.length ? 0 : found[0].timestamp - Number(days) * 86400;
  return found
    .filter((point) => point.timestamp > least)
    .map((point) => ({ t: point.timestamp, v: Number(point.value) }))
    .reverse();
}

function overview(catalogue, chains, query, signal, first) {
  const chain = chains.find((one) => String(one.evmChainId) === first.id) || chains[0];
  const select = h(
    "select",
    { id: "chain" },
    chains.map((one) =>
      h("option", { value: one.evmChainId, selected: one === chain }, one.chainName || String(one.evmChainId)),
    ),
  );
  select.addEventListener("change", () => (location.hash = `#/metrics?chain=${select.value}`));
  const tile = (metric) =>
    h(
      "a.tile",
      { href: `#/metrics/${metric.name}?chains=${chain.evmChainId}` },
      h("strong", {}, title(metric)),
      later(
        async () => {
          const interval = intervalOf(metric, first.interval);
          const found = await points(chain.evmChainId, metric, interval, "90", signal);
          if (!found.length) return h("span.quiet", {}, "no points yet");
          const scale = scaleOf(metric, found);
          return [
            h(
              "span",
              {},
              figure(found.at(-1).v / scale.by),
              h("span.quiet", {}, ` ${scale.unit}, ${pointTime(found.at(-1).t, interval)}`),
            ),
            found.length > 1
              ? axisLine(
                  found.map((point) => point.v / scale.by),
                  found.map((point) => pointTime(point.t, interval)),
                  figure,
                  320,
                  48,
                )
              : h("span.note", {}, `One ${interval} so far: a line needs two.`),
          ];
        },
        { rows: 2, hideEmpty: false },
      ),
    );
  return {
    title: "Metrics",
    content: h(
      "div.page",
      {},
      crumbs(["Home", "#/"], ["Metrics"]),
      header("Time series", "Metrics"),
      h("form.choices", {}, h("label", {}, "Chain", select)),
      h("div.grid", {}, catalogue.map(tile)),
    ),
  };
}

const WORDS = { avg: "average", max: "maximum", tx: "transaction", tps: "TPS", gps: "gas per second" };

function title(metric) {
  const words = metric.name
    .split("_")
    .map((word) => WORDS[word] || word)
    .join(" ");
  return words[0].toUpperCase() + words.slice(1);
}

// Prices and fees are in wei, which are too many to read.
function scaleOf(metric, points_) {
  const most = Math.max(...points_.map((point) => Math.abs(point.v)));
  if (metric.unit !== "wei" || most < 1e6) return { by: 1, unit: metric.unit };
  return most < 1e15 ? { by: 1e9, unit: "gwei" } : { by: 1e18, unit: "native token" };
}

function one(metric, catalogue, chains, query, signal, remember, first) {
  const state = {
    chains: (query.get("chains") || first.id)
      .split(",")
      .filter((id) => chains.some((chain) => String(chain.evmChainId) === id)),
    interval: metric.timeIntervals.includes(query.get("interval"))
      ? query.get("interval")
      : intervalOf(metric, first.interval),
    range: RANGES[query.get("range")] ? query.get("range") : "90",
  };
  const name = (id) => chains.find((chain) => String(chain.evmChainId) === id)?.chainName || id;
  const box = h("div.page");
  const draw = () => {
    remember({ chains: state.chains.join(","), interval: state.interval, range: state.range });
    box.replaceChildren(later(() => drawn(metric, state, name, signal), { rows: 8, hideEmpty: false }));
  };
  const picker = (label, key, options) => {
    const select = h(
      "select",
      {},
      options.map(([value, text]) => h("option", { value, selected: state[key] === value }, text)),
    );
    select.addEventListener("change", () => {
      state[key] = select.value;
      draw();
    });
    return h("label", {}, label, select);
  };
  const other = h(
    "select",
    {},
    catalogue.map((each) => h("option", { value: each.name, selected: each.name === metric.name }, title(each))),
  );
  other.addEventListener(
    "change",
    () => (location.hash = `#/metrics/${other.value}?chains=${state.chains.join(",")}&range=${state.range}`),
  );
  const boxes = h(
    "fieldset",
    {},
    h("legend", {}, "Chains"),
    chains.slice(0, 40).map((chain) => {
      const id = String(chain.evmChainId);
      const input = h("input", { type: "checkbox", checked: state.chains.includes(id) });
      input.addEventListener("change", () => {
        state.chains = input.checked
          ? [...state.chains, id].slice(-COMPARED_MAX)
          : state.chains.filter((each) => each !== id);
        draw();
      });
      return h("label", {}, input, name(id));
    }),
  );
  draw();
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Metrics", "#/metrics"], [title(metric)]),
    header("Metric", title(metric), metric.description),
    h(
      "form.choices",
      {},
      h("label", {}, "Series", other),
      picker(
        "Interval",
        "interval",
        metric.timeIntervals.map((each) => [each, each]),
      ),
      picker("Range", "range", Object.entries(RANGES)),
      boxes,
    ),
    box,
  );
  return { title: title(metric), content };
}

async function drawn(metric, state, name, signal) {
  if (!state.chains.length) return empty("Choose a chain.");
  const series = await Promise.all(
    state.chains.map(async (id) => ({
      id,
      name: name(id),
      points: await points(id, metric, state.interval, state.range, signal),
    })),
  );
  const scale = scaleOf(
    metric,
    series.flatMap((one_) => one_.points),
  );
  const shown = series.map((one_) => ({
    ...one_,
    points: one_.points.map((point) => ({ t: point.t, v: point.v / scale.by })),
  }));
  const figure_ = chart({ title: title(metric), unit: scale.unit, interval: state.interval, series: shown });
  if (!figure_) return empty("There are no points in this range.");
  const download = h("button", { type: "button", onclick: () => save(metric, state, series) }, "Download as CSV");
  return [
    h("section.card", { "aria-label": "Chart" }, figure_, download),
    metric.rollingWindows ? later(() => windows(metric, state, name, signal)) : null,
  ];
}

async function windows(metric, state, name, signal) {
  const rows = await Promise.all(
    state.chains.map(async (id) => ({
      name: name(id),
      ...(await metrics(path`/v2/chains/${id}/rollingWindowMetrics/${metric.chainMetric}`, {}, signal)).result,
    })),
  );
  const scale = scaleOf(
    metric,
    rows.flatMap((row) => [{ v: row.lastYear }, { v: row.allTime }]),
  );
  const column = (label, key) => ({
    name: label,
    right: true,
    minor: ["lastHour", "lastMonth", "lastYear"].includes(key),
    cell: (row) => figure(row[key] / scale.by),
  });
  return card(
    `Up to now (${scale.unit})`,
    table(
      "Windows up to now",
      [
        { name: "Chain", cell: (row) => row.name },
        column("Last hour", "lastHour"),
        column("Last day", "lastDay"),
        column("30 days", "lastMonth"),
        column("365 days", "lastYear"),
        column("All time", "allTime"),
      ],
      rows,
    ).element,
  );
}

function save(metric, state, series) {
  const times = [...new Set(series.flatMap((one_) => one_.points.map((point) => point.t)))].sort((a, b) => a - b);
  const by = series.map((one_) => new Map(one_.points.map((point) => [point.t, point.v])));
  const quoted = (text) =>
    `"${String(text)
      .replaceAll('"', '""')
      .replace(/^[=+\-@\t\r]/, "'$&")}"`; // a spreadsheet would run a formula
  const lines = [
    ["timestamp", "time", ...series.map((one_) => quoted(`${metric.name} ${one_.name}`))],
    ...times.map((t) => [t, new Date(t * 1000).toISOString(), ...by.map((values) => values.get(t) ?? "")]),
  ];
  const link = document.createElement("a");
  link.href = URL.createObjectURL(
    new Blob([lines.map((line) => line.join(",")).join("\r\n") + "\r\n"], { type: "text/csv" }),
  );
  link.download = `${metric.name}-${state.interval}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
