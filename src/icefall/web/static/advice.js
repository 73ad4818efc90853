// What a reader can do where a page has nothing to show: loaded only then.
import { h } from "./dom.js";
import { clip } from "./parts.js";

const link = (href, text) => h("a.in-text", { href }, text);
const home = () => ["Begin at ", link("#/", "the home page"), "."];

// The longest parameter of a page is what the reader looks for: a hash, an address, an ID. A chain is it only alone, and
// of an unknown page each part may be it.
function wanted({ chain = "", ...others }) {
  return Object.values(others).reduce((best, one) => (one.length > best.length ? one : best), "") || chain;
}

// `status`: of the answer that failed, undefined where there was none. `params`: of the page.
export function advice(status, params) {
  const text = wanted(params);
  const search = text.length > 3 && [
    "Search for ",
    link(`#/search/${encodeURIComponent(text)}?all`, clip(text, 24)),
    " on all chains.",
  ];
  const rows = {
    400: ["Compare it with the place that it was copied from: a digit may be missing.", search, home()],
    404: [
      "Compare it with the place that it was copied from: it may be mistyped, or of another chain.",
      search,
      ["If it is very new: ", link("#/operations", "Operations"), " shows how far each chain is indexed."],
      home(),
    ],
  }[status] || [
    ["See in ", link("#/operations", "Operations"), " whether all parts of this installation run."],
    home(),
  ];
  return h(
    "div.advice",
    {},
    h("h2", {}, "What you can do"),
    h(
      "ul.bullets",
      {},
      rows.filter(Boolean).map((row) => h("li", {}, row)),
    ),
  );
}
