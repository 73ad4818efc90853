// Messages between chains: lists of them, and what pages say of one.
import { h, icon } from "./dom.js";
import { chains, data } from "./api.js";
import { address, badge, clip, id, list, quantity, time, to, txLink } from "./parts.js";

const PAGE = 25;

const STATUSES = {
  pending: ["not delivered yet", "warn"],
  delivered: ["delivered"],
  delivered_source_not_indexed: ["delivered, source not indexed"],
};

export const messageStatus = (message) => badge(...(STATUSES[message.status] || [message.status]));

// A message that arrived may still have failed there; it can be tried again.
export const isUnexecuted = (message) => Boolean(message.destinationTransaction) && !message.messageExecuted;

// One side of a message: the chain that is indexed here, or what is known of the other.
export function sides(message, names) {
  const side = (evmId, blockchainId, tx) => ({
    evmId: names.has(evmId) ? evmId : "",
    name: names.get(evmId) || (evmId && `Chain ${evmId}`) || "",
    blockchainId,
    tx,
  });
  return {
    source: side(message.sourceEvmChainId, message.sourceBlockchainId, message.sourceTransaction),
    destination: side(message.destinationEvmChainId, message.destinationBlockchainId, message.destinationTransaction),
  };
}

export async function chainNames() {
  return new Map((await chains()).map((one) => [one.chainId, one.chainName || one.chainId]));
}

export function chainShown({ evmId, name, blockchainId }) {
  if (evmId) return h("a", { href: to.chain(evmId) }, clip(name, 40));
  if (name) return clip(name, 40);
  return blockchainId ? id(blockchainId, { what: "blockchain ID" }) : h("span.quiet", {}, "unknown");
}

// An address is linked on the chain it is of, if that is indexed here.
export function partyShown({ evmId }, party, options) {
  return evmId ? address(evmId, { address: party }, options) : id(party, { what: "address", ...options });
}

export function feeShown({ value, symbol, decimals, address: token }, source, options) {
  if (value === "0") return h("span.quiet", {}, "none");
  return [quantity(value, decimals, symbol, options), " of ", partyShown(source, token, { full: options?.full })];
}

function columns(names, of) {
  const both = (row) => sides(row, names);
  const at = (row) => row.sourceTransaction?.timestamp ?? row.destinationTransaction?.timestamp;
  const way = (row) => h("span.way", {}, chainShown(both(row).source), icon("arrow"), chainShown(both(row).destination));
  const isOwn = (party) => Boolean(of) && party.toLowerCase() === of.toLowerCase();
  const party = (side, one) => (isOwn(one) ? h("span.quiet", {}, "this address") : partyShown(side, one));
  const tx = ({ evmId, tx: made }) => (made && evmId ? txLink(evmId, made.txHash) : h("span.quiet", {}, "–"));
  return [
    {
      name: "Message",
      on: "lead",
      cell: (row) => id(row.messageId, { href: to.message(row.messageId), what: "message ID" }),
    },
    { name: "Time", on: "aside", cell: (row) => (at(row) === undefined ? "–" : time(at(row))) },
    { name: "Chains", on: "below", cell: way },
    { name: "From", cell: (row) => party(both(row).source, row.from) },
    { name: "To", cell: (row) => party(both(row).destination, row.to) },
    { name: "Sent in", cell: (row) => tx(both(row).source) },
    { name: "Received in", cell: (row) => tx(both(row).destination) },
    {
      name: "Status",
      on: "side",
      cell: (row) => (isUnexecuted(row) ? badge("execution failed", "bad") : messageStatus(row)),
    },
  ];
}

// `of`: the address whose page this is.
export async function messageList({ target, query = {}, of, none, signal }) {
  return list({
    label: "Messages between chains",
    none,
    columns: columns(await chainNames(), of),
    load: async (pageToken) => {
      const page = await data(target, { ...query, pageSize: PAGE, pageToken }, signal);
      return { rows: page.messages, next: page.nextPageToken };
    },
  });
}
