import { createConfig } from "ponder";

const abi = [
  {
    type: "event",
    name: "Transfer",
    inputs: [
      { name: "from", type: "address", indexed: true },
      { name: "to", type: "address", indexed: true },
      { name: "amount", type: "uint256", indexed: false },
    ],
  },
] as const;

export default createConfig({
  chains: {
    bench: { id: Number(process.env.PEER_CHAIN), rpc: process.env.PEER_RPC, maxRequestsPerSecond: 10000 } as any,
  },
  contracts: {
    ERC20: {
      chain: "bench",
      abi,
      address: process.env.PEER_TOKEN as `0x${string}`,
      startBlock: 0,
      endBlock: Number(process.env.PEER_LAST),
    },
  },
});
