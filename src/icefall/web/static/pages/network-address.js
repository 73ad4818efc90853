// An address on the chains of the primary network: balances by category, outputs, stakes, rewards and transactions.
import { h } from "../dom.js";
import { percent, whole } from "../format.js";
import { avax, chainLetters, networkList, nodeLink, onNetwork, txColumns, txLink } from "../network.js";
import { badge, card, crumbs, header, id, later, quantity, table, tabs, time, to } from "../parts.js";

const TABS = ["P", "X", "C"];
// What P says of outputs in the memory that it shares with another chain.
const DIRECTIONS = { pendingExport: "to", pendingImport: "from" };

// Fields of the answers, in the order in which they are shown.
const CATEGORIES = {
  unlockedUnstaked: "Can be spent",
  unlocked: "Can be spent",
  unlockedStaked: "Staked",
  lockedStakeable: "Locked, can be staked",
  lockedStaked: "Locked and staked",
  pendingStaked: "Stake that has not begun",
  lockedPlatform: "Locked",
  locked: "Locked",
  atomicMemoryUnlocked: "Exported, not imported", // both of these chains list it
  atomicMemoryLocked: "Exported, not imported, locked",
};
const REWARDS = { VALIDATOR: "validation", DELEGATOR: "delegation", VALIDATOR_FEE: "fee of delegations" };

export async function render({ params, query, signal, remember }) {
  const address = params.address.replace(/^[XPC]-/, "");
  const letters = await chainLetters();
  const all = await Promise.all(
    TABS.map(async (letter) => {
      const { balances } = await onNetwork(
        `/blockchains/${letter.toLowerCase()}-chain/balances`,
        { addresses: address },
        signal,
      );
      return Object.keys(CATEGORIES).flatMap((key) =>
        (balances[key] || []).map((one) => ({ ...one, letter, category: categoryOf(key, one, letters) })),
      );
    }),
  );
  const balances = all.flat();
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], ["Network", "#/network"], ["Address"]),
    header(
      "Address of the primary network",
      id(address, { full: true, what: "address" }),
      h("a.in-text", { href: to.x("address", `X-${address}`) }, "On the asset chain"),
    ),
    card(
      "Balances",
      balances.length ? table("Balances", balanceColumns(), balances).element : h("p.state", {}, "It holds nothing."),
    ),
    tabs(
      "What belongs to the address",
      [
        { key: "utxos", name: "UTXOs of P", load: () => utxos("P", address, signal) },
        { key: "x-utxos", name: "UTXOs of X", load: () => utxos("X", address, signal) },
        { key: "c-utxos", name: "UTXOs of C", load: () => utxos("C", address, signal) },
        { key: "stakes", name: "Stakes", load: () => stakes(address, signal) },
        { key: "rewards", name: "Rewards", load: () => rewards(address, signal) },
        { key: "history", name: "P transactions", load: () => history("P", address, signal) },
        { key: "x-history", name: "X transactions", load: () => history("X", address, signal) },
        { key: "c-history", name: "C transactions", load: () => history("C", address, signal) },
      ],
      query.get("tab"),
      (tab) => remember({ tab }),
    ),
  );
  return { title: `Address ${address.slice(0, 14)}…`, content };
}

// With the other chain of what is in shared memory, and on P with the direction.
function categoryOf(key, { sharedWithChainId, status }, letters) {
  const other = letters.get(sharedWithChainId);
  return other ? `${CATEGORIES[key]}: ${DIRECTIONS[status] || "shared with"} ${other}` : CATEGORIES[key];
}

const assetAmount = (asset) => quantity(asset.amount, asset.denomination, asset.symbol || asset.assetId);

const balanceColumns = () => [
  { name: "Chain", on: "lead", cell: (row) => `${row.letter}-Chain` },
  { name: "Category", on: "below", cell: (row) => row.category },
  { name: "Amount", on: "side", right: true, cell: assetAmount },
  {
    name: "Outputs",
    on: "aside",
    right: true,
    cell: (row) => (row.utxoCount === 1 ? "1 UTXO" : `${whole(row.utxoCount)} UTXOs`),
  },
];

