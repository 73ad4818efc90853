// What a transaction did, as one sentence made of its transfers, its method and, where these are needed, its logs.
// It says only what these show: a token that moved, not why; where nothing plain can be said, the call itself.
// The sentence is a list of strings and {party}, {native}, {token, value}, {nft, id}, {code}, {said}: see sentence.js.
import { isAmount, movedToken as tokenOf } from "./columns.js";

const ZERO = "0x0000000000000000000000000000000000000000";
const APPROVAL = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925";
const APPROVAL_FOR_ALL = "0x17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31";
const DEPOSIT = "0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c";
const WITHDRAWAL = "0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65";
const UNLIMITED = 1n << 255n;

const low = (party) => String(party?.address || "").toLowerCase();
const same = (one, other) => low(one) === low(other);
const isZero = (party) => low(party) === ZERO;
const only = (values) => (new Set(values).size === 1 ? values[0] : undefined);

// `logs`: a function that reads the logs of the transaction; called only where a sentence may depend on them.
// `reason`: reads what the contract says about a failure.
export async function happened({ tx, transfers, internals, isCut, logs, reason }) {
  const by = { party: tx.from };
  if (tx.txStatus !== "1") return [...failed(tx, by), ...because(await reason?.())];
  if (tx.method.callType === "CONTRACT_CREATION") return [by, " deployed the contract ", { party: tx.to }];
  const plain = isCut || !transfers.length ? null : moved(tx, by, transfers, internals);
  if (plain) return plain;
  if (!transfers.length && tx.method.callType === "NATIVE_TRANSFER") return sent(by, { native: tx.value }, tx.to, tx.from);
  if (!transfers.length) {
    const logged = await granted(tx, by, internals, logs);
    if (logged) return logged;
  }
  return called(tx, by, transfers.length, isCut);
}

function failed(tx, by) {
  if (tx.method.callType === "CONTRACT_CREATION") return [by, " tried to deploy a contract, which failed"];
  if (tx.method.callType === "NATIVE_TRANSFER") {
    return [by, " tried to send ", { native: tx.value }, " to ", { party: tx.to }, ", which failed"];
  }
  return [...called(tx, by, 0), ", which failed"];
}

const because = (text) => (text ? [": ", { said: text }] : []);

