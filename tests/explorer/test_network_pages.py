"""Pages of the primary network on a recorded one, in a real browser, at both widths and in both themes."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.explorer.browser import Tab, look_at, needs_chromium
from tests.explorer.recorded_network import C_ID, X_ID, RecordedNetwork, recorded_network
from tests.waiting import LIMIT_S

pytestmark = needs_chromium

PRIMARY = "11111111111111111111111111111111LpoYY"


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[RecordedNetwork]:
    with recorded_network(browser, tmp_path_factory.mktemp("network")) as network:
        yield network


@pytest.fixture
def explorer(network: RecordedNetwork) -> Iterator[Tab]:
    network.opened.look(1440, "light")
    yield network.opened
    assert network.opened.new_problems() == []


def seen(explorer: Tab, name: str) -> None:
    """Nothing failed, nothing is cut off and nothing serious is found, in any look."""
    assert explorer.page.locator(".failed").count() == 0
    look_at(explorer, name)


TABS = {
    "validators": "NodeID-",
    "delegators": "completed",
    "subnets": "owned anew",
    "l1": "inactive",
    "transactions": "RewardValidator",
}


@pytest.mark.parametrize("key", TABS)
def test_the_network(key: str, explorer: Tab) -> None:
    explorer.go(f"/network?tab={key}")
    for text in ("Validators", "10,000,000 AVAX", TABS[key]):
        explorer.await_text(text)
    explorer.await_text("Stake by day")
    explorer.await_text("7 nAVAX per second")
    seen(explorer, f"network-{key}")


def test_charts_show_what_the_series_say(explorer: Tab, network: RecordedNetwork) -> None:
    """The last points of the charts are what the network has now, which the page shows above them."""
    explorer.go("/network")
    explorer.await_text("Validators and delegations by day")
    now = network.result("")
    own, delegated = now["validatorDetails"], now["delegatorDetails"]
    shown = explorer.page.locator(".chart-figure svg[role=img]").evaluate_all(
        "all => all.map((one) => one.getAttribute('aria-label'))"
    )
    counts = (f"last {own['validatorCount']}", f"last {delegated['delegatorCount']}")
    assert all(count in shown[1] for count in counts), shown
    assert "last 10M AVAX" in shown[0], shown


def test_validators_are_narrowed(explorer: Tab, network: RecordedNetwork) -> None:
    every = network.result(f"/validators?subnetId={PRIMARY}&validationStatus=active&pageSize=100")["validators"]
    wanted = every[-1]["nodeId"]
    explorer.go("/network")
    explorer.page.fill("main .choices input[name=node]", wanted[len("NodeID-") :][3:12])
    explorer.page.fill("main .choices input[name=room]", "1")
    explorer.page.click("main .choices button")
    explorer.page.wait_for_url("**node=*")
    expect(explorer.page.locator("#tab-panel tbody tr")).to_have_count(1, timeout=LIMIT_S * 1000)
    shown = explorer.page.locator("#tab-panel tbody tr td:first-child a")
    assert shown.evaluate_all("all => all.map((one) => one.title)") == [wanted]
    seen(explorer, "network-narrowed")


def test_validators_are_sorted(explorer: Tab, network: RecordedNetwork) -> None:
    chosen = "sortBy=timeRemaining&sortOrder=asc"
    found = network.result(f"/validators?subnetId={PRIMARY}&validationStatus=active&{chosen}")["validators"]
    explorer.go("/network")
    explorer.page.locator("main .choices select").select_option(label="Least time left")
    rows = explorer.page.locator("#tab-panel tbody tr")
    rows.first.filter(has=explorer.page.locator(f"a[title='{found[0]['nodeId']}']")).wait_for()
    shown = rows.locator("td:first-child a").evaluate_all("all => all.map((one) => one.title)")
    assert shown == [one["nodeId"] for one in found]


def test_a_validator(explorer: Tab, network: RecordedNetwork) -> None:
    """The first that ended with delegations: these and its periods are listed with the same amounts."""
    delegation = network.result("/delegators?delegationStatus=completed")["delegators"][0]
    node = delegation["nodeId"]
    explorer.go(f"/network/validator/{node}")
    explorer.await_text(node)
    explorer.page.locator(f"#tab-panel a[title='{delegation['txHash']}']").wait_for()
    seen(explorer, "validator")
    explorer.page.click("#tab-periods")
    for period in network.result(f"/validators/{node}")["validators"]:
        explorer.page.locator(f"#tab-panel a[title='{period['txHash']}']").wait_for()
    seen(explorer, "validator-periods")


def test_an_unknown_validator_is_not_found(explorer: Tab) -> None:
    explorer.go("/network/validator/NodeID-111111111111111111116DBWJs")
    explorer.await_text("No validator with the node ID")
    assert explorer.text("h1") == "Not found"


def test_an_l1_and_a_subnet(explorer: Tab, network: RecordedNetwork) -> None:
    subnets = network.result("/subnets")["subnets"]
    (l1,) = (one["subnetId"] for one in subnets if one["isL1"])
    found = network.result(f"/l1Validators?includeInactiveL1Validators=true&pageSize=100&subnetId={l1}")["validators"]
    explorer.go(f"/network/subnet/{l1}")
    rows = explorer.page.locator("#tab-panel tbody tr")
    rows.nth(len(found) - 1).wait_for()
    assert rows.count() == len(found)
    assert rows.filter(has_text="AVAX").count() == sum(one["remainingBalance"] > 0 for one in found)
    seen(explorer, "l1")
    owned = next(one for one in subnets if one["blockchains"] and not one["isL1"])
    explorer.go(f"/network/subnet/{owned['subnetId']}")
    explorer.await_text(f"{owned['threshold']} of {len(owned['ownerAddresses'])} must sign")
    explorer.await_text(owned["blockchains"][0]["blockchainName"])
    seen(explorer, "subnet")


TYPES = ["AddPermissionlessValidatorTx", "RegisterL1ValidatorTx", "ImportTx", "CreateChainTx", "RewardValidatorTx"]


@pytest.mark.parametrize(("letter", "kind"), [*(("P", kind) for kind in TYPES), ("X", "ExportTx")])
def test_a_transaction(letter: str, kind: str, explorer: Tab, network: RecordedNetwork) -> None:
    found = network.result(f"/blockchains/{letter.lower()}-chain/transactions?txTypes={kind}")["transactions"][0]
    explorer.go(f"/network/tx/{letter}/{found['txHash']}")
    explorer.await_text(found["txHash"])
    explorer.await_text(f"Outputs ({len(found['emittedUtxos'])})")
    boxes = explorer.page.locator(".flow .utxo")
    assert boxes.count() == len(found["consumedUtxos"]) + len(found["emittedUtxos"])
    seen(explorer, f"network-tx-{letter}-{kind}")


RICH = "local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"
REWARDED = "local10tepj2pg6r425yx3xm06jfndjjv9t7h2y2y3vt"
EXPORTED_TO = "local1gyzylsjhlfutpxldgtdvtl2vmrllsls07guqhd"  # by C, and not imported
TABS_OF_ADDRESS = [
    (RICH, "utxos", "transfer"),
    (RICH, "x-utxos", "COIN"),
    (RICH, "stakes", "AddPermissionless"),
    (RICH, "rewards", "fee of delegations"),
    (REWARDED, "rewards", "delegation"),
    (REWARDED, "history", "RewardValidator"),
    (RICH, "x-history", "Export"),
    (EXPORTED_TO, "c-utxos", "transfer"),
    (RICH, "c-history", "Import"),
]


@pytest.mark.parametrize(("address", "key", "text"), TABS_OF_ADDRESS)
def test_an_address(address: str, key: str, text: str, explorer: Tab) -> None:
    explorer.go(f"/network/address/P-{address}?tab={key}")
    explorer.await_text("Can be spent")
    explorer.page.locator("#tab-panel").filter(has_text=text).wait_for()
    seen(explorer, f"network-address-{key}")


def test_what_is_in_shared_memory_names_the_other_chain(explorer: Tab, network: RecordedNetwork) -> None:
    """The page says with which chain memory is shared, and on P also in which direction."""
    expected = []
    names = {PRIMARY: "P", X_ID: "X", C_ID: "C"}
    for letter in "PXC":
        found = network.result(f"/blockchains/{letter.lower()}-chain/balances?addresses={EXPORTED_TO}")["balances"]
        for one in found["atomicMemoryUnlocked"]:
            way = {"pendingImport": "from", "pendingExport": "to", "": "shared with"}[one.get("status", "")]
            expected.append((f"{letter}-Chain", f"{way} {names[one['sharedWithChainId']]}"))
    assert {way for _, way in expected} > {"to X", "from C", "shared with P"}
    explorer.go(f"/network/address/{EXPORTED_TO}")
    rows = explorer.page.locator("section:has(h2:text-is('Balances')) tbody tr").filter(has_text="not imported")
    rows.nth(len(expected) - 1).wait_for()
    for text, (chain, way) in zip(rows.all_inner_texts(), expected, strict=True):
        assert text.startswith(chain)
        assert f"Exported, not imported: {way}" in text


def test_what_the_genesis_made_is_of_no_transaction(explorer: Tab, network: RecordedNetwork) -> None:
    """A link to its transaction would lead nowhere."""
    made = next(
        one
        for one in network.result(f"/blockchains/p-chain/utxos?addresses={RICH}&pageSize=100&includeSpent=true")[
            "utxos"
        ]
        if one["txHash"] == PRIMARY
    )
    consumer = network.result(f"/blockchains/p-chain/transactions/{made['consumingTxHash']}")
    explorer.go(f"/network/tx/P/{consumer['txHash']}")
    explorer.page.locator(".flow .utxo", has_text="Genesis").first.wait_for()
    assert explorer.page.locator(f"a[href*='{PRIMARY}']").count() == 0


def test_blocks_of_transactions_are_links(explorer: Tab, network: RecordedNetwork) -> None:
    for letter, place in (("P", "#/containers/P/"), ("X", "#/x/block/")):
        rows = network.result(f"/blockchains/{letter.lower()}-chain/transactions?pageSize=1")["transactions"]
        height = int(rows[0].get("blockNumber", rows[0].get("blockHeight")))
        explorer.go(f"/network/tx/{letter}/{rows[0]['txHash']}")
        link = explorer.page.locator(f"main a[href='{place}{height - (letter == 'P')}']")
        link.wait_for()
        assert link.inner_text() == f"{height:,}"


def test_a_small_share_is_not_nothing(explorer: Tab) -> None:
    script = "async (all) => { const { percent } = await import('./explorer/format.js'); return all.map((one) => "
    script += "percent(one, 1000000)); }"
    shown = explorer.page.evaluate(script, [0, 3, 266, 999, 1000, 123456, 1000000])
    assert shown == ["0%", "0.0003%", "0.03%", "0.1%", "0.1%", "12.3%", "100%"]


def test_figures_stand_beside_each_other_on_wide_screens(explorer: Tab) -> None:
    explorer.go("/network")
    explorer.await_text("Fees now")
    supply, fees = (
        explorer.page.locator(f"main section:has(h2:text-is('{name}'))").first.bounding_box()
        for name in ("Supply", "Fees now")
    )
    assert supply is not None
    assert fees is not None
    assert abs(supply["y"] - fees["y"]) < 2
    assert supply["x"] + supply["width"] < fees["x"]


def test_search(explorer: Tab, network: RecordedNetwork) -> None:
    """A single result is opened; what has the ID of its transaction is listed with it."""
    (chain, *_) = network.result("/blockchains")["blockchains"]
    (l1, *_) = network.result("/l1Validators")["validators"]
    (validator, *_) = network.result("/validators")["validators"]
    node, subnet = validator["nodeId"], chain["subnetId"]
    for text, found, address in (
        (node, 1, f"#/network/validator/{node}"),
        (l1["validationId"], 1, f"#/network/validator/{l1['nodeId']}"),
        (f"P-{RICH}", 1, f"#/network/address/{RICH}"),
        (RICH, 1, f"#/network/address/{RICH}"),
        (validator["txHash"], 1, f"#/network/tx/P/{validator['txHash']}"),
        (chain["blockchainId"], 2, f"#/network/subnet/{subnet}"),
        (subnet, 2, f"#/network/subnet/{subnet}"),
    ):
        explorer.go(f"/search/{text}")
        if found == 1:
            explorer.page.wait_for_url(f"**/{address}")
        else:
            explorer.page.locator(f".result[href='{address}']").wait_for()
            assert explorer.page.locator(".result").count() == found
        explorer.wait()
