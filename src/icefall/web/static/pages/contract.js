// A contract: what it is, who deployed it, what it did, its functions that read, its code and its interface.
import { h } from "../dom.js";
import { chainOf, data, maybe, path } from "../api.js";
import { codeShown, readFunctions } from "../contract-state.js";
import { interfaceList } from "../interface.js";
import { proxyNote, proxyOf } from "../proxy.js";
import { logList } from "../logs.js";
import { transferColumns, txColumns } from "../columns.js";
import { crumbs, later, list, tabs, to } from "../parts.js";
import { addressHead, contractCard, titleOf } from "./address.js";

export async function render({ params, query, signal, remember }) {
  const chain = await chainOf(params.chain);
  const key = chain.chainId;
  const base = path`/v1/chains/${key}/addresses/${params.address}`;
  const contract = await maybe(data(base, {}, signal));
  const about = { isContract: true, contract, token: contract?.ercType === "UNKNOWN" ? null : contract };
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], [chain.chainName || key, to.chain(key)], ["Contract"]),
    addressHead(key, params.address, about, h("a", { href: to.address(key, params.address) }, "Balances and activity")),
    later(async () => proxyNote(key, await proxyOf(key, params.address, signal)), { rows: 1 }),
    later(() => contractCard(contract, key, params.address, signal)),
    tabs(
      "What the contract did",
      [
        {
          key: "calls",
          name: "Transactions",
          load: () =>
            list({
              label: "Transactions",
              columns: txColumns({ chain: key, tokenOf: () => chain.networkToken, of: params.address }),
              none: "There are none.",
              load: async (pageToken) => {
                const page = await data(`${base}/transactions:listNative`, { pageSize: 25, pageToken }, signal);
                return { rows: page.transactions, next: page.nextPageToken };
              },
            }),
        },
        {
          key: "transfers",
          name: "Token transfers",
          load: () =>
            list({
              label: "Transfers",
              columns: transferColumns({ chain: key }),
              none: "There are none.",
              load: async (pageToken) => {
                const page = await data(
                  path`/v1/chains/${key}/tokens/${params.address}/transfers`,
                  { pageSize: 25, pageToken },
                  signal,
                );
                return { rows: page.transfers, next: page.nextPageToken };
              },
            }),
        },
        { key: "logs", name: "Logs", load: () => logList(`${base}/logs`, { chain: key, signal, linked: true }) },
        { key: "read", name: "Read", load: () => readFunctions(key, params.address, signal) },
        { key: "code", name: "Code", load: () => codeShown(key, params.address, signal) },
        { key: "abi", name: "ABI", load: () => interfaceList(key, params.address, signal) },
      ],
      query.get("tab"),
      (tab) => remember({ tab }),
    ),
  );
  return { title: titleOf(key, params.address, about), content };
}
