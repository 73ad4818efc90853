// The sentence about a transaction, as elements: amounts, and links to addresses and tokens.
import { h } from "./dom.js";
import { amount, short, whole } from "./format.js";
import { clip, quantity, to } from "./parts.js";

export function sentence(parts, { chain, native }) {
  return h(
    "p.happened",
    {},
    parts.map((part) => (typeof part === "string" ? part : shown(part, chain, native))),
    ".",
  );
}

function shown(part, chain, native) {
  if (part.party) return party(part.party, chain);
  if (part.said) return h("q", {}, clip(part.said, 160));
  if (part.code) return h("code", {}, clip(part.code, 60));
  if (part.native !== undefined) return moved(part.native, native.decimals, native.symbol);
  return part.nft ? nft(part, chain) : token(part, chain);
}

function party(given, chain) {
  if (!given?.address) return h("span.quiet", {}, "an unknown address");
  const href = given.decimals !== undefined ? to.token(chain, given.address) : to.address(chain, given.address);
  const name = given.name || given.symbol;
  return h(name ? "a.in-text" : "a.in-text.mono", { href, title: given.address }, name ? clip(name, 40) : short(given.address));
}

function token({ token: one, value }, chain) {
  const href = to.token(chain, one.address);
  const name = one.symbol || one.name;
  const link = h("a.in-text", { href, title: one.address }, name ? clip(name, 24) : short(one.address));
  if (value === undefined) return link;
  if (one.decimals === undefined) return h("span", {}, whole(value), " units of ", link);
  return h("span", {}, moved(value, one.decimals), " ", link);
}

// Something very small is said with every digit: "less than" would leave open whether anything moved.
const moved = (value, decimals, symbol) =>
  quantity(value, decimals, symbol, { full: amount(value, Number(decimals) || 0).startsWith("<") });

function nft({ nft: one, id, count, many }, chain) {
  const name = clip(one.name || one.symbol || short(one.address), 40);
  const collection = h("a.in-text", { href: to.collection(chain, one.address), title: one.address }, name);
  if (many) return h("span", {}, many, " of ", collection);
  const link = h("a.in-text", { href: to.nft(chain, one.address, id), title: id }, `#${clip(id, 14)}`);
  return h("span", {}, count !== undefined && count !== "1" ? `${whole(count)} × ` : "", collection, " ", link);
}
