// An address on one chain: what it holds, held and did.
import { h } from "../dom.js";
import { CallError, chainOf, data, labelOf, maybe, path } from "../api.js";
import { STANDARDS, internalColumns, tokenName, transferColumns, txColumns } from "../columns.js";
import { exportBox } from "../export.js";
import { filteredList } from "../filters.js";
import { Held, balances, history } from "../holdings.js";
import { identicon } from "../identicon.js";
import { proxyNote, proxyOf } from "../proxy.js";
import { logList } from "../logs.js";
import { newer } from "../newer.js";
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
  tabs,
  to,
  txLink,
} from "../parts.js";
import { tokenPage } from "../token-mark.js";

const ZERO_NOTE = "The zero address: tokens that come from it were minted, tokens sent to it were burned. No one has its key.";
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
  const pages = (what, columns, kinds) => ({
    load: async () =>
      filteredList({
        label: LABELS[what],
        columns,
        none: NONE[what],
        kinds: [...kinds, "from", "to"],
        ...{ of: address, chain: key, query, remember, signal },
        load: async (wanted) => {
          const page = await data(`${base}/transactions:${what}`, wanted, signal);
          return { rows: page.transactions, next: page.nextPageToken };
        },
      }),
  });
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], [chain.chainName || key, to.chain(key)], [found.isContract ? "Contract" : "Address"]),
    addressHead(
      key,
      address,
      found,
      found.isContract && h("a", { href: `${to.chain(key)}/contract/${address}` }, "Contract"),
      h("a", { href: `#/search/${address}?all` }, "Other chains"),
      qrButton(address),
    ),
    newer(
      {
        chain: key,
        query: { address, types: "transactions,transfers" },
        kinds: ["transaction", "transfer"],
        newest: async () =>
          (await data(`${base}/transactions:listNative`, { pageSize: 1 }, signal)).transactions[0]?.txHash ?? "",
        what: ["transaction", "transactions"],
      },
      signal,
    ),
    /^0x0{40}$/.test(address) && h("p.note", {}, ZERO_NOTE),
    found.isKnown ? null : h("p.notice", {}, `This address does not occur on ${chain.chainName || key} yet.`),
    found.isContract
      ? later(async () => proxyNote(key, await proxyOf(key, address, signal)), { rows: 1 })
      : null,
    found.isContract ? later(async () => contractCard(await maybe(data(base, {}, signal)), key, address, signal)) : null,
    h(
      "div.columns",
      {},
      later(() => balances(base, key, signal, held), { rows: 6 }),
      later(() => history(base, native, signal, held), { rows: 6 }),
    ),
    exportBox(key, address, signal),
    tabs(
      "What the address did",
      [
        {
          key: "transactions",
          name: "Transactions",
          ...pages("listNative", txColumns({ chain: key, tokenOf: () => native, of: address }), ["way", "failed"]),
        },
        ...STANDARDS.map((one) => ({
          key: one.key,
          name: one.name,
          ...pages(listOf(one), transferColumns({ chain: key, of: address }), ["way", "token"]),
        })),
        {
          key: "internals",
          name: "Internal",
          ...pages("listInternals", internalColumns({ chain: key, of: address, native }), ["way"]),
        },
        { key: "nfts", name: "NFTs", load: () => collectibles(base, key, signal) },
        { key: "messages", name: "Messages", load: () => messages(address, signal) },
        { key: "deployments", name: "Deployments", load: () => deployments(key, address, signal) },
        found.isContract && {
          key: "logs",
          name: "Logs",
          load: () => logList(`${base}/logs`, { chain: key, signal, linked: true }),
        },
      ].filter(Boolean),
      query.get("tab"),
      (tab) => remember({ tab }),
    ),
  );
  return { title: titleOf(key, address, found), content };
}

// Opened on demand; the code is drawn in this page.
function qrButton(address) {
  const box = h("details.qr-box", {}, h("summary", {}, "QR code"));
  box.addEventListener("toggle", async () => {
    if (!box.open || box.childElementCount > 1) return;
    box.append((await import("../qr.js")).qrCode(address, `QR code of ${address}`));
  });
  return box;
}

// The operator's label, else what a contract calls itself; any other address is known by its digits.
function nameOf(chain, address, { token, contract }) {
  const label = labelOf(chain, address);
  if (label) return label;
  const own = token || contract;
  return own?.name || own?.symbol || (token && "Unnamed token");
}

export function titleOf(chain, address, about) {
  if (about.token && !labelOf(chain, address)) return tokenName(about.token);
  return nameOf(chain, address, about) || `${about.isContract ? "Contract" : "Address"} ${address.slice(0, 10)}…`;
}

// `about`: {isContract, token, contract}, of which those that are known.
export function addressHead(chain, address, about, ...links) {
  const { token, isContract } = about;
  const name = nameOf(chain, address, about);
  const shown = (quiet) => id(address, { full: true, what: "address", isQuiet: quiet });
  return header(
    token ? "Token contract" : isContract ? "Contract" : "Address",
    [identicon(address, 22), " ", name ? clip(name, 80) : shown(false)],
    name && shown(true),
    token && h("a", { href: tokenPage(chain, token) }, `Token page, ${token.ercType}`),
    ...links,
  );
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

export async function contractCard(contract, chain, address, signal) {
  if (!contract) return null;
  const deployment = await maybe(
    data(path`/v1/chains/${chain}/contracts/${address}/transactions:getDeployment`, {}, signal),
  );
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

// Between all indexed chains: an address is the same on each.
async function messages(address, signal) {
  return (await import("../messages.js")).messageList({
    target: path`/v1/icm/addresses/${address}/messages`,
    of: address,
    none: "It has neither sent a message to another chain nor was one sent to it.",
    signal,
  });
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
