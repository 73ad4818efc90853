// The live stream of the chain data interface (Server-Sent Events). The browser reconnects and resumes by itself.
import { apiKey, baseOf } from "./api.js";

// `handlers`: block, transaction, transfer, rollback and skipped take the event's data. `opened` and `interrupted` may follow each
// other; after `refused` nothing comes any more.
export function listen(query, handlers, signal) {
  if (apiKey()) return handlers.refused(); // an EventSource cannot send a key
  const source = new EventSource(`${baseOf("data")}/v1/stream?${new URLSearchParams(query)}`);
  source.addEventListener("open", () => handlers.opened());
  source.addEventListener("error", () =>
    source.readyState === EventSource.CLOSED ? handlers.refused() : handlers.interrupted(),
  );
  for (const kind of ["block", "transaction", "transfer", "rollback", "skipped"]) {
    source.addEventListener(kind, (event) => handlers[kind]?.(JSON.parse(event.data)));
  }
  signal.addEventListener("abort", () => source.close());
}
