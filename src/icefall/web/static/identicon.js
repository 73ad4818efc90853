// A small picture made of an address, so that two addresses with alike digits are not taken for one another. It depends
// on nothing but the digits, and so is the same on every page and on every chain.
import { svg } from "./dom.js";

const CELLS = 5; // mirrored, so that three columns are drawn from the digits
const ADDRESS = /^0x[0-9a-f]{40}$/;

// Bits that differ wherever the addresses do: a 32-bit FNV hash, stirred once more for each bit that is wanted.
function* bits(text) {
  let state = 0x811c9dc5;
  for (const character of text) state = Math.imul(state ^ character.charCodeAt(0), 0x01000193);
  for (;;) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    yield state >>> 0;
  }
}

// The path of the filled cells, and its hue. Pure.
export function pattern(address) {
  const values = bits(address.toLowerCase());
  const hue = values.next().value % 360;
  let path = "";
  for (let row = 0; row < CELLS; row += 1) {
    for (let column = 0; column < 3; column += 1) {
      if (values.next().value % 100 < 45) continue;
      for (const x of new Set([column, CELLS - 1 - column])) path += `M${x} ${row}h1v1h-1z`;
    }
  }
  return { hue, path: path || "M2 2h1v1h-1z" };
}

// null for what is not an address of an EVM chain.
export function identicon(address, size = 16) {
  if (!ADDRESS.test(String(address).toLowerCase())) return null;
  const { hue, path } = pattern(address);
  return svg(
    "svg",
    { class: "identicon", viewBox: "-1 -1 7 7", width: size, height: size, "aria-hidden": "true" },
    svg("rect", { x: -1, y: -1, width: 7, height: 7, rx: 1.4, fill: `hsl(${hue} 70% 90%)` }),
    svg("path", { d: path, fill: `hsl(${(hue + 20) % 360} 65% 38%)`, "shape-rendering": "crispEdges" }),
  );
}
