// One EVM chain: what it is, its blocks and transactions.
import { h } from "../dom.js";
import { chainOf, data, path } from "../api.js";
import { chainFigures } from "../chain-figures.js";
import { blockColumns, blockDetailColumns, txColumns } from "../columns.js";
import { gasNow } from "../gas-now.js";
import { newer } from "../newer.js";
import { badge, blockLink, card, chainStatus, crumbs, facts, header, id, later, list, tabs, time, to } from "../parts.js";

export async function render({ params, query, signal, remember }) {
  const chain = await chainOf(params.chain, { isFresh: true });
  const key = chain.chainId;
  const name = chain.chainName || key;
  const token = chain.networkToken;
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], [name]),
    header(
      "EVM chain",
      name,
      chainStatus(chain.status),
      chain.isTestnet && badge("Test network"),
      chain.private && badge("Private"),
    ),
    newer(
      {
        chain: key,
        query: { types: "blocks" },
        kinds: ["block"],
        newest: async () =>
          (await data(path`/v1/chains/${key}/blocks`, { pageSize: 1 }, signal)).blocks[0]?.blockHash ?? "",
        what: ["block", "blocks"],
      },
      signal,
    ),
    h(
      "div.columns",
      {},
      h("div.page", {}, card("Activity", now(chain, signal)), later(() => gasNow(key, signal), { rows: 2 })),
      card(
        "About",
        facts([
          chain.description && ["Description", chain.description],
          ["Chain ID", key],
          ["Native token", `${token.name} (${token.symbol}), ${token.decimals} decimals`],
          chain.platformChainId && ["Blockchain ID", id(chain.platformChainId, { full: true, what: "blockchain ID" })],
          chain.subnetId && ["Subnet ID", id(chain.subnetId, { full: true, what: "subnet ID" })],
          chain.vmId && ["Virtual machine", `${chain.vmName}, `, id(chain.vmId, { full: true, what: "VM ID" })],
          chain.rpcUrl && ["RPC", h("span.mono", {}, chain.rpcUrl)],
          chain.enabledFeatures?.length && ["Features", chain.enabledFeatures.map((one) => badge(one))],
        ]),
      ),
    ),
    blockAtTime(key, signal),
    tabs(
      `Content of ${name}`,
      [
        {
          key: "blocks",
          name: "Blocks",
          load: () =>
            list({
              label: "Blocks",
              columns: [...blockColumns(), ...blockDetailColumns(token)],
              none: "No block is indexed yet.",
              load: async (pageToken) => {
                const page = await data(path`/v1/chains/${key}/blocks:listDetails`, { pageSize: 25, pageToken }, signal);
                return { rows: page.blocks, next: page.nextPageToken };
              },
            }),
        },
        { key: "transactions", name: "Transactions", load: () => transactions(key, token, signal) },
        { key: "failed", name: "Failed transactions", load: () => transactions(key, token, signal, "failed") },
        { key: "messages", name: "Messages", load: () => messages(key, signal) },
        { key: "tokens", name: "Tokens", load: () => tokens(key, signal, query, remember) },
      ],
      query.get("tab"),
      (tab) => remember({ tab }),
    ),
  );
  return { title: name, content };
}

async function tokens(chain, signal, query, remember) {
  return (await import("./tokens.js")).sortedTokens(chain, signal, query.get("sort") || "", remember);
}

async function messages(chain, signal) {
  return (await import("../messages.js")).messageList({
    target: "/v1/icm/messages",
    query: { blockchainId: chain },
    none: "No message from or to another chain is indexed.",
    signal,
  });
}

function now(chain, signal) {
  const tipOf = (block) =>
    h("span", {}, blockLink(chain.chainId, block.blockNumber), h("span.note", {}, time(block.blockTimestamp)));
  return later(() => chainFigures(chain, signal, tipOf), { rows: 4, hideEmpty: false });
}

// A form: the last block at or before a time.
function blockAtTime(chain, signal) {
  const input = h("input", { id: "block-time", type: "datetime-local", step: 1, required: true });
  const result = h("span", { role: "status" });
  const form = h(
    "form.inline",
    {},
    h("label", { for: "block-time" }, "Block at a time (UTC)"),
    input,
    h("button", {}, "Find"),
    result,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const found = await data(
        path`/v1/chains/${chain}/blocks:getByTime`,
        { timestamp: Math.floor(Date.parse(`${input.value}Z`) / 1000) },
        signal,
      );
      location.hash = to.block(chain, found.blockNumber);
    } catch (error) {
      result.textContent = error.status === 404 ? "There is no block that early." : error.message;
    }
  });
  return form;
}

function transactions(chain, token, signal, status) {
  return list({
    label: "Transactions",
    columns: txColumns({ chain, tokenOf: () => token }),
    none: status ? "No transaction has failed." : "No transaction is indexed yet.",
    load: async (pageToken) => {
      const page = await data(path`/v1/chains/${chain}/transactions`, { pageSize: 25, pageToken, status }, signal);
      return { rows: page.transactions, next: page.nextPageToken };
    },
  });
}
