import { desc, eq, graphql, or } from "ponder";
import { db } from "ponder:api";
import schema, { transferEvent } from "ponder:schema";
import { Hono } from "hono";

const app = new Hono();

app.use("/graphql", graphql({ db, schema }));

app.get("/transfers/:address", async (c) => {
  const address = c.req.param("address") as any;
  const rows = await db
    .select()
    .from(transferEvent)
    .where(or(eq(transferEvent.from, address), eq(transferEvent.to, address)))
    .orderBy(desc(transferEvent.id))
    .limit(10);
  return c.json(rows.map((row: any) => ({ ...row, amount: row.amount.toString() })));
});

export default app;
