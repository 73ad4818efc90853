// What an address holds, the most valuable first, and what it held on earlier days.
import { h } from "./dom.js";
import { data, maybe } from "./api.js";
import { chart } from "./chart.js";
import { exact, money } from "./format.js";
import { badge, card, clip, empty, later, list, quantity, value } from "./parts.js";
import { tokenMark } from "./token-mark.js";

const SORTED_PAGES = 5; // of 100 tokens, which are read to put them in order
const SHOWN = 20;

// The tokens of the balance list, for the choice above the chart.
export class Held {
  constructor() {
    this.tokens = new Promise((resolve) => (this.resolve = resolve));
  }
}

// The native token and the first tokens, by value. Where there are more than can be put in order, the rest follow as the
// server lists them: {rows, next}.
async function sorted(base, signal) {
  let page = await data(`${base}/balances:listErc20`, { pageSize: 100 }, signal);
  const native = page.nativeTokenBalance;
  const tokens = [...page.erc20TokenBalances];
  for (let read = 1; read < SORTED_PAGES && page.nextPageToken; read += 1) {
    page = await data(`${base}/balances:listErc20`, { pageSize: 100, pageToken: page.nextPageToken }, signal);
    tokens.push(...page.erc20TokenBalances);
  }
  const worth = (row) => Number(row.balanceValue?.value ?? -1);
  tokens.sort((a, b) => Boolean(b.isListed) - Boolean(a.isListed) || worth(b) - worth(a));
  return { rows: [native, ...tokens], next: page.nextPageToken };
}

// Anyone may trade with himself at any price: only the native token and those of the operator's list are counted.
function sums(rows) {
  const found = { listed: 0, others: 0, code: "", hasOthers: false };
  for (const row of rows.filter((one) => one.balanceValue)) {
    found.code = row.balanceValue.currencyCode;
    if (row.isListed || !row.address) found.listed += Number(row.balanceValue.value);
    else {
      found.others += Number(row.balanceValue.value);
      found.hasOthers = true;
    }
  }
  return found;
}

export async function balances(base, chain, signal, held) {
  const { rows, next } = await sorted(base, signal);
  held.resolve(rows.slice(1));
  const sum = sums(rows);
  const shown = await list({
    label: "Balances",
    none: "It holds nothing.",
    columns: [
      {
        name: "Token",
        cell: (row) =>
          row.address
            ? [tokenMark(chain, row), row.balanceValue && !row.isListed && h("span.phone-row", {}, " ", badge("not listed"))]
            : h("strong", {}, row.name),
      },
      {
        name: "Balance",
        right: true,
        cell: (row) => [
          quantity(row.balance, row.decimals, row.symbol),
          row.balanceValue && h("span.phone-line.quiet", {}, value(row.balanceValue)),
        ],
      },
      { name: "Value", right: true, minor: true, cell: (row) => value(row.balanceValue) },
    ],
    load: async (at = 0) => {
      if (typeof at === "number" && at < rows.length)
        return { rows: rows.slice(at, at + SHOWN), next: at + SHOWN < rows.length ? at + SHOWN : next };
      const page = await data(`${base}/balances:listErc20`, { pageSize: 100, pageToken: at }, signal);
      return { rows: page.erc20TokenBalances, next: page.nextPageToken };
    },
  });
  const money_ = (amount) => money({ currencyCode: sum.code, value: amount });
  return h(
    "section.card.balances",
    { "aria-label": "Balances" },
    h(
      "div.card-head",
      {},
      h("h2", {}, "Balances"),
      sum.code && h("strong.worth", { title: "The native token and tokens of the operator's list" }, money_(sum.listed)),
    ),
    shown,
    sum.hasOthers && h("p.note", {}, `Not counted: ${money_(sum.others)} in tokens that are not on the token list.`),
  );
}

export async function history(base, native, signal, held) {
  const drawn = async (token) => {
    const reply = await maybe(
      data(
        `${base}/balances:listHistory`,
        { timeInterval: "day", pageSize: 100, contractAddress: token.address },
        signal,
      ),
    );
    if (!reply) return null;
    const points = reply.history
      .map((one) => ({ t: one.timestamp, v: Number(exact(one.balance, token.decimals || 0).replaceAll(",", "")) }))
      .reverse();
    if (points.every((point) => !point.v)) return empty("It has held none in the time that is indexed.");
    const shown = chart({
      title: "Balance at the end of each day",
      unit: clip(token.symbol || "", 16),
      interval: "day",
      stepped: true,
      fromZero: false,
      series: [{ name: token.symbol || "", points }],
    });
    return shown || empty("No change of this balance is known.");
  };
  const first = await drawn(native);
  if (!first) return null;
  const place = h("div", {}, first);
  const section = card("", place);
  held.tokens.then(
    (tokens) =>
      tokens.length &&
      section.prepend(
        tokenChoice(native, tokens, (token) =>
          place.replaceChildren(later(() => drawn(token), { rows: 6, hideEmpty: false })),
        ),
      ),
  );
  return section;
}

function tokenChoice(native, tokens, choose) {
  const all = [native, ...tokens];
  const select = h(
    "select",
    {},
    all.map((token, index) => h("option", { value: index }, clip(token.name || token.symbol || token.address, 40))),
  );
  select.addEventListener("change", () => choose(all[Number(select.value)]));
  return h("form.choices", {}, h("label", {}, "Token", select));
}

