// The primary network: its stake and supply, validators, delegations, subnets and L1s.
import { h } from "../dom.js";
import { data } from "../api.js";
import { percent, whole } from "../format.js";
import { charts, feeState } from "../network-figures.js";
import {
  PRIMARY,
  delegatorColumns,
  l1ValidatorColumns,
  networkList,
  networkName,
  onNetwork,
  subnetLink,
  txColumns,
  validatorColumns,
  wholeAvax,
} from "../network.js";
import { badge, card, clip, crumbs, facts, figures, header, later, tabs, time } from "../parts.js";

// What the list of validators can be sorted by, and in which order that is useful.
const SORTS = [
  ["", "Newest first", {}],
  ["capacity", "Most capacity", { sortBy: "delegationCapacity", sortOrder: "desc" }],
  ["fee", "Lowest fee", { sortBy: "delegationFee", sortOrder: "asc" }],
  ["left", "Most time left", { sortBy: "timeRemaining", sortOrder: "desc" }],
  ["ending", "Least time left", { sortBy: "timeRemaining", sortOrder: "asc" }],
];

export async function render({ query, signal, remember }) {
  const { validatorDetails, delegatorDetails } = await onNetwork("", {}, signal);
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Network"]),
    header("Primary network", "Validators, stake and L1s"),
    card(
      "Stake",
      figures([
        ["Validators", whole(validatorDetails.validatorCount)],
        ["Their stake", wholeAvax(validatorDetails.totalAmountStaked)],
        ["Delegations", whole(delegatorDetails.delegatorCount)],
        ["Delegated", wholeAvax(delegatorDetails.totalAmountStaked)],
        ["Share of supply", percent(validatorDetails.stakingRatio, 1)],
        ["Rewards in a year", wholeAvax(validatorDetails.estimatedAnnualStakingReward), "estimated"],
      ]),
    ),
    later(async () => h("div.columns", {}, await charts(await networkName(), PRIMARY, signal)), { rows: 8 }),
    h(
      "div.columns",
      {},
      later(() => supply(signal)),
      later(() => feeState(signal)),
    ),
    tabs(
      "Content of the network",
      [
        { key: "validators", name: "Validators", load: () => validators(query, remember, signal) },
        { key: "delegators", name: "Delegations", load: () => delegators(signal) },
        { key: "subnets", name: "Subnets and L1s", load: () => subnets(signal) },
        { key: "l1", name: "L1 validators", load: () => l1Validators(signal) },
        { key: "transactions", name: "P transactions", load: () => transactions(signal) },
      ],
      query.get("tab"),
      (tab) => remember({ tab }),
    ),
  );
  return { title: "Network", content };
}

// Amounts come as decimal numbers of AVAX.
async function supply(signal) {
  const found = await data("/v1/avax/supply", {}, signal);
  const row = (name, text) => text !== undefined && [name, h("span.number", {}, `${grouped(text)} AVAX`)];
  return card(
    "Supply",
    facts([
      row("Total", found.totalSupply),
      row("Circulating", found.circulatingSupply),
      row("Staked", found.totalStaked),
      row("Locked", found.totalLocked),
      row("Rewards paid", found.totalRewards),
      row("Burned on P", found.totalPBurned),
      row("Burned on X", found.totalXBurned),
      row("Burned on C", found.totalCBurned),
      row("Fees of L1 validators", found.l1ValidatorFees),
    ]),
  );
}

function grouped(decimal) {
  const [units, rest] = decimal.split(".");
  return rest ? `${whole(units)}.${rest}` : whole(units);
}

// What the list of validators can be narrowed to: name in the address, label, parameter of the interface, its value.
const FILTERS = [
  ["node", "Part of the node ID", "nodeIds", (text) => text],
  ["maxfee", "Highest fee in %", "maxFeePercentage", (text) => text],
  ["room", "Least capacity in AVAX", "minDelegationCapacity", (text) => String(BigInt(text) * 1_000_000_000n)],
];
const ACCEPTED = { node: "[1-9A-Za-z\\-]{1,48}", maxfee: "100|[2-9]|[1-9][0-9]", room: "[0-9]{1,9}" };

function validators(query, remember, signal) {
  const chosen = query.get("sort");
  const box = h("div.list");
  const inputs = FILTERS.map(([name, label]) =>
    h("input", { name, "aria-label": label, value: query.get(name) || "", pattern: ACCEPTED[name], size: 12 }),
  );
  const select = h(
    "select",
    {},
    SORTS.map(([key, name]) => h("option", { value: key, selected: key === (chosen || "") }, name)),
  );
  const narrowed = () =>
    Object.fromEntries(
      FILTERS.map(([, , param, read], at) => [inputs[at], param, read])
        .filter(([input]) => input.value && input.validity.valid)
        .map(([input, param, read]) => [param, read(input.value)]),
    );
  const draw = () => {
    const [, , sort] = SORTS.find(([key]) => key === select.value);
    const shown = networkList({
      target: "/validators",
      key: "validators",
      query: { subnetId: PRIMARY, validationStatus: "active", ...sort, ...narrowed() },
      label: "Validators",
      none: "There are no active validators.",
      columns: validatorColumns(),
      signal,
    });
    box.replaceChildren(later(() => shown, { rows: 5, hideEmpty: false }));
  };
  select.addEventListener("change", () => {
    remember({ sort: select.value });
    draw();
  });
  const filter = (event) => {
    event.preventDefault();
    if (!form.reportValidity()) return;
    remember(Object.fromEntries(inputs.map((input) => [input.name, input.value])));
    draw();
  };
  const form = h(
    "form.choices",
    { onsubmit: filter },
    h("label", {}, "Order", select),
    FILTERS.map(([, label], at) => h("label", {}, label, inputs[at])),
    h("button", { type: "submit" }, "Show"),
  );
  draw();
  return h("div.list", {}, form, box);
}

const delegators = (signal) =>
  networkList({
    target: "/delegators",
    key: "delegators",
    label: "Delegations",
    none: "There are no delegations yet.",
    columns: delegatorColumns(),
    signal,
  });

const l1Validators = (signal) =>
  networkList({
    target: "/l1Validators",
    key: "validators",
    query: { includeInactiveL1Validators: true },
    label: "Validators of L1s",
    none: "There are no validators of L1s.",
    columns: l1ValidatorColumns(),
    signal,
  });

const transactions = (signal) =>
  networkList({
    target: "/blockchains/p-chain/transactions",
    key: "transactions",
    label: "Transactions of the P-Chain",
    none: "No transaction has been accepted yet.",
    columns: txColumns("P"),
    signal,
  });

function kind(row) {
  if (row.subnetId === PRIMARY) return badge("primary");
  return row.isL1 ? badge("L1", "good") : badge("subnet");
}

const subnets = (signal) =>
  networkList({
    target: "/subnets",
    key: "subnets",
    label: "Subnets and L1s",
    none: "No subnet has been created yet.",
    columns: [
      { name: "Subnet", on: "lead", cell: (row) => subnetLink(row.subnetId, { head: 10 }) },
      { name: "Kind", on: "side", cell: kind },
      {
        name: "Blockchains",
        on: "below",
        wide: true,
        cell: (row) => clip(row.blockchains.map((one) => one.blockchainName).join(", ") || "–", 120),
      },
      { name: "Owners", right: true, cell: (row) => whole(row.ownerAddresses.length) },
      { name: "Created", on: "aside", right: true, cell: (row) => time(row.createBlockTimestamp) },
    ],
    signal,
  });
