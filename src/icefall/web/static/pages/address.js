// An address on one chain: what it holds, held and did.
import { h } from "../dom.js";
import { CallError, chainOf, data, maybe, path } from "../api.js";
import { chart } from "../chart.js";
import { STANDARDS, internalColumns, tokenName, transferColumns, txColumns } from "../columns.js";
import { exact, money, short } from "../format.js";
import { logList } from "../logs.js";
import { nftGrid } from "../nfts.js";
import {
  address as addressLink,
  badge,
  blockLink,
  card,
  clip,
  crumbs,
  empty,
  exactTime,
  facts,
  header,
  id,
  later,
  list,
  quantity,
  tabs,
  to,
  txLink,
  value,
} from "../parts.js";

const LABELS = {
  listNative: "Transactions",
  listInternals: "Internal transactions",
  ...Object.fromEntries(STANDARDS.map((one) => [listOf(one), `${one.name} transfers`])),
};

const NONE = {
  listNative: "It has neither sent nor received a transaction.",
  listInternals: "No contract has called it or sent it anything.",
  ...Object.fromEntries(STANDARDS.map((one) => [listOf(one), `It has neither sent nor received ${one.name} tokens.`])),
};

function listOf({ key }) {
  return `list${key[0].toUpperCase()}${key.slice(1)}`;
}

export async function render({ params, query, signal, remember }) {
  if (!/^0x[0-9a-f]{40}$/i.test(params.address))
    throw new CallError(`an address is 0x and 40 hex digits, got ${clip(params.address)}`, 400);
  const [chain, found] = await Promise.all([chainOf(params.chain), kindOf(params.chain, params.address, signal)]);
  const key = chain.chainId;
  const address = found.address || params.address;
  const native = chain.networkToken;
  const held = new Held();
  const base = path`/v1/chains/${key}/addresses/${address}`;
  const pages = (what, columns) => ({
    load: () =>
      list({
        label: LABELS[what],
        columns,
        none: NONE[what],
        load: async (pageToken) => {
          const page = await data(`${base}/transactions:${what}`, { pageSize: 25, pageToken }, signal);
          return { rows: page.transactions, next: page.nextPageToken };
        },
      }),
  });
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], [chain.chainName || key, to.chain(key)], [found.isContract ? "Contract" : "Address"]),
    header(
      found.isContract ? "Contract" : "Address",
      id(address, { full: true, what: "address" }),
      found.token &&
        h(
          "a",
          { href: (found.token.ercType === "ERC-20" ? to.token : to.collection)(key, address) },
          `${tokenName(found.token)}, ${found.token.ercType}`,
        ),
      found.isContract && h("a", { href: `${to.chain(key)}/contract/${address}` }, "Contract"),
      h("a", { href: `#/search/${address}?all` }, "Other chains"),
    ),
    found.isKnown ? null : h("p.notice", {}, `This address does not occur on ${chain.chainName || key} yet.`),
    found.isContract ? later(() => contractCard(base, key, address, signal)) : null,
    h(
      "div.columns",
      {},
      later(() => balances(base, key, signal, held), { rows: 6 }),
      later(() => history(base, native, signal, held), { rows: 6 }),
    ),
    tabs(
      "What the address did",
      [
        {
          key: "transactions",
          name: "Transactions",
          ...pages("listNative", txColumns({ chain: key, tokenOf: () => native, of: address })),
        },
        ...STANDARDS.map((one) => ({
          key: one.key,
          name: one.name,
          ...pages(listOf(one), transferColumns({ chain: key, of: address })),
        })),
        {
          key: "internals",
          name: "Internal",
          ...pages("listInternals", internalColumns({ chain: key, of: address, native })),
        },
        { key: "nfts", name: "NFTs", load: () => collectibles(base, key, signal) },
        { key: "deployments", name: "Deployments", load: () => deployments(key, address, signal) },
        found.isContract && {
          key: "logs",
          name: "Logs",
          load: () => logList(`${base}/logs`, { chain: key, signal, linked: true }),
        },
      ].filter(Boolean),
      query.get("tab"),
      (tab) => remember({ tab: tab === "transactions" ? "" : tab }),
    ),
  );
  return { title: `Address ${address.slice(0, 10)}…`, content };
}

// Whether it is a contract, and which token: by search, which answers for any address.
async function kindOf(chain, address, signal) {
  const reply = await maybe(data("/v1/search", { query: address }, signal));
  const here = (reply?.results || []).filter((one) => one.chainId === String(chain));
  const token = here.find((one) => one.type === "token");
  const known = here.find((one) => one.type === "address");
  return {
    token,
    isKnown: here.length > 0,
    isContract: Boolean(token || known?.isContract),
    address: token?.address || known?.address,
  };
}

export async function contractCard(base, chain, address, signal) {
  const [contract, deployment] = await Promise.all([
    maybe(data(base, {}, signal)),
    maybe(data(path`/v1/chains/${chain}/contracts/${address}/transactions:getDeployment`, {}, signal)),
  ]);
  if (!contract) return null;
  const made = contract.deploymentDetails;
  const tx = deployment?.nativeTransaction;
  return card(
    "Contract",
    facts([
      ["Standard", badge(contract.ercType === "UNKNOWN" ? "no token" : contract.ercType)],
      contract.name && ["Name", clip(contract.name, 200)],
      contract.symbol && ["Symbol", clip(contract.symbol, 60)],
      contract.decimals !== undefined && ["Decimals", String(contract.decimals)],
      made && ["Deployed by", addressLink(chain, made.deployerAddress, { full: true })],
      made?.deployerContractAddress && [
        "Created by contract",
        addressLink(chain, made.deployerContractAddress, { full: true }),
      ],
      made && ["Deployed in", txLink(chain, made.txHash, { full: true })],
      tx && [
        "Deployed at",
        exactTime(tx.blockTimestamp),
        h("span.quiet", {}, ", block "),
        blockLink(chain, tx.blockNumber),
      ],
    ]),
  );
}

