import { ponder } from "ponder:registry";
import { account, transferEvent } from "ponder:schema";

ponder.on("ERC20:Transfer", async ({ event, context }: any) => {
  const { from, to, amount } = event.args;
  await context.db
    .insert(account)
    .values({ address: from, balance: -amount })
    .onConflictDoUpdate((row: any) => ({ balance: row.balance - amount }));
  await context.db
    .insert(account)
    .values({ address: to, balance: amount })
    .onConflictDoUpdate((row: any) => ({ balance: row.balance + amount }));
  await context.db
    .insert(transferEvent)
    .values({ id: event.id, amount, timestamp: Number(event.block.timestamp), from, to });
});
