// A block and its transactions.
import { h } from "../dom.js";
import { chainOf, data, path } from "../api.js";
import { txColumns } from "../columns.js";
import { gasPrice, percent, whole } from "../format.js";
import { address, card, crumbs, exactTime, facts, header, id, list, quantity, steps, to } from "../parts.js";

export async function render({ params, signal }) {
  const [chain, block, newest] = await Promise.all([
    chainOf(params.chain),
    data(path`/v1/chains/${params.chain}/blocks/${params.id}/details`, {}, signal),
    data(path`/v1/chains/${params.chain}/blocks`, { pageSize: 1 }, signal),
  ]);
  const key = chain.chainId;
  const { symbol, decimals } = chain.networkToken;
  const number = BigInt(block.blockNumber);
  const tip = BigInt(newest.blocks[0]?.blockNumber ?? 0);
  const transactions = await list({
    label: "Transactions of the block",
    none: "This block has no transactions.",
    columns: txColumns({ chain: key, tokenOf: () => chain.networkToken }).filter(
      (column) => !["Block", "Time"].includes(column.name),
    ),
    load: async (pageToken) => {
      const page = await data(
        path`/v1/chains/${key}/blocks/${block.blockNumber}/transactions`,
        { pageSize: 50, pageToken },
        signal,
      );
      return { rows: page.transactions, next: page.nextPageToken };
    },
  });
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], [chain.chainName || key, to.chain(key)], [`Block ${whole(number)}`]),
    header(
      "Block",
      whole(number),
      steps("block", number > 0n && to.block(key, number - 1n), number < tip && to.block(key, number + 1n)),
    ),
    card(
      "Details",
      facts([
        ["Time", exactTime(block.blockTimestamp)],
        ["Transactions", whole(block.txCount)],
        block.size !== undefined && ["Size", `${whole(block.size)} bytes`],
        ["Gas used", `${whole(block.gasUsed)} of ${whole(block.gasLimit)} (${percent(block.gasUsed, block.gasLimit)})`],
        ["Base fee per gas", gasPrice(block.baseFee)],
        ["Fees spent", quantity(block.feesSpent, decimals, symbol, { full: true })],
        block.feesBurned !== undefined && ["Burnt fees", quantity(block.feesBurned, decimals, symbol, { full: true })],
        block.feeRecipient && ["Fee recipient", address(key, block.feeRecipient, { full: true })],
        block.gasCost !== "0" && ["Block gas cost", quantity(block.gasCost, decimals, symbol)],
        ["Hash", id(block.blockHash, { full: true, what: "block hash" })],
        [
          "Parent",
          id(block.parentHash, {
            full: true,
            what: "parent hash",
            href: number > 0n ? to.block(key, block.parentHash) : undefined,
          }),
        ],
        ["Transactions up to here", whole(block.cumulativeTransactions)],
      ]),
    ),
    card("Transactions", transactions),
  );
  return { title: `Block ${whole(number)} of ${chain.chainName || key}`, content };
}