// The tokens of the balance list, for the choice above the chart.
class Held {
  constructor() {
    this.tokens = new Promise((resolve) => (this.resolve = resolve));
  }
}

async function balances(base, chain, signal, held) {
  const total = { sum: 0, code: "usd", known: false };
  const count = (price) => {
    if (!price) return;
    total.sum += Number(price.value);
    total.code = price.currencyCode;
    total.known = true;
  };
  let native;
  const rows = await list({
    label: "Balances",
    none: "It holds nothing.",
    columns: [
      {
        name: "Token",
        cell: (row) =>
          row.address
            ? h(
                "a",
                { href: to.token(chain, row.address), title: row.address },
                row.name || row.symbol ? clip(row.name || row.symbol, 30) : h("span.mono", {}, short(row.address)),
              )
            : h("strong", {}, row.name),
      },
      {
        name: "Balance",
        right: true,
        cell: (row) => [
          quantity(row.balance, row.decimals, row.symbol),
          row.balanceValue && h("span.phone-line.quiet", {}, value(row.balanceValue)),
        ],
      },
      { name: "Value", right: true, minor: true, cell: (row) => value(row.balanceValue) },
    ],
    load: async (pageToken) => {
      const page = await data(`${base}/balances:listErc20`, { pageSize: 20, pageToken }, signal);
      held.resolve(page.erc20TokenBalances);
      native ??= page.nativeTokenBalance;
      const shown = pageToken ? page.erc20TokenBalances : [page.nativeTokenBalance, ...page.erc20TokenBalances];
      shown.forEach((row) => count(row.balanceValue));
      return { rows: shown, next: page.nextPageToken };
    },
  });
  return h(
    "section.card.balances",
    { "aria-label": "Balances" },
    h(
      "div.card-head",
      {},
      h("h2", {}, "Balances"),
      total.known
        ? h("span.quiet", {}, `${money({ currencyCode: total.code, value: total.sum })} in listed tokens`)
        : null,
    ),
    rows,
  );
}

async function history(base, native, signal, held) {
  const drawn = async (token) => {
    const reply = await maybe(
      data(
        `${base}/balances:listHistory`,
        { timeInterval: "day", pageSize: 100, contractAddress: token.address },
        signal,
      ),
    );
    if (!reply) return null;
    const points = reply.history
      .map((one) => ({ t: one.timestamp, v: Number(exact(one.balance, token.decimals || 0).replaceAll(",", "")) }))
      .reverse();
    if (points.every((point) => !point.v)) return empty("It has held none in the time that is indexed.");
    const shown = chart({
      title: "Balance at the end of each day",
      unit: clip(token.symbol || "", 16),
      interval: "day",
      stepped: true,
      fromZero: false,
      series: [{ name: token.symbol || "", points }],
    });
    return shown || empty("No change of this balance is known.");
  };
  const first = await drawn(native);
  if (!first) return null;
  const place = h("div", {}, first);
  const section = card("", place);
  held.tokens.then(
    (tokens) =>
      tokens.length &&
      section.prepend(
        tokenChoice(native, tokens, (token) =>
          place.replaceChildren(later(() => drawn(token), { rows: 6, hideEmpty: false })),
        ),
      ),
  );
  return section;
}

function tokenChoice(native, tokens, choose) {
  const all = [native, ...tokens];
  const select = h(
    "select",
    {},
    all.map((token, index) => h("option", { value: index }, clip(token.name || token.symbol || token.address, 40))),
  );
  select.addEventListener("change", () => choose(all[Number(select.value)]));
  return h("form.choices", {}, h("label", {}, "Token", select));
}

function collectibles(base, chain, signal) {
  return nftGrid(
    chain,
    async (pageToken) => {
      const page = await data(`${base}/balances:listCollectibles`, { pageSize: 24, pageToken }, signal);
      return { tokens: page.collectibleBalances, next: page.nextPageToken };
    },
    "It holds no NFTs.",
  );
}

function deployments(chain, address, signal) {
  return list({
    label: "Contracts it deployed",
    none: "It has deployed no contracts.",
    columns: [
      { name: "Contract", on: "lead", cell: (row) => addressLink(chain, { address: row.address }) },
      { name: "Name", on: "below", cell: (row) => clip(row.name || row.symbol || "–", 40) },
      { name: "Standard", on: "side", cell: (row) => badge(row.ercType === "UNKNOWN" ? "no token" : row.ercType) },
      {
        name: "Transaction",
        on: "aside",
        cell: (row) => (row.deploymentDetails ? txLink(chain, row.deploymentDetails.txHash) : "–"),
      },
    ],
    load: async (pageToken) => {
      const page = await data(
        path`/v1/chains/${chain}/contracts/${address}/deployments`,
        { pageSize: 25, pageToken },
        signal,
      );
      return { rows: page.contracts, next: page.nextPageToken };
    },
  });
}
