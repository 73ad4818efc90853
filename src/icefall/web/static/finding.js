// What a text may be: something on the EVM chains by the interface's own search, on X, P and C by identifier.
import { data, hasNode, maybe, node } from "./api.js";
import { dateTime, short, whole } from "./format.js";
import { PRIMARY, onNetwork, toNetwork } from "./network.js";
import { clip, to } from "./parts.js";

const BECH32_ADDRESS = /^(?:([XPC])-)?([a-z0-9]{1,83}1[02-9ac-hj-np-z]{38,})$/i;
const NODE_ID = /^NodeID-[1-9A-HJ-NP-Za-km-z]{25,40}$/;
const CB58_ID = /^[1-9A-HJ-NP-Za-km-z]{40,60}$/;

// Results of {kind, group, name, detail, where, href}, those of a group together.
export async function find(text, signal, size = 30) {
  const found = await Promise.all([onChains(text, signal, size), hasNode() ? onPrimary(text, signal) : []]);
  return found.flat();
}

async function onChains(text, signal, pageSize) {
  const reply = await maybe(
    data("/v1/search", { query: text, pageSize }, signal).catch((error) => {
      if (error.status === 400) return null; // not a text that it takes
      throw error;
    }),
  );
  return (reply?.results || [])
    .map((one) => ({ where: one.chainName || one.chainId, ...SHOWN[one.type]?.(one) }))
    .filter((one) => one.href);
}

const SHOWN = {
  chain: (one) => ({
    kind: "Chain",
    group: "Chains",
    name: one.chainName || one.chainId,
    detail: one.symbol ? `${one.chainId}, ${clip(one.symbol, 20)}` : one.chainId,
    where: "",
    href: to.chain(one.chainId),
  }),
  block: (one) => ({
    kind: "Block",
    group: "Blocks",
    name: whole(one.blockNumber),
    detail: `${short(one.blockHash, 10)}, ${dateTime(one.blockTimestamp)}`,
    href: to.block(one.chainId, one.blockNumber),
  }),
  transaction: (one) => ({
    kind: "Transaction",
    group: "Transactions",
    name: short(one.txHash, 12),
    detail: `block ${whole(one.blockNumber)}, ${dateTime(one.blockTimestamp)}`,
    href: to.tx(one.chainId, one.txHash),
  }),
  address: (one) => ({
    kind: one.isContract ? "Contract" : "Address",
    group: "Addresses",
    name: short(one.address, 12),
    href: to.address(one.chainId, one.address),
  }),
  token: (one) => ({
    kind: one.ercType,
    group: "Tokens",
    name: one.name || one.symbol || "Unnamed token",
    detail: `${one.symbol ? `${clip(one.symbol, 20)}, ` : ""}${short(one.address)}`,
    href: (one.ercType === "ERC-20" ? to.token : to.collection)(one.chainId, one.address),
  }),
};

const X_CHAIN = { group: "Asset chain", where: "Asset chain" };
const NETWORK = { group: "Network", where: "Primary network" };

async function onPrimary(text, signal) {
  const address = text.match(BECH32_ADDRESS);
  if (address) return [ofKey(text, address)];
  const none = (promise) =>
    promise.catch((error) => {
      if (error.name === "AbortError") throw error;
      return null;
    });
  if (NODE_ID.test(text)) return byNode(text, signal, none);
  if (!CB58_ID.test(text)) return [];
  return (await Promise.all([byId(text, signal, none), onPlatform(text, signal, none)])).flat();
}

async function byNode(text, signal, none) {
  const [own, periods, l1] = await Promise.all([
    none(node("/ext/info", "info.getNodeID", {}, signal)),
    none(onNetwork("/validators", { nodeIds: text, pageSize: 1 }, signal)),
    none(onNetwork("/l1Validators", { nodeId: text, includeInactiveL1Validators: true, pageSize: 1 }, signal)),
  ]);
  const name = short(text, 14, 6);
  return [
    own?.nodeID === text && { kind: "Node", group: "Nodes", name, where: "This node", href: "#/operations" },
    (periods?.validators.length || l1?.validators.length) && {
      ...NETWORK,
      kind: "Validator",
      name,
      href: toNetwork.validator(text),
    },
  ].filter(Boolean);
}

// An address without a chain, or of P or C, is looked at on all chains.
function ofKey(text, [, chain = "", key]) {
  const name = short(text, 16, 6);
  if (chain.toUpperCase() === "X")
    return { ...X_CHAIN, kind: "Address", name, href: to.x("address", `X-${key.toLowerCase()}`) };
  return { ...NETWORK, kind: "Address", name, href: toNetwork.address(key.toLowerCase()) };
}

// A subnet and a blockchain have the ID of the transaction that created them. REST is not asked: where it has nothing,
// the console shows an error.
async function onPlatform(text, signal, none) {
  const ask = (method, params) => none(node("/ext/bc/P", `platform.${method}`, params, signal));
  const [tx, subnet, chain, validator] = await Promise.all([
    ask("getTx", { txID: text, encoding: "hex" }),
    ask("getSubnet", { subnetID: text }),
    ask("validatedBy", { blockchainID: text }),
    ask("getL1Validator", { validationID: text }),
  ]);
  const name = short(text, 12);
  const ofSubnet = (key) => (key === PRIMARY ? "#/network" : toNetwork.subnet(key));
  return [
    subnet && { ...NETWORK, kind: subnet.managerAddress ? "L1" : "Subnet", name, href: ofSubnet(text) },
    chain && { ...NETWORK, kind: "Blockchain", name, href: ofSubnet(chain.subnetID) },
    validator && { ...NETWORK, kind: "L1 validator", name, href: toNetwork.validator(validator.nodeID) },
    tx && { ...NETWORK, kind: "Transaction", name, where: "P-Chain", href: toNetwork.tx("P", text) },
  ].filter(Boolean);
}

async function byId(text, signal, none) {
  const [tx, block, asset, ...indexes] = await Promise.all([
    none(node("/ext/bc/X", "avm.getTx", { txID: text, encoding: "json" }, signal)),
    none(node("/ext/bc/X", "avm.getBlock", { blockID: text, encoding: "json" }, signal)),
    none(node("/ext/bc/X", "avm.getAssetDescription", { assetID: text }, signal)),
    ...["X", "P", "C"].map((chain) =>
      none(node(`/ext/index/${chain}/block`, "index.getIndex", { id: text, encoding: "hex" }, signal)),
    ),
  ]);
  return [
    asset && { ...X_CHAIN, kind: "Asset", name: `${asset.name} (${asset.symbol})`, href: to.x("asset", text) },
    tx && { ...X_CHAIN, kind: "Transaction", name: short(text, 12), href: to.x("tx", text) },
    block && {
      ...X_CHAIN,
      kind: "Block",
      name: whole(block.block.height),
      detail: short(text, 12),
      href: to.x("block", block.block.height),
    },
    ...indexes.map(
      (found, at) =>
        found && {
          kind: "Container",
          group: "Containers",
          name: whole(found.index),
          detail: short(text, 12),
          where: `${"XPC"[at]}-Chain`,
          href: to.container("XPC"[at], found.index),
        },
    ),
  ].filter(Boolean);
}
