"""Export jobs of the primary network: their files hold what the pages of the API hold, whatever happens meanwhile."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.api.networks_scene import NetworkScene, network_scene
from tests.exports.scene import Scene

from icefall.api.networks import exporting
from icefall.api.networks.exporting import COLUMNS, PrimaryExports
from icefall.api.networks.network import Networks
from icefall.errors import BadRequest, NotFound
from icefall.exports import running
from icefall.exports.model import COMPLETED, PRIMARY, SIMPLE, STAKING, ExportJob, ExportRequest
from icefall.exports.running import ExportRunner
from icefall.exports.sources import JobSource
from icefall.wire.ids import id_text

CHAINS = ["c-chain", "p-chain", "x-chain"]
Files = dict[str, list[dict[str, str]]]


class NetworkJobs:
    """A recorded network and the jobs of its addresses."""

    def __init__(self, network: NetworkScene, folder: Path) -> None:
        self.network = network
        self.folder = folder
        self.source = PrimaryExports(Networks(network.network))
        self.count = 0

    def exported(self, kind: str, request: ExportRequest) -> Files:
        return self.network.run(self._exported(kind, request))

    async def _exported(self, kind: str, request: ExportRequest) -> Files:
        self.count += 1
        scene = Scene(self.folder / str(self.count))
        try:
            job = await scene.jobs.order("", kind, request, scene.now)
            await scene.drain(self.runner(scene))
            ended = await scene.known(job)
            assert (ended.status, ended.message) == (COMPLETED, "")
            files = await scene.files(job)
            assert ended.rows == sum(map(len, files.values()))
            return files
        finally:
            scene.close()

    def runner(self, scene: Scene) -> ExportRunner:
        sources: Mapping[str, JobSource] = dict.fromkeys(COLUMNS, self.source)
        return scene.runner(sources=sources)

    def pages(self, target: str, name: str) -> list[Any]:
        found, token = [], ""
        while True:
            answer = self.network.result(f"{target}&pageSize=100{token}")
            found += answer[name]
            if not answer.get("nextPageToken"):
                return found
            token = f"&pageToken={answer['nextPageToken']}"

    def listed(self, chain: str, addresses: Sequence[str]) -> list[Any]:
        """What the list of a chain has, oldest first."""
        target = f"/blockchains/{chain}/transactions?addresses={','.join(addresses)}&sortOrder=asc"
        return self.pages(target, "transactions")

    def busiest(self, count: int) -> list[str]:
        found: Counter[str] = Counter()
        for tx in self.pages("/blockchains/p-chain/transactions?sortOrder=asc", "transactions"):
            for utxo in (*tx["consumedUtxos"], *tx["emittedUtxos"]):
                found.update(utxo["addresses"])
        return sorted(address for address, _ in found.most_common(count))


@pytest.fixture(scope="module", params=["p-local-1", "p-forks-1"])
def jobs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkJobs]:
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "network").mkdir()
    with network_scene(request.param, folder / "network") as network:
        yield NetworkJobs(network, folder / "jobs")


def account_of(jobs: NetworkJobs) -> str:
    """An account of C that took part in an atomic transaction."""
    for tx in jobs.pages("/blockchains/c-chain/transactions?sortOrder=asc", "transactions"):
        for one in tx.get("evmOutputs") or tx.get("evmInputs") or ():
            found: str = one.get("toAddress") or one["fromAddress"]
            return found
    raise AssertionError("no account")


def test_every_transaction_and_output_of_the_lists_is_there(jobs: NetworkJobs) -> None:
    addresses, account = jobs.busiest(3), account_of(jobs)
    request = ExportRequest(addresses=addresses, chains=CHAINS, accounts=[account])
    files = jobs.exported(PRIMARY, request)
    times = [int(row["blockTimestamp"]) for row in files["transactions"]]
    assert times == sorted(times)
    for chain in CHAINS:
        listed = jobs.listed(chain, [*addresses, *([account] if chain == "c-chain" else [])])
        own = [row for row in files["transactions"] if row["chain"] == chain]
        assert [row["txHash"] for row in own] == [tx["txHash"] for tx in listed]
        assert [row["txType"] for row in own] == [tx["txType"] for tx in listed]
        sides = Counter(
            (tx["txHash"], "consumed", one["utxoId"]) for tx in listed for one in tx.get("consumedUtxos", [])
        )
        sides += Counter(
            (tx["txHash"], "emitted", one["utxoId"]) for tx in listed for one in tx.get("emittedUtxos", [])
        )
        accounts = Counter(tx["txHash"] for tx in listed for _ in tx.get("evmInputs", tx.get("evmOutputs", [])))
        shown = [row for row in files["utxos"] if row["chain"] == chain]
        assert Counter((row["txHash"], row["side"], row["utxoId"]) for row in shown if row["utxoId"]) == sides
        assert Counter(row["txHash"] for row in shown if not row["utxoId"]) == accounts
        mine = {*addresses, account}
        assert all((row["isOwn"] == "true") == (not mine.isdisjoint(row["addresses"].split())) for row in shown)
    avax = id_text(jobs.network.network.platform.parameters.avax_asset_id)
    burned = {tx["txHash"]: total(tx["amountBurned"], avax) for tx in jobs.listed("p-chain", addresses)}
    of_p = [row for row in files["transactions"] if row["chain"] == "p-chain"]
    assert {row["txHash"]: int(row["amountBurned"]) for row in of_p} == burned


def total(amounts: list[dict[str, Any]], asset_id: str) -> int:
    return sum(int(one["amount"]) for one in amounts if one["assetId"] == asset_id)


def test_the_simple_rows_add_up_to_what_an_address_has(jobs: NetworkJobs) -> None:
    """What the rows of P say that an address received and sent is what it has now, less its genesis, with what
    it has put into the memory shared with other chains, less what it took from there."""
    for address in jobs.busiest(4):
        files = jobs.exported(SIMPLE, ExportRequest(addresses=[address], chains=["p-chain"]))
        net: Counter[str] = Counter()
        for row in files["simple"]:
            net[row["assetId"]] += int(row["received"]) - int(row["sent"])
            assert int(row["net"]) == int(row["received"]) - int(row["sent"])
        has: Counter[str] = Counter()
        owners = ",".join(jobs.busiest(60))  # the list leaves out what the addresses together cannot spend
        utxos = jobs.pages(f"/blockchains/p-chain/utxos?addresses={owners}&includeSpent=true", "utxos")
        for one in utxos:
            if address not in one["addresses"] or one["createdOnChainId"] != one["consumedOnChainId"]:
                continue
            seen = one["blockNumber"] == "0"
            if "consumingTxHash" not in one and not seen:
                has[one["assetId"]] += int(one["amount"])
            if seen and "consumingTxHash" in one:
                has[one["assetId"]] -= int(one["amount"])
        detailed = jobs.exported(PRIMARY, ExportRequest(addresses=[address], chains=["p-chain"]))["utxos"]
        for row in detailed:
            if row["isOwn"] == "true" and row["createdOnChainId"] != row["consumedOnChainId"]:
                has[row["assetId"]] += int(row["amount"]) * (1 if row["side"] == "emitted" else -1)
        assert {asset: one for asset, one in net.items() if one} == {asset: one for asset, one in has.items() if one}


def test_staking_has_what_was_staked_and_paid(jobs: NetworkJobs) -> None:
    addresses = jobs.busiest(50)
    files = jobs.exported(STAKING, ExportRequest(addresses=addresses, chains=["p-chain", "x-chain"]))
    listed = [tx for tx in jobs.listed("p-chain", addresses) if tx["amountStaked"]]
    assert [(row["txHash"], row["amountStaked"]) for row in files["staking"]] == [
        (tx["txHash"], tx["amountStaked"][0]["amount"]) for tx in listed
    ]
    paid = jobs.pages(f"/rewards?addresses={','.join(addresses)}", "historicalRewards")
    own = [row for row in files["rewards"] if row["isOwn"] == "true"]
    assert sorted((row["txHash"], row["stakingTxHash"], row["amount"]) for row in own) == sorted(
        (one["rewardTxHash"], one["txHash"], one["reward"]["amount"]) for one in paid
    )
    assert own


def test_small_pages_and_a_kill_give_the_same_files(jobs: NetworkJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    request = ExportRequest(addresses=jobs.busiest(3), chains=CHAINS)
    expected = jobs.exported(PRIMARY, request)
    monkeypatch.setattr(exporting, "_PAGE", 2)
    monkeypatch.setattr(running, "_WRITTEN", 3)
    assert jobs.exported(PRIMARY, request) == expected
    real, calls = exporting._detailed, 0

    def killed(one: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == len(expected["transactions"]) // 2:
            raise KeyboardInterrupt
        return real(one)

    async def run() -> Files:
        scene = Scene(jobs.folder / "killed")
        try:
            job: ExportJob = await scene.jobs.order("", PRIMARY, request, scene.now)
            monkeypatch.setattr(exporting, "_detailed", killed)
            with pytest.raises(KeyboardInterrupt):
                await scene.drain(jobs.runner(scene))
            assert (scene.export_dir / job.id / "utxos.csv").stat().st_size > 1000
            await scene.drain(jobs.runner(scene))
            return await scene.files(job)
        finally:
            scene.close()

    assert jobs.network.run(run()) == expected


def test_days_bound_the_rows(jobs: NetworkJobs) -> None:
    request = partial(ExportRequest, addresses=jobs.busiest(3), chains=["p-chain", "x-chain"])
    whole = jobs.exported(SIMPLE, request())["simple"]
    days = sorted({int(row["blockTimestamp"]) // 86_400 for row in whole})
    late = jobs.exported(SIMPLE, request(first_day=days[-1]))["simple"]
    assert late == [row for row in whole if int(row["blockTimestamp"]) // 86_400 == days[-1]] != []
    if len(days) > 1:
        assert jobs.exported(SIMPLE, request(last_day=days[-1] - 1))["simple"] + late == whole


def test_orders_are_read(jobs: NetworkJobs) -> None:
    source, (address,) = jobs.source, jobs.busiest(1)
    x_id = next(name for name, chain in jobs.network.network.chains.items() if chain == "x-chain" and len(name) > 40)
    assert (source.chain("P"), source.chain("p-chain"), source.chain(x_id)) == ("p-chain", "p-chain", "x-chain")
    assert source.address(f"P-{address}") == source.address(address) == address
    for wrong in ("avax1x", "0x" + "1" * 40, f"{address},{address}", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"):
        with pytest.raises(BadRequest):
            source.address(wrong)
    with pytest.raises(NotFound):
        source.chain("q-chain")
    with pytest.raises(NotFound):
        PrimaryExports(Networks(None)).chain("p-chain")
