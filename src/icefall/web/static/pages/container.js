// One container: its wrapping and the header of the block in it.
import { h } from "../dom.js";
import { node } from "../api.js";
import { whole } from "../format.js";
import { decodeContainer, unchecked } from "../wire.js";
import { card, clip, crumbs, exactTime, facts, header, id, steps, to } from "../parts.js";

export async function render({ params, signal }) {
  const chain = params.chain;
  const target = `/ext/index/${encodeURIComponent(chain)}/block`;
  const [found, last] = await Promise.all([
    node(target, "index.getContainerByIndex", { index: params.index, encoding: "hex" }, signal),
    node(target, "index.getLastAccepted", { encoding: "hex" }, signal),
  ]);
  const { outer, inner, size } = decodeContainer(unchecked(found.bytes), chain);
  const index = Number(found.index);
  const content = h(
    "div.page",
    {},
    crumbs(["Home", "#/"], [`Containers of ${chain}`, `#/containers/${chain}`], [whole(index)]),
    header(
      `Container of the ${chain}-Chain`,
      whole(index),
      steps(
        "container",
        index > 0 && to.container(chain, index - 1),
        index < Number(last.index) && to.container(chain, index + 1),
      ),
    ),
    card(
      "Container",
      facts([
        ["ID", id(found.id, { full: true, what: "container ID" })],
        ["Accepted here", exactTime(Date.parse(found.timestamp) / 1000)],
        ["Size", `${whole(size)} bytes`],
        outer && ["Kind", outer.kind],
        outer && ["Parent", id(outer.parent, { full: true, what: "container ID" })],
        outer?.time && ["Proposed", exactTime(outer.time)],
        outer?.pHeight !== undefined && ["P-Chain height", whole(outer.pHeight)],
        outer?.certificate !== undefined && [
          "Proposer",
          outer.certificate
            ? `certificate of ${whole(outer.certificate)} bytes, signature of ${whole(outer.signature)}`
            : "none: unsigned",
        ],
        outer?.epoch && [
          "Epoch",
          `${whole(outer.epoch.number)}, P-Chain height ${whole(outer.epoch.pHeight)}, began `,
          exactTime(outer.epoch.start),
        ],
        !outer && ["Wrapping", "none"],
      ]),
    ),
    inner
      ? card(
          "Block in it",
          facts([
            ["Kind", inner.kind],
            inner.height !== undefined && [
              "Height",
              chain === "X"
                ? h("a", { href: to.x("block", String(inner.height)) }, whole(inner.height))
                : whole(inner.height),
            ],
            inner.time && ["Time", exactTime(inner.time)],
            inner.id && ["ID", id(inner.id, { full: true, what: "block ID" })],
            inner.parent && ["Parent", id(inner.parent, { full: true, what: "block ID" })],
            inner.txs !== undefined && ["Transactions", whole(inner.txs)],
            inner.root && ["Merkle root", id(inner.root, { full: true, what: "merkle root" })],
            inner.coinbase && ["Coinbase", id(inner.coinbase, { full: true, what: "address" })],
            inner.stateRoot && ["State root", id(inner.stateRoot, { full: true, what: "state root" })],
            inner.gasUsed !== undefined && ["Gas used", `${whole(inner.gasUsed)} of ${whole(inner.gasLimit)}`],
            inner.baseFee !== undefined && ["Base fee", `${whole(inner.baseFee)} wei`],
            inner.atomicBytes ? ["Atomic transactions", `${whole(inner.atomicBytes)} bytes`] : null,
          ]),
        )
      : card("Block in it", h("p.state", {}, "Its kind is not known to this page.")),
    card("Bytes", h("pre.data", { tabindex: "0" }, clip(found.bytes, 20000))),
  );
  return { title: `Container ${whole(index)} of ${chain}`, content };
}