function called(tx, by, count, isCut) {
  const name = tx.method.methodName?.replace(/\(.*$/s, "");
  const what = name ? [" called ", { code: `${name}()` }, " on "] : [" called ", { code: tx.method.methodHash }, " on "];
  const plain = tx.method.methodHash || name ? what : [" called "];
  const value = BigInt(tx.value) ? [" with ", { native: tx.value }] : [];
  const made = count === 1 ? "a token transfer" : `${count} token transfers`;
  const many = isCut ? ", which made more than is listed here" : count ? `, which made ${made}` : "";
  return [by, ...plain, { party: tx.to }, ...value, many];
}

function sent(by, what, to, from) {
  return same(to, from) ? [by, " sent ", what, " to itself"] : [by, " sent ", what, " to ", { party: to }];
}

// -- transfers -----------------------------------------------------------------------------------------------------

// What is moved, as a part of the sentence: of several transfers of a token their sum, or how many NFTs.
function things(moves) {
  const token = tokenOf(moves[0]);
  if (isAmount(moves[0])) {
    return { token, value: String(moves.reduce((sum, one) => sum + BigInt(one.value), 0n)) };
  }
  if (moves.length === 1 && !moves[0].lastTokenId) {
    return { nft: token, id: token.tokenId, count: moves[0].value };
  }
  if (moves.some((one) => one.lastTokenId)) return { nft: token, many: "NFTs" };
  return { nft: token, many: `${moves.length} NFTs` };
}

function moved(tx, by, transfers, internals) {
  const one = only(transfers.map((move) => low(tokenOf(move))));
  const exchanged = exchange(tx, by, transfers, internals);
  if (exchanged) return exchanged;
  if (one === undefined) return null;
  const senders = transfers.map((move) => low(move.from));
  const recipients = transfers.map((move) => low(move.to));
  const what = things(transfers);
  const [first] = transfers;
  if (only(senders) === undefined) return null;
  const value = BigInt(tx.value) && !same(tx.from, tx.to) ? [", with ", { native: tx.value }] : [];
  const to = only(recipients) === undefined ? null : first.to;
  if (isZero(first.from)) return [by, " minted ", what, ...receiver(to, recipients, tx.from), ...value];
  if (to && isZero(to)) return [by, " burned ", what, ...(same(first.from, tx.from) ? [] : [" of ", { party: first.from }]), ...value];
  if (recipients.includes(ZERO)) return null;
  if (!same(first.from, tx.from)) {
    return [by, " moved ", what, " from ", { party: first.from }, ...receiver(to, recipients), ...value];
  }
  return to ? [...sent(by, what, to, tx.from), ...value] : [by, " sent ", what, ...receiver(to, recipients), ...value];
}

function receiver(to, recipients, own) {
  if (to) return own && same(to, own) ? [] : [" to ", { party: to }];
  return [` to ${new Set(recipients).size} addresses`];
}

// The sender gave one thing and got another one: a swap if both existed before and after.
function exchange(tx, by, transfers, internals) {
  const out = new Map();
  const into = new Map();
  const note = (map, key, what, amount) => map.set(key, { what, amount: (map.get(key)?.amount || 0n) + amount });
  for (const move of transfers) {
    if (same(move.from, move.to)) continue;
    const token = tokenOf(move);
    if (!isAmount(move)) {
      if (move.lastTokenId) return null;
      const key = `${low(token)} ${token.tokenId}`;
      if (same(move.from, tx.from)) note(out, key, move, BigInt(move.value ?? 1));
      if (same(move.to, tx.from)) note(into, key, move, BigInt(move.value ?? 1));
    } else {
      if (same(move.from, tx.from)) note(out, low(token), move, BigInt(move.value));
      if (same(move.to, tx.from)) note(into, low(token), move, BigInt(move.value));
    }
  }
  if (BigInt(tx.value) && !same(tx.to, tx.from)) note(out, "native", null, BigInt(tx.value));
  for (const call of internals) {
    if (same(call.to, tx.from) && !same(call.from, tx.from) && !call.isReverted && BigInt(call.value)) {
      note(into, "native", null, BigInt(call.value));
    }
  }
  if (out.size !== 1 || into.size !== 1) return null;
  const [[outKey, gave]] = out;
  const [[inKey, got]] = into;
  if (outKey === inKey || !gave.amount || !got.amount) return null;
  const part = ({ what, amount }) => {
    if (!what) return { native: String(amount) };
    if (isAmount(what)) return { token: tokenOf(what), value: String(amount) };
    return { nft: tokenOf(what), id: tokenOf(what).tokenId, count: what.value };
  };
  const isFungible = [gave, got].every(({ what }) => !what || isAmount(what));
  const isMade = got.what && isZero(got.what.from);
  const isBurned = gave.what && isZero(gave.what.to);
  const verb = isFungible && !isMade && !isBurned ? [" swapped ", " for "] : [isBurned ? " burned " : " sent ", isMade ? ", and was minted " : ", and received "];
  return [by, verb[0], part(gave), verb[1], part(got)];
}

// -- logs ----------------------------------------------------------------------------------------------------------

const METHODS_WITH_LOGS = /^(approve|setApprovalForAll|increaseAllowance|decreaseAllowance|permit|deposit|withdraw)\(/;
const addressOf = (topic) => ({ address: `0x${topic.slice(26)}` });

// Approvals and wrapped native tokens are seen in logs only. The contract that logs is the one that was called.
async function granted(tx, by, internals, logs) {
  if (!METHODS_WITH_LOGS.test(tx.method.methodName || "")) return null;
  const found = ((await logs()) || []).filter((log) => same(log, tx.to));
  if (found.length !== 1) return null;
  const [{ topics, data }] = found;
  if (topics[0] === APPROVAL && low(addressOf(topics[1])) === low(tx.from)) return approval(by, topics, data, tx.to);
  if (topics[0] === APPROVAL_FOR_ALL && topics.length === 3 && low(addressOf(topics[1])) === low(tx.from)) {
    const verb = BigInt(data) ? " allowed " : " no longer allows ";
    return [by, verb, { party: addressOf(topics[2]) }, " to move all its NFTs of ", { party: tx.to }];
  }
  const isToken = tx.to.decimals !== undefined;
  const isOwn = topics.length === 2 && low(addressOf(topics[1])) === low(tx.from);
  if (!isToken || !isOwn || data.length !== 66) return null;
  if (topics[0] === DEPOSIT && BigInt(data) === BigInt(tx.value) && BigInt(tx.value)) {
    return [by, " wrapped ", { native: tx.value }, " as ", { token: tx.to, value: tx.value }];
  }
  const returned = internals.some((call) => same(call.to, tx.from) && !call.isReverted && BigInt(call.value) === BigInt(data));
  if (topics[0] === WITHDRAWAL && returned && BigInt(data)) {
    const value = String(BigInt(data));
    return [by, " unwrapped ", { token: tx.to, value }, " to ", { native: value }];
  }
  return null;
}

function approval(by, topics, data, token) {
  const spender = { party: addressOf(topics[2]) };
  if (topics.length === 4) {
    const id = String(BigInt(topics[3]));
    return isZero(spender.party)
      ? [by, " withdrew the permission to move ", { nft: token, id }]
      : [by, " allowed ", spender, " to move ", { nft: token, id }];
  }
  if (topics.length !== 3 || data.length !== 66) return null;
  const value = BigInt(data);
  if (!value) return [by, " no longer allows ", spender, " to spend its ", { token }];
  if (value >= UNLIMITED) return [by, " allowed ", spender, " to spend any amount of its ", { token }];
  return [by, " allowed ", spender, " to spend ", { token, value: String(value) }];
}
