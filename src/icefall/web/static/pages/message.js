// One message between two chains: where it was sent, where it was received, and what became of it.
import { h } from "../dom.js";
import { chains, data, path } from "../api.js";
import { rawData } from "../decoded.js";
import { whole } from "../format.js";
import { chainNames, chainShown, feeShown, isUnexecuted, messageStatus, partyShown, sides } from "../messages.js";
import { badge, card, crumbs, empty, exactTime, facts, header, id, quantity, table, to, txLink } from "../parts.js";

export async function render({ params, signal }) {
  const [message, names, all] = await Promise.all([
    data(path`/v1/icm/messages/${params.id}`, {}, signal),
    chainNames(),
    chains(),
  ]);
  const both = sides(message, names);
  const tokenOf = (evmId) => all.find((one) => one.chainId === evmId)?.networkToken;
  const known = both.source.evmId ? both.source : both.destination;
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], known.evmId && [known.name, `${to.chain(known.evmId)}?tab=messages`], ["Message"]),
    header(
      "Message between chains",
      id(message.messageId, { full: true, what: "message ID" }),
      messageStatus(message),
      isUnexecuted(message) && badge("execution failed", "bad"),
    ),
    isUnexecuted(message) &&
      h("p.notice", {}, "It was received, but what it calls has not succeeded yet. Anyone can have it tried again."),
    card("Details", details(message, both)),
    h(
      "div.columns",
      {},
      sideCard("Sent", both.source, tokenOf, "This chain is not indexed here, or has not sent it yet."),
      sideCard("Received", both.destination, tokenOf, "It has not been received on a chain that is indexed here."),
    ),
    message.data && card("Data", rawData("Raw data", message.data, true)),
    message.receipts.length > 0 && card("Receipts that it carries", receipts(message, both)),
  );
  return { title: `Message ${message.messageId.slice(0, 10)}…`, content };
}

function details(message, { source, destination }) {
  const fee = message.rewardDetails;
  return facts([
    ["Way", h("span.way", {}, chainShown(source), " to ", chainShown(destination))],
    ["Sender", partyShown(source, message.from, { full: true })],
    ["Recipient", partyShown(destination, message.to, { full: true })],
    ["Nonce", whole(message.messageNonce)],
    ["Executed", message.messageExecuted ? "yes" : "no"],
    source.tx && ["Fee", feeShown(fee, source, { full: true })],
    source.tx && ["Receipt", message.receiptDelivered ? "back at the source: the fee can be redeemed" : "not back yet"],
    ["Messenger", partyShown(source.evmId ? source : destination, message.icmContractAddress, { full: true })],
  ]);
}

// The fee of a transaction is paid in the native token of its chain.
function sideCard(title, side, tokenOf, none) {
  if (!side.tx) return card(title, facts([["Chain", chainShown(side)]]), empty(none));
  const native = tokenOf(side.evmId) || { decimals: 18, symbol: "" };
  const { tx } = side;
  return card(
    title,
    facts([
      ["Chain", chainShown(side)],
      side.blockchainId && ["Blockchain ID", id(side.blockchainId, { full: true, what: "blockchain ID" })],
      ["Transaction", side.evmId ? txLink(side.evmId, tx.txHash, { full: true }) : id(tx.txHash, { full: true })],
      ["Time", exactTime(tx.timestamp)],
      ["Paid for gas", quantity(tx.gasSpent, native.decimals, native.symbol, { full: true })],
      tx.delivererAddress && ["Delivered by", partyShown(side, tx.delivererAddress, { full: true })],
      tx.rewardRedeemer && ["Reward goes to", partyShown(side, tx.rewardRedeemer, { full: true })],
    ]),
  );
}

// Each tells the source of an earlier message, which is where this one goes, that it was received.
function receipts(message, { destination }) {
  return table(
    "Receipts",
    [
      { name: "Nonce of the message", on: "lead", cell: (row) => whole(row.receivedMessageNonce) },
      { name: "Relayer", on: "side", cell: (row) => partyShown(destination, row.relayerRewardAddress) },
    ],
    message.receipts,
  ).element;
}
