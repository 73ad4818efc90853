// Line charts in SVG: axes, units, a tooltip for pointer and keyboard, and the same figures as a table.
import { announce, h, svg } from "./dom.js";
import { figure } from "./format.js";

const HEIGHT = 260;
const EDGE = { top: 14, right: 14, bottom: 26, left: 58 };
const STEPS = [60, 300, 900, 3600, 10800, 21600, 43200, 86400, 172800, 604800, 1209600];
const MONTH_STEPS = [1, 3, 6, 12, 24, 60, 120];
const MONTH_S = 2629800;

function niceStep(rough) {
  const size = 10 ** Math.floor(Math.log10(rough));
  return size * ([1, 2, 2.5, 5, 10].find((factor) => factor * size >= rough) || 10);
}

function valueTicks(low, high, count) {
  if (high === low) [low, high] = [low - Math.abs(low) / 10, high + (Math.abs(high) / 10 || 1)];
  const step = niceStep((high - low) / count);
  const first = Math.floor(low / step) * step;
  const ticks = [];
  for (let at = first; at < high + step; at += step) ticks.push(Number(at.toPrecision(12)));
  return ticks;
}

function timeTicks(low, high, count) {
  if (high === low) return { ticks: [low], step: 86400 };
  const step = STEPS.find((one) => (high - low) / one <= count);
  if (!step) return monthTicks(low, high, count);
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) ticks.push(at);
  return { ticks, step };
}

// At the beginning of months, which are of different lengths.
function monthTicks(low, high, count) {
  const months = MONTH_STEPS.find((one) => (high - low) / (one * MONTH_S) <= count) || MONTH_STEPS.at(-1);
  const first = new Date(low * 1000);
  const ticks = [];
  let month = Math.ceil((first.getUTCFullYear() * 12 + first.getUTCMonth()) / months) * months;
  for (let at = 0; at <= high; month += months) {
    at = Date.UTC(Math.floor(month / 12), month % 12) / 1000;
    if (at >= low && at <= high) ticks.push(at);
  }
  return { ticks, step: months * MONTH_S };
}

function timeLabel(seconds, step) {
  const text = new Date(seconds * 1000).toISOString();
  if (step < 86400) return text.slice(11, 16);
  if (step >= MONTH_S && step < 12 * MONTH_S)
    return new Date(seconds * 1000).toLocaleDateString("en", { timeZone: "UTC", month: "short", year: "numeric" });
  if (step < MONTH_S)
    return new Date(seconds * 1000).toLocaleDateString("en", { timeZone: "UTC", month: "short", day: "numeric" });
  return text.slice(0, 4);
}

export const pointTime = (seconds, interval) =>
  new Date(seconds * 1000)
    .toISOString()
    .slice(0, interval === "hour" || !interval ? 16 : interval === "month" ? 7 : 10)
    .replace("T", " ");

// series: [{name, points: [{t, v}]}] in order of time. `stepped`: a value holds until the next one. `fromZero`: the axis
// begins at zero, as it must where sizes are compared.
export function chart({ title, unit = "", series, interval = "", stepped = false, fromZero = true, format = figure }) {
  const filled = series.filter((one) => one.points.length);
  if (!filled.length) return null;
  const box = h("div.chart", {
    tabindex: "0",
    role: "group",
    "aria-roledescription": "chart",
    "aria-label": `${title}. Arrow keys read the points.`,
  });
  const tip = h("div.chart-tip", { "aria-hidden": "true", hidden: true });
  const all = filled.flatMap((one) => one.points);
  const times = [...new Set(all.map((point) => point.t))].sort((a, b) => a - b);
  const bounds = {
    t: [times[0], times.at(-1)],
    v: [Math.min(...all.map((p) => p.v), ...(fromZero ? [0] : [])), Math.max(...all.map((p) => p.v))],
  };
  let place = () => {};
  const draw = () => {
    const width = Math.max(240, box.clientWidth || 600);
    const drawn = plot({ filled, bounds, width, unit, format, stepped, fromZero, title });
    box.replaceChildren(drawn.element, tip);
    place = drawn.place;
  };
  const read = (t) => filled.map((one) => ({ name: one.name, point: nearest(one.points, t) }));
  let cursor = times.length - 1;
  const showAt = (index, speak) => {
    cursor = Math.max(0, Math.min(times.length - 1, index));
    const found = read(times[cursor]);
    const lines = found.map(
      ({ name, point }) => `${filled.length > 1 ? `${name}: ` : ""}${format(point.v)}${unit ? ` ${unit}` : ""}`,
    );
    tip.replaceChildren(
      h("strong", {}, pointTime(times[cursor], interval)),
      ...lines.map((line) => h("span", {}, line)),
    );
    tip.hidden = false;
    place(
      times[cursor],
      found.map(({ point }) => point),
      tip,
    );
    if (speak) announce(`${pointTime(times[cursor], interval)}: ${lines.join(", ")}`);
  };
  const hide = () => {
    tip.hidden = true;
    place(null);
  };
  box.addEventListener("pointermove", (event) => {
    const inside =
      (event.clientX - box.getBoundingClientRect().left - EDGE.left) / (box.clientWidth - EDGE.left - EDGE.right);
    const t = bounds.t[0] + inside * (bounds.t[1] - bounds.t[0]);
    showAt(times.reduce((best, one, index) => (Math.abs(one - t) < Math.abs(times[best] - t) ? index : best), 0));
  });
  box.addEventListener("pointerleave", hide);
  box.addEventListener("blur", hide);
  box.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (!step && !["Home", "End", "Escape"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "Escape") hide();
    else showAt(step ? cursor + step : event.key === "Home" ? 0 : times.length - 1, true);
  });
  new ResizeObserver(draw).observe(box);
  const legend =
    filled.length > 1 &&
    h(
      "ul.legend",
      {},
      filled.map((one, index) => h(`li.s${index % 6}`, {}, one.name)),
    );
  return h(
    "figure.chart-figure",
    {},
    h("figcaption", {}, title, unit && h("span.unit", {}, ` (${unit})`)),
    legend,
    box,
    asTable(title, filled, times, interval, unit, format),
  );
}