function kind(row) {
  const until = Number(row.stakeableLocktime || row.platformLocktime || row.locktime || 0);
  return [
    badge(row.staked ? "staked" : String(row.utxoType).toLowerCase(), row.staked ? "warn" : ""),
    row.rewardType && badge("reward", "good"),
    until > Date.now() / 1000 && badge("locked", "bad"),
  ];
}

const utxos = (letter, address, signal) =>
  networkList({
    target: `/blockchains/${letter.toLowerCase()}-chain/utxos`,
    key: "utxos",
    query: { addresses: address },
    label: `Unspent outputs on the ${letter}-Chain`,
    none: "There are none.",
    columns: [
      {
        name: "Output of",
        on: "lead",
        cell: (row) => [txLink(letter, row.txHash || row.creationTxHash), h("span.quiet", {}, ` #${row.outputIndex}`)],
      },
      { name: "Kind", on: "below", cell: kind },
      {
        name: "Owners",
        cell: (row) => (row.addresses.length === 1 ? "this address" : `${row.threshold} of ${row.addresses.length}`),
      },
      { name: "Amount", on: "side", right: true, cell: (row) => assetAmount(row.asset) },
      { name: "Made", on: "aside", right: true, cell: (row) => time(row.blockTimestamp ?? row.timestamp) },
    ],
    signal,
  });

const history = (letter, address, signal) =>
  networkList({
    target: `/blockchains/${letter.toLowerCase()}-chain/transactions`,
    key: "transactions",
    query: { addresses: address },
    label: `Transactions on the ${letter}-Chain`,
    none: "There are none.",
    columns: txColumns(letter),
    signal,
  });

const stakes = (address, signal) =>
  networkList({
    target: "/blockchains/p-chain/transactions:listStaking",
    key: "transactions",
    query: { addresses: address },
    label: "Active stakes",
    none: "Nothing of it is staked now.",
    columns: [
      { name: "Transaction", on: "lead", cell: (row) => txLink("P", row.txHash) },
      { name: "Type", on: "below", cell: (row) => badge(row.txType.replace(/Tx$/, ""), "method") },
      { name: "Validator", cell: (row) => row.nodeId && nodeLink(row.nodeId) },
      { name: "Staked", on: "side", right: true, cell: (row) => row.amountStaked.map(assetAmount) },
      { name: "Until", on: "aside", right: true, cell: (row) => row.endTimestamp && time(row.endTimestamp) },
    ],
    signal,
  });

// Those to come first, then those that were paid.
function rewards(address, signal) {
  const columns = (last) => [
    { name: "Stake", on: "lead", cell: (row) => txLink("P", row.txHash) },
    { name: "For", on: "below", cell: (row) => badge(REWARDS[row.rewardType] || row.rewardType) },
    { name: "Validator", cell: (row) => nodeLink(row.nodeId) },
    { name: "Staked", right: true, cell: (row) => avax(row.amountStaked) },
    { name: "Reward", on: "side", right: true, cell: (row) => assetAmount(row.reward || row.estimatedReward) },
    last,
  ];
  const part = (title, target, key, last, none) =>
    h(
      "section.list",
      { "aria-label": title },
      h("h2", {}, title),
      later(
        () =>
          networkList({
            target,
            key,
            query: { addresses: address },
            label: title,
            none,
            columns: columns(last),
            signal,
          }),
        { hideEmpty: false },
      ),
    );
  const progress = { name: "Progress", on: "aside", right: true, cell: (row) => percent(row.progress, 100) };
  const paid = { name: "Paid in", on: "aside", right: true, cell: (row) => txLink("P", row.rewardTxHash) };
  return h(
    "div.page",
    {},
    part("To come", "/rewards:listPending", "pendingRewards", progress, "No active stake pays to it."),
    part("Paid", "/rewards", "historicalRewards", paid, "Nothing was paid to it yet."),
  );
}
