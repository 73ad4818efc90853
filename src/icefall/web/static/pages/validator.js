// A validator of the primary network or of subnets: what it does now, its delegations and its periods.
import { h } from "../dom.js";
import { CallError } from "../api.js";
import { percent, whole } from "../format.js";
import {
  PRIMARY,
  addressLink,
  avax,
  delegatorColumns,
  fee,
  l1ValidatorColumns,
  networkList,
  onNetwork,
  periodColumns,
  stakeStatus,
  staked,
  subnetLink,
  timeLeft,
  txLink,
} from "../network.js";
import { card, crumbs, exactTime, facts, header, id, later, tabs } from "../parts.js";

export async function render({ params, query, signal, remember }) {
  const nodeId = params.node;
  const [periods, l1] = await Promise.all([
    onNetwork("/validators", { nodeIds: nodeId, pageSize: 100 }, signal),
    onNetwork("/l1Validators", { nodeId, includeInactiveL1Validators: true, pageSize: 1 }, signal),
  ]);
  if (!periods.validators.length && !l1.validators.length)
    throw new CallError(`no validator with the node ID ${nodeId} is known here`, 404);
  const now = periods.validators.find((one) => one.subnetId === PRIMARY && one.validationStatus === "active");
  const newest = now || periods.validators[0];
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Network", "#/network"], ["Validator"]),
    header(
      "Validator",
      id(nodeId, { full: true, what: "node ID" }),
      newest ? stakeStatus(newest.validationStatus) : null,
    ),
    newest && about(newest),
    later(() => ofL1s(nodeId, signal)),
    tabs(
      "History of the validator",
      [
        { key: "delegators", name: "Delegations", load: () => delegators(nodeId, signal) },
        { key: "periods", name: "Periods", load: () => history(nodeId, signal) },
      ],
      query.get("tab"),
      (tab) => remember({ tab }),
    ),
  );
  return { title: `Validator ${nodeId.slice(0, 14)}…`, content };
}

// The current period on the primary network, else the newest anywhere.
function about(row) {
  const isPrimary = row.subnetId === PRIMARY;
  const rewards = row.rewards || row.potentialRewards;
  const isPaid = Boolean(row.rewards);
  return card(
    row.validationStatus === "active" ? "Now" : "Newest period",
    facts([
      ["Network", subnetLink(row.subnetId, { full: true })],
      [isPrimary ? "Own stake" : "Weight", staked(row, { full: true })],
      row.stakePercentage !== undefined && ["Share of the stake", percent(row.stakePercentage, 100)],
      isPrimary && row.amountDelegated !== undefined && [
        "Delegated",
        avax(row.amountDelegated, { full: true }),
        ` by ${whole(row.delegatorCount)}`,
      ],
      row.delegationCapacity !== undefined && ["Capacity for more", avax(row.delegationCapacity, { full: true })],
      isPrimary && row.avalancheGoVersion && ["Uptime", `${row.uptimePerformance}%`],
      row.avalancheGoVersion && ["Version", row.avalancheGoVersion],
      row.delegationFee !== undefined && ["Fee", fee(row.delegationFee)],
      ["From", exactTime(row.startTimestamp)],
      ["Until", exactTime(row.endTimestamp)],
      row.validationStatus === "active" && ["Time left", timeLeft(row)],
      row.removeTimestamp !== undefined && ["Removed", exactTime(row.removeTimestamp)],
      isPrimary && rewards && [
        isPaid ? "Reward" : "Reward to come",
        avax(rewards.validationRewardAmount, { full: true }),
      ],
      isPrimary && rewards && [
        isPaid ? "Reward from delegations" : "To come from delegations",
        avax(rewards.delegationRewardAmount, { full: true }),
      ],
      rewards?.rewardAddresses?.length && [
        "Paid to",
        rewards.rewardAddresses.map((one) => h("div", {}, addressLink(one, { full: true }))),
      ],
      ["Transaction", txLink("P", row.txHash, { full: true })],
      row.blsCredentials && ["BLS key", id(row.blsCredentials.publicKey, { full: true, what: "BLS key" })],
    ]),
  );
}

async function ofL1s(nodeId, signal) {
  const shown = await networkList({
    target: "/l1Validators",
    key: "validators",
    query: { nodeId, includeInactiveL1Validators: true },
    label: "Validations of L1s",
    columns: l1ValidatorColumns(),
    hideEmpty: true,
    signal,
  });
  return shown && card("Validates L1s", shown);
}

const delegators = (nodeId, signal) =>
  networkList({
    target: "/delegators",
    key: "delegators",
    query: { nodeIds: nodeId },
    label: "Delegations to the validator",
    none: "It has no delegations.",
    columns: delegatorColumns({ of: nodeId }),
    signal,
  });

const history = (nodeId, signal) =>
  networkList({
    target: "/validators",
    key: "validators",
    query: { nodeIds: nodeId },
    label: "Validation periods",
    none: "It never validated the primary network or a subnet.",
    columns: periodColumns(),
    signal,
  });