function nearest(points, t) {
  let best = points[0];
  for (const point of points) if (Math.abs(point.t - t) <= Math.abs(best.t - t)) best = point;
  return best;
}

function plot({ filled, bounds, width, unit, format, stepped, fromZero, title }) {
  const [t0, t1] = bounds.t;
  const ticks = valueTicks(bounds.v[0], bounds.v[1], 4);
  const [v0, v1] = [ticks[0], ticks.at(-1)];
  const x = (t) => EDGE.left + (t1 === t0 ? 0.5 : (t - t0) / (t1 - t0)) * (width - EDGE.left - EDGE.right);
  const y = (v) => EDGE.top + (1 - (v - v0) / (v1 - v0)) * (HEIGHT - EDGE.top - EDGE.bottom);
  const axis = timeTicks(t0, t1, Math.max(4, Math.floor((width - EDGE.left) / 68)));
  const summary = filled
    .map(
      (one) =>
        `${filled.length > 1 ? `${one.name}: ` : ""}${one.points.length} points, last ${format(one.points.at(-1).v)} ${unit}`,
    )
    .join("; ");
  const element = svg(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": `${title}: ${summary}` },
    svg(
      "g",
      { class: "grid" },
      ticks.map((tick) => svg("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y(tick), y2: y(tick) })),
    ),
    svg(
      "g",
      { class: "labels" },
      ticks.map((tick) => svg("text", { x: EDGE.left - 8, y: y(tick) + 4, "text-anchor": "end" }, format(tick))),
      axis.ticks.map((tick) =>
        svg("text", { x: x(tick), y: HEIGHT - 8, "text-anchor": "middle" }, timeLabel(tick, axis.step)),
      ),
    ),
  );
  filled.forEach((one, index) => {
    const path = linePath(one.points, x, y, stepped);
    if (filled.length === 1 && fromZero) {
      const last = one.points.at(-1);
      element.append(
        svg("path", { class: "area s0", d: `${path}L${x(last.t)},${y(v0)}L${x(one.points[0].t)},${y(v0)}Z` }),
      );
    }
    element.append(svg("path", { class: `line s${index % 6}`, d: path }));
    if (one.points.length === 1)
      element.append(
        svg("circle", { class: `dot s${index % 6}`, cx: x(one.points[0].t), cy: y(one.points[0].v), r: 4 }),
      );
  });
  const rule = svg("line", { class: "rule", y1: EDGE.top, y2: HEIGHT - EDGE.bottom, visibility: "hidden" });
  const dots = filled.map((_, index) => svg("circle", { class: `dot s${index % 6}`, r: 4, visibility: "hidden" }));
  element.append(rule, ...dots);
  const place = (t, points, tip) => {
    const shown = t === null ? "hidden" : "visible";
    for (const one of [rule, ...dots]) one.setAttribute("visibility", shown);
    if (t === null) return;
    rule.setAttribute("x1", x(t));
    rule.setAttribute("x2", x(t));
    points.forEach((point, index) => {
      dots[index].setAttribute("cx", x(point.t));
      dots[index].setAttribute("cy", y(point.v));
    });
    const left = Math.min(Math.max(x(t) + 12, 0), width - tip.offsetWidth - 4);
    tip.style.left = `${left > x(t) ? left : Math.max(0, x(t) - tip.offsetWidth - 12)}px`;
  };
  return { element, place };
}

function linePath(points, x, y, stepped) {
  return points
    .map((point, index) => {
      if (!index) return `M${x(point.t)},${y(point.v)}`;
      return stepped ? `H${x(point.t)}V${y(point.v)}` : `L${x(point.t)},${y(point.v)}`;
    })
    .join("");
}

function asTable(title, filled, times, interval, unit, format) {
  const details = h("details.chart-table", {}, h("summary", {}, "Show as a table"));
  details.addEventListener("toggle", () => {
    if (details.querySelector("table")) return;
    const by = filled.map((one) => new Map(one.points.map((point) => [point.t, point.v])));
    const head = h(
      "tr",
      {},
      h("th", { scope: "col" }, "Time (UTC)"),
      filled.map((one) => h("th.right", { scope: "col" }, filled.length > 1 ? one.name : unit || "Value")),
    );
    const rows = [...times].reverse().map((t) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, pointTime(t, interval)),
        by.map((values) => h("td.right", {}, values.has(t) ? format(values.get(t)) : "–")),
      ),
    );
    details.append(
      h(
        "div.table-box.low",
        { tabindex: "0", role: "region", "aria-label": `${title} as a table` },
        h("table", {}, h("caption.hidden", {}, title), h("thead", {}, head), h("tbody", {}, rows)),
      ),
    );
  });
  return details;
}
