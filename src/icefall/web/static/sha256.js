// SHA-256 (FIPS 180-4). The browser's own is only there in secure contexts, and an Explorer may be on plain http.
const PRIMES = [];
for (let number = 2; PRIMES.length < 64; number += 1) {
  if (PRIMES.every((prime) => number % prime)) PRIMES.push(number);
}
const fraction = (root) => ((root - Math.floor(root)) * 2 ** 32) | 0;
const START = PRIMES.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
const ROUND = PRIMES.map((prime) => fraction(Math.cbrt(prime)));
const turn = (word, by) => (word >>> by) | (word << (32 - by));

export function sha256(bytes) {
  const length = bytes.length;
  const padded = new Uint8Array((((length + 8) >> 6) + 1) * 64);
  padded.set(bytes);
  padded[length] = 0x80;
  new DataView(padded.buffer).setUint32(padded.length - 4, length * 8);
  const view = new DataView(padded.buffer);
  let state = [...START];
  const words = new Int32Array(64);
  for (let block = 0; block < padded.length; block += 64) {
    for (let i = 0; i < 64; i += 1) {
      if (i < 16) words[i] = view.getInt32(block + i * 4);
      else {
        const a = words[i - 15];
        const b = words[i - 2];
        words[i] =
          (words[i - 16] +
            (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) +
            words[i - 7] +
            (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10))) |
          0;
      }
    }
    let [a, b, c, d, e, f, g, hh] = state;
    for (let i = 0; i < 64; i += 1) {
      const one = (hh + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUND[i] + words[i]) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [hh, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
    }
    state = state.map((old, index) => (old + [a, b, c, d, e, f, g, hh][index]) | 0);
  }
  const out = new DataView(new ArrayBuffer(32));
  state.forEach((word, index) => out.setInt32(index * 4, word));
  return new Uint8Array(out.buffer);
}
