// Numbers, amounts, times and identifiers as a reader wants them. All pure.
const GROUPED = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "narrow" });
const DATED_S = 30 * 86400;
const UNITS = [
  ["year", 31557600],
  ["month", 2629800],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

export function whole(value) {
  if (value === undefined || value === null || value === "") return "–";
  try {
    return GROUPED.format(BigInt(value));
  } catch {
    return String(value);
  }
}

export function compact(value) {
  const number = Number(value);
  return Number.isFinite(number) ? COMPACT.format(number) : String(value);
}

// A figure of a chart or a rate: few digits, but never "0" for something small.
export function figure(value) {
  const number = Number(value);
  if (!Number.isFinite(number)) return String(value);
  const size = Math.abs(number);
  if (size >= 100000) return COMPACT.format(number);
  if (size >= 100 || number === Math.round(number)) return number.toLocaleString("en", { maximumFractionDigits: 1 });
  return number.toLocaleString("en", { maximumSignificantDigits: 4 });
}

// The exact decimal number that an integer with `decimals` places stands for.
export function exact(integer, decimals = 0) {
  let text;
  try {
    text = BigInt(integer).toString();
  } catch {
    return String(integer);
  }
  const sign = text.startsWith("-") ? "-" : "";
  const digits = text.replace("-", "").padStart(decimals + 1, "0");
  const units = digits.slice(0, digits.length - decimals);
  const rest = decimals ? digits.slice(-decimals).replace(/0+$/, "") : "";
  return sign + GROUPED.format(BigInt(units)) + (rest ? "." + rest : "");
}

// The same, shortened to what fits into a table.
export function amount(integer, decimals = 0) {
  const [units, rest = ""] = exact(integer, decimals).split(".");
  if (!rest) return units.length > 27 ? compact(units.replaceAll(",", "")) : units;
  if (units.length > 15) return units;
  const zeros = rest.match(/^0*/)[0].length;
  const places = units.replace("-", "") === "0" ? Math.min(rest.length, zeros + 4) : Math.min(rest.length, 4);
  if (zeros >= 6 && units.replace("-", "") === "0") return "<0.000001";
  const shown = rest.slice(0, places).replace(/0+$/, "");
  return shown ? `${units}.${shown}` : units;
}

export function money(price) {
  if (!price || price.value === undefined) return "";
  const number = Number(price.value);
  const code = String(price.currencyCode || "usd").toUpperCase();
  try {
    const digits =
      Math.abs(number) >= 1 || number === 0 ? { maximumFractionDigits: 2 } : { maximumSignificantDigits: 4 };
    return number.toLocaleString("en", { style: "currency", currency: code, ...digits });
  } catch {
    return `${price.value} ${code}`;
  }
}

export function short(text, head = 6, tail = 4) {
  const value = String(text);
  const start = value.startsWith("0x") ? head + 2 : head;
  return value.length <= start + tail + 2 ? value : `${value.slice(0, start)}…${value.slice(-tail)}`;
}

export function ago(seconds, now = Date.now() / 1000) {
  const past = Number(seconds) - now;
  if (Math.abs(past) < 1) return "now";
  const [unit, size] = UNITS.find(([, length]) => Math.abs(past) >= length) || UNITS.at(-1);
  return RELATIVE.format(Math.trunc(past / size), unit);
}

// For lists: how long ago, or the day where that says more.
export function when(seconds, now = Date.now() / 1000) {
  return Math.abs(now - Number(seconds)) < DATED_S ? ago(seconds, now) : dateTime(seconds).slice(0, 16);
}

// A price of gas. Below a thousand wei it is exact in wei.
export function gasPrice(wei) {
  return String(wei).length < 4 ? `${wei} wei` : `${exact(wei, 9)} gwei`;
}

export function dateTime(seconds) {
  const date = new Date(Number(seconds) * 1000);
  return Number.isNaN(date.getTime()) ? String(seconds) : date.toISOString().slice(0, 19).replace("T", " ") + " UTC";
}

export function span(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) return "–";
  if (seconds < 1) return "under 1 s";
  const parts = [];
  for (const [unit, size] of [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ]) {
    const count = Math.floor(seconds / size);
    if (count && parts.length < 2) parts.push(`${count} ${unit}`);
    seconds -= count * size;
  }
  return parts.join(" ");
}

export function bytes(count) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let value = Number(count);
  let index = 0;
  while (value >= 1000 && index < units.length - 1) {
    value /= 1000;
    index += 1;
  }
  return `${value.toLocaleString("en", { maximumFractionDigits: index ? 1 : 0 })} ${units[index]}`;
}

export function percent(part, all) {
  const share = Number(all) ? (Number(part) / Number(all)) * 100 : 0;
  const digits = share < 0.1 ? { maximumSignificantDigits: 1 } : { maximumFractionDigits: 1 }; // a small share is not 0%
  return `${share.toLocaleString("en", digits)}%`;
}
