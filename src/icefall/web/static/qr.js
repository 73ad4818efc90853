// A QR code of an address, drawn here so that nothing is asked of another host. One size is enough for it: version 3 with
// error correction L holds 53 bytes. The mask is always the first one, which every reader understands.
import { svg } from "./dom.js";

const SIZE = 29;
const DATA = 55; // codewords, and 15 that correct errors
const CORRECTION = 15;
export const BYTES_MAX = 53;

function multiply(a, b) {
  let product = 0;
  for (let bit = 7; bit >= 0; bit -= 1) {
    product = (product << 1) ^ ((product >>> 7) * 0x11d);
    product ^= ((b >>> bit) & 1) * a;
  }
  return product;
}

// The remainder of a Reed-Solomon division by the generator of so many roots.
function corrections(data, degree) {
  const generator = new Array(degree).fill(0);
  generator[degree - 1] = 1;
  let root = 1;
  for (let step = 0; step < degree; step += 1) {
    for (let at = 0; at < degree; at += 1)
      generator[at] = multiply(generator[at], root) ^ (at + 1 < degree ? generator[at + 1] : 0);
    root = multiply(root, 2);
  }
  const rest = new Array(degree).fill(0);
  for (const byte of data) {
    const factor = byte ^ rest.shift();
    rest.push(0);
    generator.forEach((coefficient, at) => (rest[at] ^= multiply(coefficient, factor)));
  }
  return rest;
}

function codewords(text) {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length > BYTES_MAX) throw new Error(`a QR code of this size holds ${BYTES_MAX} bytes, got ${bytes.length}`);
  const nibbles = [4, bytes.length >> 4, bytes.length & 15]; // bytes follow, and so many
  for (const byte of bytes) nibbles.push(byte >> 4, byte & 15);
  nibbles.push(0);
  const data = [];
  for (let at = 0; at < nibbles.length; at += 2) data.push((nibbles[at] << 4) | (nibbles[at + 1] ?? 0));
  for (let pad = 0xec; data.length < DATA; pad ^= 0xec ^ 0x11) data.push(pad);
  return [...data.slice(0, DATA), ...corrections(data.slice(0, DATA), CORRECTION)];
}

// What is not data: the three corners, the small square, the dotted lines and the format. `fixed` says where that is.
function frame() {
  const cells = Array.from({ length: SIZE }, () => new Array(SIZE).fill(false));
  const fixed = Array.from({ length: SIZE }, () => new Array(SIZE).fill(false));
  const set = (x, y, dark) => {
    if (x < 0 || y < 0 || x >= SIZE || y >= SIZE) return;
    cells[y][x] = dark;
    fixed[y][x] = true;
  };
  for (let at = 0; at < SIZE; at += 1) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  const square = (x, y, radius, isDark) => {
    for (let dy = -radius; dy <= radius; dy += 1)
      for (let dx = -radius; dx <= radius; dx += 1) set(x + dx, y + dy, isDark(Math.max(Math.abs(dx), Math.abs(dy))));
  };
  for (const [x, y] of [[3, 3], [SIZE - 4, 3], [3, SIZE - 4]]) square(x, y, 4, (ring) => ring !== 2 && ring !== 4);
  square(22, 22, 2, (ring) => ring !== 1);
  const format = (at) => ((0x77c4 >> at) & 1) === 1; // error correction L, mask 0
  for (let at = 0; at < 6; at += 1) set(8, at, format(at));
  set(8, 7, format(6));
  set(8, 8, format(7));
  set(7, 8, format(8));
  for (let at = 9; at < 15; at += 1) set(14 - at, 8, format(at));
  for (let at = 0; at < 8; at += 1) set(SIZE - 1 - at, 8, format(at));
  for (let at = 8; at < 15; at += 1) set(8, SIZE - 15 + at, format(at));
  set(8, SIZE - 8, true);
  return { cells, fixed };
}

// Rows of dark and light cells. Pure.
export function matrix(text) {
  const data = codewords(text);
  const { cells, fixed } = frame();
  let bit = 0;
  for (let right = SIZE - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < SIZE; step += 1) {
      const y = ((right + 1) & 2) === 0 ? SIZE - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (fixed[y][x]) continue;
        const dark = bit < data.length * 8 && ((data[bit >> 3] >> (7 - (bit & 7))) & 1) === 1;
        cells[y][x] = dark !== ((x + y) % 2 === 0);
        bit += 1;
      }
    }
  }
  return cells;
}

export function qrCode(text, label) {
  const path = matrix(text)
    .flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : "")))
    .join("");
  return svg(
    "svg",
    { class: "qr", viewBox: `-4 -4 ${SIZE + 8} ${SIZE + 8}`, role: "img", "aria-label": label },
    svg("rect", { x: -4, y: -4, width: SIZE + 8, height: SIZE + 8, fill: "#fff" }),
    svg("path", { d: path, fill: "#000", "shape-rendering": "crispEdges" }),
  );
}
