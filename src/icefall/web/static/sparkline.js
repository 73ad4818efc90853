// A small line with as much of an axis as there is room for: its highest value, its ends, and each value under the
// pointer. What it shows is also written next to it.
import { h, svg } from "./dom.js";

export function sparkline(values, width = 120, height = 32) {
  const high = Math.max(...values, 0) || 1;
  const at = (value, index) =>
    `${(index / Math.max(1, values.length - 1)) * (width - 2) + 1},${height - 2 - (value / high) * (height - 4)}`;
  const points = values.map(at).join(" ");
  return svg(
    "svg",
    {
      class: "sparkline",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      "aria-hidden": "true",
      preserveAspectRatio: "none",
    },
    svg("polygon", { points: `1,${height} ${points} ${width - 1},${height}` }),
    svg("polyline", { points }),
  );
}

// With an axis: `labels` name the points, `shown` writes a value.
export function axisLine(values, labels, shown, width = 480, height = 44) {
  const line = sparkline(values, width, height);
  const step = width / values.length;
  line.append(
    ...values.map((value, index) =>
      svg(
        "rect",
        { class: "spot", x: index * step, y: 0, width: step, height },
        svg("title", {}, `${labels[index]}: ${shown(value)}`),
      ),
    ),
  );
  const high = Math.max(...values, 0);
  return h(
    "div.axis-line",
    {},
    h("span.axis-high", {}, shown(high)),
    line,
    h("span.axis-ends", {}, h("span", {}, labels[0]), h("span", {}, labels.at(-1))),
  );
}
