// What the page of the primary network shows besides lists: stakes and fees by day as charts, and the state of fees.
import { hasMetrics, hasNode, maybe, metrics, node, path } from "./api.js";
import { chart } from "./chart.js";
import { h } from "./dom.js";
import { whole } from "./format.js";
import { card, facts } from "./parts.js";

const DAYS_MAX = 2160;
const NANO = 1e9;

// The points of one series, oldest first.
async function points(target, query, by, signal) {
  const { results } = await metrics(target, query, signal);
  return results.map((point) => ({ t: point.timestamp, v: Number(point.value) / by })).reverse();
}

// A chart of several series; null where it would be a single point.
function drawn(title, unit, series) {
  if (!series.some((one) => one.points.length > 1)) return null;
  return h("section.card", { "aria-label": title }, chart({ title, unit, interval: "day", series }));
}

// A store of before may have no sums of fees.
function unknown(error) {
  if (error.status === 503) return [];
  throw error;
}

export async function charts(name, subnetId, signal) {
  if (!hasMetrics()) return null;
  const target = path`/v2/networks/${name}/metrics/`;
  const stakes = (metric, by) => points(target + metric, { subnetId, pageSize: DAYS_MAX }, by, signal);
  const [validators, delegators, own, delegated, fees] = await Promise.all([
    stakes("validatorCount", 1),
    stakes("delegatorCount", 1),
    stakes("validatorWeight", NANO),
    stakes("delegatorWeight", NANO),
    points("/v2/validators/metrics/totalCumulativeFeesDaily", {}, NANO, signal).catch(unknown),
  ]);
  return [
    drawn("Stake by day", "AVAX", [
      { id: "own", name: "Validators", points: own },
      { id: "delegated", name: "Delegated", points: delegated },
    ]),
    drawn("Validators and delegations by day", "", [
      { id: "validators", name: "Validators", points: validators },
      { id: "delegators", name: "Delegations", points: delegators },
    ]),
    drawn("Fees paid by L1 validators", "AVAX", [{ id: "fees", name: "All L1s", points: fees }]),
  ];
}

export async function feeState(signal) {
  if (!hasNode()) return null;
  const ask = (method) => maybe(node("/ext/bc/P", method, {}, signal));
  const [fees, validators] = await Promise.all([ask("platform.getFeeState"), ask("platform.getValidatorFeeState")]);
  if (!fees && !validators) return null;
  const nano = (amount, unit) => h("span.number", {}, `${whole(amount)} nAVAX`, h("span.unit", {}, unit));
  return card(
    "Fees now",
    facts([
      fees && ["Price of gas on P", nano(fees.price, " per gas")],
      fees && ["Gas that may be used", h("span.number", {}, whole(fees.capacity))],
      fees && ["Gas beyond the target", h("span.number", {}, whole(fees.excess))],
      validators && ["An L1 validator pays", nano(validators.price, " per second")],
    ]),
  );
}
