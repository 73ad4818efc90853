// The contract that a proxy stands for, as the upstream knows it at the newest indexed block.
import { h } from "./dom.js";
import { data, path } from "./api.js";
import { address, badge, blockLink } from "./parts.js";

export const contractPath = (chain, of) => path`/v1/chains/${chain}/contracts/${of}`;

// Null where it is no proxy, or where that cannot be read: the page says less then, and nothing wrong.
export const proxyOf = (chain, of, signal) =>
  data(`${contractPath(chain, of)}/proxy`, {}, signal).then((found) => (found.isProxy ? found : null), quiet);

function quiet(error) {
  if (error.name === "AbortError") throw error;
  return null;
}

export function proxyNote(chain, proxy) {
  if (!proxy) return null;
  return h(
    "p.note.proxy",
    {},
    h("strong", {}, "Proxy. "),
    "Its calls are carried out by ",
    h("a.mono", { href: `#/chain/${encodeURIComponent(chain)}/contract/${proxy.implementation}`, title: proxy.implementation }, proxy.implementation),
    " ",
    badge(proxy.proxyKind),
    proxy.beacon && [" as the beacon ", address(chain, proxy.beacon), " says"],
    h("span.quiet", {}, " at block ", blockLink(chain, proxy.blockNumber), "."),
  );
}
