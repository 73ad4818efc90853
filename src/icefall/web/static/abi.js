// Arguments of a call, decoded by the types of its signature. Anything that does not fit is refused as a whole.
const WORD = 64;

export function decodeArguments(signature, input) {
  const open = signature.indexOf("(");
  const types = split(signature.slice(open + 1, signature.lastIndexOf(")")));
  const data = input.slice(10);
  try {
    return decodeTuple(types, data, 0).map((value, index) => ({ type: types[index], value }));
  } catch {
    return null;
  }
}

// Types at the top level of a list: `(a,b),c` is two of them.
function split(text) {
  const found = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at <= text.length; at += 1) {
    const one = text[at];
    if (one === "(") depth += 1;
    if (one === ")") depth -= 1;
    if ((one === "," && !depth) || at === text.length) {
      if (text.slice(start, at).trim()) found.push(text.slice(start, at).trim());
      start = at + 1;
    }
  }
  return found;
}

const arrayOf = (type) => type.match(/^(.*)\[(\d*)\]$/s);
const tupleOf = (type) => (type.startsWith("(") && type.endsWith(")") ? split(type.slice(1, -1)) : null);

function isDynamic(type) {
  const array = arrayOf(type);
  if (array) return array[2] === "" || isDynamic(array[1]);
  const tuple = tupleOf(type);
  return tuple ? tuple.some(isDynamic) : type === "bytes" || type === "string";
}

function headSize(type) {
  if (isDynamic(type)) return WORD;
  const array = arrayOf(type);
  if (array) return Number(array[2]) * headSize(array[1]);
  const tuple = tupleOf(type);
  return tuple ? tuple.reduce((size, one) => size + headSize(one), 0) : WORD;
}

function word(data, at) {
  const text = data.slice(at, at + WORD);
  if (text.length !== WORD) throw new RangeError("the data ends too early");
  return text;
}

function size(data, at) {
  const number = BigInt(`0x${word(data, at)}`);
  if (number > BigInt(data.length)) throw new RangeError("a length beyond the data");
  return Number(number);
}

function decodeTuple(types, data, start) {
  let head = start;
  return types.map((type) => {
    const at = isDynamic(type) ? start + size(data, head) * 2 : head;
    head += headSize(type);
    return decodeValue(type, data, at);
  });
}

function decodeValue(type, data, at) {
  const array = arrayOf(type);
  if (array) {
    const fixed = array[2] !== "";
    const count = fixed ? Number(array[2]) : size(data, at);
    if (count > 1000) throw new RangeError("too many items to show");
    return decodeTuple(
      Array.from({ length: count }, () => array[1]),
      data,
      fixed ? at : at + WORD,
    );
  }
  const tuple = tupleOf(type);
  if (tuple) return decodeTuple(tuple, data, at);
  if (type === "bytes" || type === "string") {
    const length = size(data, at) * 2;
    const text = data.slice(at + WORD, at + WORD + length);
    if (text.length !== length) throw new RangeError("the data ends too early");
    return type === "bytes" ? `0x${text}` : fromUtf8(text);
  }
  return decodeWord(type, word(data, at));
}

function decodeWord(type, text) {
  if (type === "address") return `0x${text.slice(24)}`;
  if (type === "bool") return BigInt(`0x${text}`) ? "true" : "false";
  const bytes = type.match(/^bytes(\d+)$/);
  if (bytes) return `0x${text.slice(0, Number(bytes[1]) * 2)}`;
  if (/^u?int\d*$/.test(type)) {
    const bits = Number(type.replace(/\D/g, "")) || 256;
    const number = BigInt(`0x${text}`);
    return String(type.startsWith("u") ? number : BigInt.asIntN(bits, number));
  }
  throw new TypeError(`unknown type ${type}`);
}

function fromUtf8(hex) {
  return new TextDecoder().decode(Uint8Array.from(hex.match(/../g) || [], (pair) => parseInt(pair, 16)));
}
