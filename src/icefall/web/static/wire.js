// Bytes of the primary network: CB58 and bech32 texts, UTXOs, and the headers of containers and blocks.
import { sha256 } from "./sha256.js";

const BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";

export function fromHex(text) {
  return Uint8Array.from(text.replace(/^0x/, "").match(/../g) || [], (pair) => parseInt(pair, 16));
}

const toHex = (bytes) => "0x" + [...bytes].map((one) => one.toString(16).padStart(2, "0")).join("");

// Hex as the node writes it, with four bytes of checksum at the end.
export const unchecked = (text) => fromHex(text).slice(0, -4);

export function cb58(bytes) {
  const all = new Uint8Array([...bytes, ...sha256(bytes).slice(-4)]);
  let number = all.reduce((sum, one) => sum * 256n + BigInt(one), 0n);
  let text = "";
  while (number) {
    text = BASE58[Number(number % 58n)] + text;
    number /= 58n;
  }
  const zeros = all.findIndex((one) => one !== 0);
  return "1".repeat(zeros < 0 ? all.length : zeros) + text;
}

export function bech32(prefix, bytes) {
  const words = [];
  let held = 0;
  let bits = 0;
  for (const one of bytes) {
    held = (held << 8) | one;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      words.push((held >> bits) & 31);
    }
    held &= (1 << bits) - 1;
  }
  if (bits) words.push((held << (5 - bits)) & 31);
  const spread = [
    ...[...prefix].map((one) => one.charCodeAt(0) >> 5),
    0,
    ...[...prefix].map((one) => one.charCodeAt(0) & 31),
  ];
  const sum = polymod([...spread, ...words, 0, 0, 0, 0, 0, 0]) ^ 1;
  const check = Array.from({ length: 6 }, (_, index) => (sum >> (5 * (5 - index))) & 31);
  return `${prefix}1${[...words, ...check].map((one) => BECH32[one]).join("")}`;
}

function polymod(words) {
  let sum = 1;
  for (const one of words) {
    const top = sum >>> 25;
    sum = ((sum & 0x1ffffff) << 5) ^ one;
    [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3].forEach((part, index) => {
      if ((top >> index) & 1) sum ^= part;
    });
  }
  return sum >>> 0;
}

export class Source {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  take(count) {
    if (count < 0 || this.at + count > this.bytes.length) throw new RangeError("the bytes end too early");
    this.at += count;
    return this.bytes.slice(this.at - count, this.at);
  }

  number(count) {
    return this.take(count).reduce((sum, one) => sum * 256n + BigInt(one), 0n);
  }

  u32() {
    return Number(this.number(4));
  }

  blob() {
    return this.take(this.u32());
  }

  id() {
    return cb58(this.take(32));
  }
}

// -- UTXOs ---------------------------------------------------------------------------------------------------------

const OUTPUTS = {
  6: "mint right",
  7: "amount",
  10: "NFT mint right",
  11: "NFT",
  15: "property mint right",
  16: "property",
};

export function decodeUtxo(bytes, prefix) {
  const source = new Source(bytes);
  source.take(2);
  const utxo = { txID: source.id(), outputIndex: source.u32(), assetID: source.id() };
  const type = source.u32();
  utxo.kind = OUTPUTS[type] || `type ${type}`;
  if (type === 7) utxo.amount = source.number(8);
  if (type === 10) utxo.group = source.u32();
  if (type === 11) {
    utxo.group = source.u32();
    utxo.payload = source.blob().length;
  }
  utxo.locktime = source.number(8);
  utxo.threshold = source.u32();
  const count = source.u32();
  utxo.addresses = Array.from({ length: Math.min(count, 1024) }, () => `X-${bech32(prefix, source.take(20))}`);
  return utxo;
}

// -- containers ----------------------------------------------------------------------------------------------------

const CONTAINERS = ["signed or unsigned block", "option", "block with epoch"];
const PLATFORM = {
  0: "proposal",
  1: "abort",
  2: "commit",
  3: "standard",
  4: "atomic",
  29: "proposal",
  30: "abort",
  31: "commit",
  32: "standard",
};

// The header of a container and of the block in it. `inner` null: the bytes are those of a block without a wrapping.
export function decodeContainer(bytes, chain) {
  let outer = null;
  let block = bytes;
  try {
    outer = decodeOuter(bytes);
    block = outer.block;
  } catch {
    outer = null; // the first blocks of a chain have no wrapping
  }
  let inner = null;
  try {
    inner = { X: decodeAsset, P: decodePlatform, C: decodeEvm }[chain](block);
  } catch {
    inner = null;
  }
  return { outer, inner, size: bytes.length };
}

function decodeOuter(bytes) {
  const source = new Source(bytes);
  if (source.number(2) !== 0n) throw new RangeError("another version");
  const type = source.u32();
  if (type > 2) throw new RangeError("not a container");
  const outer = { kind: CONTAINERS[type], parent: source.id() };
  if (type === 1) outer.block = source.blob();
  else {
    outer.time = Number(source.number(8));
    outer.pHeight = source.number(8);
    outer.certificate = source.blob().length;
    outer.block = source.blob();
    if (type === 2)
      outer.epoch = { pHeight: source.number(8), number: source.number(8), start: Number(source.number(8)) };
    outer.signature = source.blob().length;
  }
  if (source.at !== bytes.length) throw new RangeError("more bytes than expected");
  return outer;
}

function decodeAsset(bytes) {
  const source = new Source(bytes);
  source.take(2);
  const type = source.u32();
  if (type !== 20) throw new RangeError("not a block");
  return {
    id: cb58(sha256(bytes)),
    kind: "standard",
    parent: source.id(),
    height: source.number(8),
    time: Number(source.number(8)),
    root: source.id(),
    txs: source.u32(),
  };
}

function decodePlatform(bytes) {
  const source = new Source(bytes);
  source.take(2);
  const type = source.u32();
  if (!(type in PLATFORM)) throw new RangeError("not a block");
  const inner = { id: cb58(sha256(bytes)), kind: PLATFORM[type] };
  if (type >= 29) inner.time = Number(source.number(8));
  if (type === 29) inner.txs = source.u32();
  if (inner.txs) return inner; // a proposal's decision transactions come before parent and height
  inner.parent = source.id();
  inner.height = source.number(8);
  if (type === 3 || type === 32) inner.txs = source.u32();
  return inner;
}

function rlp(source) {
  const first = Number(source.number(1));
  if (first < 0x80) return Uint8Array.of(first);
  if (first < 0xb8) return source.take(first - 0x80);
  if (first < 0xc0) return source.take(Number(source.number(first - 0xb7)));
  const inside = new Source(source.take(first < 0xf8 ? first - 0xc0 : Number(source.number(first - 0xf7))));
  const items = [];
  while (inside.at < inside.bytes.length) items.push(rlp(inside));
  return items;
}

function decodeEvm(bytes) {
  const [header, txs, , , atomic] = rlp(new Source(bytes));
  const number = (index) => header[index].reduce((sum, one) => sum * 256n + BigInt(one), 0n);
  return {
    kind: "EVM block",
    parent: toHex(header[0]),
    coinbase: toHex(header[2]),
    stateRoot: toHex(header[3]),
    height: number(8),
    gasLimit: number(9),
    gasUsed: number(10),
    time: Number(number(11)),
    baseFee: header.length > 16 ? number(16) : undefined,
    txs: txs.length,
    atomicBytes: atomic?.length || 0,
  };
}
