// A subnet or L1: its owners, blockchains and validators, those of an L1 with their balances.
import { h } from "../dom.js";
import { chains, path } from "../api.js";
import { whole } from "../format.js";
import {
  l1ValidatorColumns,
  networkList,
  nodeLink,
  onNetwork,
  owners,
  stakeStatus,
  staked,
  timeLeft,
  txLink,
} from "../network.js";
import { card, clip, crumbs, exactTime, facts, header, id, table, tabs, time, to } from "../parts.js";

export async function render({ params, query, signal, remember }) {
  const [found, indexed] = await Promise.all([onNetwork(path`/subnets/${params.id}`, {}, signal), chains()]);
  const { subnetId, blockchains } = found;
  const manager = found.l1ValidatorManagerDetails;
  const lists = [
    found.isL1 && { key: "l1", name: "L1 validators", load: () => l1Validators(subnetId, signal) },
    {
      key: "validators",
      name: found.isL1 ? "Earlier validators" : "Validators",
      load: () => validators(subnetId, signal),
    },
  ].filter(Boolean);
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Network", "#/network"], ["Subnets and L1s", "#/network?tab=subnets"], ["Subnet"]),
    header(found.isL1 ? "L1" : "Subnet", id(subnetId, { full: true, what: "subnet ID" })),
    card(
      "About",
      facts([
        ["Created", exactTime(found.createBlockTimestamp)],
        ["In P block", whole(found.createBlockIndex)],
        found.ownerAddresses.length > 0 && ["Owners", owners(found.ownerAddresses, found.threshold)],
        found.l1ConversionTransactionHash && [
          "Became an L1 in",
          txLink("P", found.l1ConversionTransactionHash, { full: true }),
        ],
        manager && ["Validator manager", h("span.mono", {}, manager.contractAddress)],
        manager && ["On chain", id(manager.blockchainId, { full: true, what: "chain ID" })],
      ]),
    ),
    blockchains.length > 0 && card("Blockchains", table("Blockchains", chainColumns(indexed), blockchains).element),
    tabs("Validators of the subnet", lists, query.get("tab"), (tab) => remember({ tab })),
  );
  return { title: `${found.isL1 ? "L1" : "Subnet"} ${subnetId.slice(0, 10)}…`, content };
}

// The name of a chain is whatever its creator wrote. Those that are indexed here have a page.
const chainColumns = (indexed) => [
  { name: "Name", on: "lead", cell: (row) => h("span", {}, clip(row.blockchainName, 40)) },
  { name: "Blockchain", on: "below", cell: (row) => id(row.blockchainId, { what: "chain ID" }) },
  { name: "Virtual machine", cell: (row) => id(row.vmId, { what: "VM ID" }) },
  {
    name: "EVM chain ID",
    on: "side",
    right: true,
    cell: (row) => {
      const key = String(row.evmChainId || "–");
      return indexed.some((one) => one.chainId === key) ? h("a", { href: to.chain(key) }, key) : key;
    },
  },
  { name: "Created", on: "aside", right: true, cell: (row) => time(row.createBlockTimestamp) },
];

const l1Validators = (subnetId, signal) =>
  networkList({
    target: "/l1Validators",
    key: "validators",
    query: { subnetId, includeInactiveL1Validators: true },
    label: "Validators of the L1",
    none: "It has no validators.",
    columns: l1ValidatorColumns({ of: subnetId }),
    signal,
  });

const validators = (subnetId, signal) =>
  networkList({
    target: "/validators",
    key: "validators",
    query: { subnetId },
    label: "Validation periods",
    none: "It has had no validators.",
    columns: [
      { name: "Validator", on: "lead", cell: (row) => nodeLink(row.nodeId) },
      { name: "Status", on: "below", cell: (row) => stakeStatus(row.validationStatus) },
      { name: "Weight", on: "side", right: true, cell: staked },
      { name: "Transaction", cell: (row) => txLink("P", row.txHash) },
      { name: "From", right: true, cell: (row) => time(row.startTimestamp) },
      { name: "Until", right: true, cell: (row) => time(row.removeTimestamp || row.endTimestamp) },
      {
        name: "Time left",
        on: "aside",
        right: true,
        cell: (row) => (row.validationStatus === "active" ? timeLeft(row) : "–"),
      },
    ],
    signal,
  });
