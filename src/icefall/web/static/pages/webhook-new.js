// A form that creates a webhook, of any of the three kinds.
import { h } from "../dom.js";
import { call, chains, data, hasNode } from "../api.js";
import { card, clip, crumbs, empty, header, later } from "../parts.js";
import { networkName } from "../network.js";
import { EVENT_TYPES, WEBHOOKS, area, changeForm, check, checks, contents, input, number, owner, select, spaced, toWebhook, words } from "../webhooks.js";

const ADDRESS_EVENTS = ["balance_change", "balance_threshold", "reward_distribution"];
const VALIDATOR_EVENTS = [
  "validator_stake",
  "delegator_stake",
  "reward_distribution",
  "l1_validator_balance_increased",
  "l1_validator_disabled",
  "l1_validator_removed",
  "l1_validator_balance_threshold",
];
const BALANCES = {
  P: ["unlockedUnstaked", "unlockedStaked", "lockedPlatform", "lockedStakeable", "lockedStaked", "pendingStaked"],
  X: ["unlocked", "locked"],
};

export async function render({ query, signal }) {
  const place = h("div.page");
  const draw = () => place.replaceChildren(later(() => form(query, signal, draw), { rows: 8, hideEmpty: false }));
  draw();
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Webhooks", "#/webhooks"], ["New"]),
    header("Messages to your servers", "New webhook"),
    place,
  );
  return { title: "New webhook", content };
}

async function form(query, signal, again) {
  await data(WEBHOOKS, { pageSize: 1 }, signal); // asks for a key, if one is needed
  const [evm, network] = await Promise.all([chains().catch(() => []), hasNode() ? networkName().catch(() => "") : ""]);
  const types = EVENT_TYPES.filter(([key]) => (key === "address_activity" ? evm.length : network));
  const place = h("div");
  const draw = (type) => place.replaceChildren(formOf(type, { evm, network, query, signal }));
  const chosen = types.some(([key]) => key === query.get("type")) ? query.get("type") : types[0]?.[0];
  if (!chosen) return card("", empty("No chain is indexed here yet."));
  draw(chosen);
  const onchange = (event) => draw(event.target.value);
  return spaced(
    "",
    h("p.actions.quiet", {}, "It will be one of the webhooks", owner(again)),
    h("div.choices", {}, select("type", "What it is about", types, chosen, { onchange })),
    place,
  );
}

function formOf(type, about) {
  const { fields, read } = { address_activity: ofChain, primary_network_address_activity: ofAddresses, validator_activity: ofValidators }[type](about);
  const create = async (field, element) => {
    const given = { eventType: type, url: field("url"), name: field("name"), description: field("description"), ordered: field("ordered"), ...read(field, element) };
    const start = number(field("start"));
    if (start !== undefined) given.startBlock = start;
    const made = await call("POST", WEBHOOKS, given, about.signal);
    location.hash = toWebhook(made.id);
  };
  const common = [
    input("url", "URL", { type: "url", required: true, maxlength: 2048, across: true, placeholder: "https://" }),
    input("name", "Name", { maxlength: 1000 }),
    input("description", "Description", { maxlength: 1000 }),
  ];
  const last = [
    input("start", "First block", { type: "number", min: 0, inputmode: "numeric", note: "Empty: from the next block on." }),
    checks("Order", check("ordered", "A message is sent only after the one before was taken")),
  ];
  return changeForm("New webhook", [...common, ...fields, ...last], "Create", create, { kind: "button.primary" });
}

// -- by event type -------------------------------------------------------------------------------------------------

function ofChain({ evm, query }) {
  const fields = [
    select("chain", "Chain", evm.map((one) => [one.chainId, clip(one.chainName || one.chainId, 40)]), query.get("chain") || evm[0].chainId),
    input("confirmations", "Confirmations", { type: "number", min: 0, max: 100000, value: 0, note: "Blocks above a block before it is sent." }),
    area("addresses", "Addresses", { required: true, value: query.get("addresses") || "", note: "On lines, or apart by commas." }),
    area("topics", "Only transactions that have a log with one of these first topics", { note: "May be empty." }),
    contents(),
  ];
  const read = (field) => ({
    chainId: field("chain"),
    confirmations: number(field("confirmations")) ?? 0,
    includeLogs: field("logs"),
    includeInternalTxs: field("internals"),
    metadata: {
      addresses: words(field("addresses")),
      ...(words(field("topics")).length ? { eventSignatures: words(field("topics")) } : {}),
    },
  });
  return { fields, read };
}

const subEvents = (all) => checks("Events", all.map((one) => check(one, one)));

const balanceTypes = [...new Set([...BALANCES.P, ...BALANCES.X])].map((one) => [one, one]);

function ofAddresses({ network, query }) {
  const fields = [
    select("chain", "Chain", [["P", "P-Chain"], ["X", "X-Chain"], ["C", "C-Chain (imports and exports)"]], "P"),
    area("keys", "Addresses", { required: true, value: query.get("addresses") || "", note: "On lines, or apart by commas." }),
    subEvents(ADDRESS_EVENTS),
    select("balance", "Balance of balance_threshold", balanceTypes, "unlockedUnstaked"),
    input("threshold", "Its threshold in nAVAX", { inputmode: "numeric", pattern: "[0-9]{1,20}" }),
  ];
  const read = (field) => {
    const wanted = ADDRESS_EVENTS.filter(field);
    const metadata = { keyType: "addresses", keys: words(field("keys")), subEvents: { addressActivitySubEvents: wanted } };
    if (wanted.includes("balance_threshold"))
      metadata.balanceThresholdFilter = { balanceType: field("balance"), balanceThreshold: field("threshold") };
    return { network, chainId: field("chain"), metadata };
  };
  return { fields, read };
}

function ofValidators({ network, query }) {
  const fields = [
    select("kind", "Of", [["nodeId", "one node"], ["subnetId", "one subnet or L1"]], "nodeId"),
    input("key", "Its ID", { required: true, value: query.get("key") || "", maxlength: 128 }),
    subEvents(VALIDATOR_EVENTS),
    input("threshold", "Threshold of l1_validator_balance_threshold in nAVAX", { inputmode: "numeric", pattern: "[0-9]{1,20}" }),
    area("nodes", "Only these nodes", { note: "Node IDs; may be empty." }),
    area("subnets", "Only these subnets", { note: "Subnet IDs; may be empty." }),
  ];
  const read = (field) => {
    const wanted = VALIDATOR_EVENTS.filter(field);
    const metadata = { keyType: field("kind"), keys: [field("key")], subEvents: { validatorActivitySubEvents: wanted } };
    if (field("threshold")) metadata.l1ValidatorFeeBalanceThreshold = field("threshold");
    if (words(field("nodes")).length) metadata.nodeIds = words(field("nodes"));
    if (words(field("subnets")).length) metadata.subnetIds = words(field("subnets"));
    return { network, chainId: "P", metadata };
  };
  return { fields, read };
}
