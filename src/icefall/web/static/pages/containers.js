// The containers of X, P and C in the order of their acceptance, with their headers decoded.
import { h } from "../dom.js";
import { CallError, lastContainer, node } from "../api.js";
import { whole } from "../format.js";
import { decodeContainer, unchecked } from "../wire.js";
import { card, crumbs, header, id, list, time, to } from "../parts.js";

const CHAINS = ["X", "P", "C"];
const PAGE = 20;

export async function render({ params, signal }) {
  const chain = CHAINS.includes(params.chain) ? params.chain : "X";
  const target = `/ext/index/${chain}/block`;
  const last = await lastContainer(target, signal);
  if (last === null) throw new CallError(`The node has no index of ${chain} (--index-enabled).`, 404);
  const rows = await list({
    label: `Containers of ${chain}`,
    none: "No container has been accepted yet.",
    columns: [
      {
        name: "Index",
        on: "lead",
        cell: (row) => h("a.number", { href: to.container(chain, row.index) }, whole(row.index)),
      },
      {
        name: "ID",
        on: "below",
        cell: (row) => id(row.id, { href: to.container(chain, row.index), what: "container ID", head: 12 }),
      },
      { name: "Kind", cell: (row) => row.decoded.inner?.kind || "not decoded" },
      { name: "Accepted here", on: "aside", cell: (row) => time(Date.parse(row.timestamp) / 1000) },
      {
        name: "Height",
        on: "side",
        right: true,
        cell: (row) => [h("span.phone-only.first.quiet", {}, "height"), whole(row.decoded.inner?.height)],
      },
      { name: "Transactions", right: true, cell: (row) => whole(row.decoded.inner?.txs) },
      { name: "Size", right: true, cell: (row) => `${whole(row.decoded.size)} B` },
    ],
    load: async (until = Number(last?.index)) => {
      if (!last) return null;
      const first = Math.max(0, until - PAGE + 1);
      const reply = await node(
        target,
        "index.getContainerRange",
        { startIndex: String(first), numToFetch: String(until - first + 1), encoding: "hex" },
        signal,
      );
      const found = (reply.containers || reply).map((one) => ({
        ...one,
        decoded: decodeContainer(unchecked(one.bytes), chain),
      }));
      return { rows: found.reverse(), next: first > 0 ? first - 1 : null };
    },
  });
  const input = h("input", {
    id: "container-index",
    type: "number",
    min: 0,
    max: last?.index,
    required: true,
    inputmode: "numeric",
  });
  const form = h("form.inline", {}, h("label", { for: "container-index" }, "Index"), input, h("button", {}, "Show"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = to.container(chain, input.value);
  });
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Containers"]),
    header(
      "Primary network",
      `Containers of the ${chain}-Chain`,
      h(
        "nav.choice",
        { "aria-label": "Chain" },
        CHAINS.map((one) =>
          h("a", { href: `#/containers/${one}`, "aria-current": one === chain ? "page" : null }, `${one}-Chain`),
        ),
      ),
      form,
    ),
    card("", rows),
  );
  return { title: `Containers of ${chain}`, content };
}
