// A line without axes, for a glance. What it shows is also written next to it.
import { svg } from "./dom.js";

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
