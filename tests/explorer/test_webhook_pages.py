"""The pages of webhooks in a real browser, on an installation that requires API keys: a webhook is made, tested, read,
sent again and switched off, as its owner would."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser
from tests.awaited import result_of
from tests.explorer.browser import Tab, look_at, needs_chromium, tab
from tests.forked import run_program
from tests.server import launch, serving
from tests.waiting import until
from tests.webhooks.receiver import Receiver, receiving
from tests.webhooks.scene import ID, Scene, blocks, busiest, transactions_of

pytestmark = needs_chromium

OWNER = "alice"
OTHER = "0x" + "12" * 20
EVENTS = 40  # blocks that are indexed


class Served(NamedTuple):
    """An installation with one webhook, whose messages are delivered to `receiver`, and a tab without a key."""

    opened: Tab
    receiver: Receiver
    key: str
    webhook: str


async def prepared(data_dir: Path, url: str) -> str:
    """Store blocks with a webhook; its ID."""
    scene = Scene(data_dir)
    try:
        await scene.secrets.rotate(OWNER)
        made = await scene.webhook(busiest(), owner=OWNER, url=url, name="Deposits", include_logs=1, confirmations=1)
        await scene.put(blocks()[:EVENTS])
        return made.id
    finally:
        scene.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("webhooks")
    (folder / "data").mkdir()
    key = run_program("keys", "add", f"--name={OWNER}", f"--data-dir={folder / 'data'}").stdout.split()[0]
    config = folder / "icefall.toml"
    config.write_text(f'[[chain]]\nid = "{ID}"\nname = "Recorded chain"\nrpc = "http://127.0.0.1:1"\n')
    given = (f"--config-file={config}", "--webhook-networks=127.0.0.0/8")
    with receiving() as receiver:
        webhook = result_of(prepared(folder / "data", receiver.url))
        with serving("data", folder, *given, "--api-keys-required=true") as server:
            delivering = launch("webhooks", folder, *given)
            with tab(browser, server.url("data")) as opened:
                yield Served(opened, receiver, key, webhook)
            assert delivering.stop() == 0, delivering.output()


@pytest.fixture
def owner(served: Served) -> Iterator[Tab]:
    """The tab, in which the key was entered."""
    opened = served.opened
    opened.look(1440, "light")
    opened.go("/webhooks")
    if opened.page.get_by_label("API key").count():
        opened.page.get_by_label("API key").fill(served.key)
        opened.page.get_by_role("button", name="Use it").click()
    opened.await_text("Deposits")
    forget_answers(opened, "401")
    yield opened
    assert opened.new_problems() == []


def forget_answers(opened: Tab, *codes: str) -> None:
    """Drop what Chromium itself logs of answers that a test provokes."""
    opened.problems[:] = [one for one in opened.problems if not any(f"status of {code}" in one for code in codes)]


def press(opened: Tab, name: str) -> None:
    opened.page.get_by_role("button", name=name, exact=True).first.click()


def test_a_key_is_asked_for_and_kept_in_the_tab_only(served: Served) -> None:
    opened = served.opened
    opened.open("/webhooks")
    assert opened.page.locator("#api-key").count() == 1
    opened.await_text("It is kept in this tab only.")
    look_at(opened, "webhooks-key")
    for key in ("made-up", served.key):
        opened.page.get_by_label("API key").fill(key)
        press(opened, "Use it")
        opened.await_text("Unknown API key." if key == "made-up" else "Deposits")
    assert opened.page.evaluate("[localStorage.length, document.cookie, sessionStorage.getItem('icefall-key')]") == [
        0,
        "",
        served.key,
    ]
    press(opened, "Forget the key")
    opened.page.locator("#api-key").wait_for()
    forget_answers(opened, "401")
    assert opened.new_problems() == []


def test_webhooks_are_listed_with_what_became_of_their_messages(owner: Tab, served: Served) -> None:
    sent = len(transactions_of(busiest(), blocks()[:EVENTS]))
    until(lambda: len(set(served.receiver.ids())) == sent, "all messages")
    owner.go("/webhooks")
    row = owner.page.locator("tbody tr", has_text="Deposits")
    row.get_by_text(str(sent), exact=True).wait_for()
    for text in ("active", "Recorded chain", served.receiver.url):
        assert text in row.inner_text()
    press(owner, "Show")
    owner.await_text("whsec_")
    look_at(owner, "webhooks")
    owner.page.locator("select[name=status]").select_option("inactive")
    owner.await_text("None of them has this status.")
    owner.page.locator("select[name=status]").select_option("")


def test_a_webhook_shows_its_messages_and_sends_them_again(owner: Tab, served: Served) -> None:
    owner.go(f"/webhooks/{served.webhook}")
    for text in ("with logs", "when a block is above the block", "taken with 204"):
        owner.await_text(text)
    look_at(owner, "webhook")
    first = owner.page.locator("tbody tr").filter(has_text="taken with 204").first
    of_tx = first.locator("a[href*='/tx/']").get_attribute("href") or ""
    assert of_tx.rpartition("/")[2] in transactions_of(busiest(), blocks()[:EVENTS])
    before = len(served.receiver.got)
    first.get_by_role("button", name="Send again").click()
    owner.await_text("The message is sent again.")
    until(lambda: len(served.receiver.got) == before + 1, "the message again")
    owner.page.get_by_text("Send a range again", exact=True).first.click()
    form = owner.page.get_by_role("form", name="Send a range again")
    form.get_by_label("First block").fill("0")
    form.get_by_label("Last block").fill("0")
    form.get_by_role("button").click()
    owner.await_text("0 messages are sent again.")
    form.get_by_label("First block").fill("")
    form.get_by_label("Last block").fill(str(EVENTS))
    form.get_by_role("button").click()
    wanted = before + 1 + len(transactions_of(busiest(), blocks()[:EVENTS]))
    until(lambda: len(served.receiver.got) >= wanted, "the range again")
    form.get_by_label("Made since").fill("2001-01-01T00:00")
    form.get_by_label("Made until").fill("2001-01-02T00:00")
    form.get_by_role("button").click()
    owner.await_text("0 messages are sent again.")


def test_a_webhook_is_made_tested_changed_and_switched_off(owner: Tab, served: Served) -> None:
    owner.page.get_by_role("link", name="New webhook").click()
    owner.page.get_by_label("URL").fill("http://10.1.2.3/")
    look_at(owner, "webhook-new")
    owner.look(1440, "light")
    owner.page.locator("textarea[name=addresses]").fill(OTHER)
    press(owner, "Create")
    owner.await_text("--webhook-networks")
    owner.page.get_by_label("URL").fill(served.receiver.url)
    owner.page.get_by_label("Name").fill("Second <b>one</b>")
    owner.page.get_by_label("one before was taken").check()
    press(owner, "Create")
    owner.await_text("one after the other")
    owner.await_text("Second <b>one</b>")
    owner.await_text("There are no messages yet.")
    served.receiver.refusal, served.receiver.refusals = 503, 1
    press(owner, "Send a test")
    owner.await_text("it answered 503")
    owner.await_text("next try")
    owner.page.get_by_text("Name, description and URL").click()
    owner.page.get_by_label("Description").fill("Only a test")
    press(owner, "Save")
    owner.page.get_by_text("Only a test").first.wait_for()
    owner.page.get_by_text("Add addresses").first.click()
    owner.page.locator("textarea[name=addresses]").fill("0x12")
    press(owner, "Add")
    owner.page.locator(".state", has_text="addresses").wait_for()
    owner.page.locator("textarea[name=addresses]").fill(f"0x{'34' * 20}, 0x{'56' * 20}")
    press(owner, "Add")
    owner.await_text("They are watched from the next block on.")
    rows = owner.page.locator("[aria-label=Addresses] tbody tr")
    until(lambda: rows.count() == 3, "a list with both addresses")
    rows.first.get_by_role("button", name="Remove").click()
    rows.first.get_by_role("button", name="Remove it?").click()
    until(lambda: rows.count() == 2, "a list without the address")
    press(owner, "Switch off")
    press(owner, "Switch it off now?")
    owner.await_text("Blocks stored meanwhile were not matched.")
    assert "inactive" in owner.text()
    press(owner, "Switch on")
    owner.page.get_by_role("button", name="Send a test").wait_for()
    forget_answers(owner, "400")


def test_why_a_webhook_was_switched_off_is_shown(owner: Tab, served: Served) -> None:
    owner.go(f"/webhooks/{served.webhook}")
    served.receiver.refusal, served.receiver.refusals = 410, 1
    press(owner, "Send a test")
    owner.page.get_by_role("button", name="Switch on").wait_for()
    owner.await_text("410")
    look_at(owner, "webhook-off")
    owner.go("/webhooks")
    owner.page.locator("tbody tr", has_text="inactive").wait_for()
    owner.go("/webhooks/11111111-2222-4333-8444-555555555555")
    owner.await_text("There is no webhook 11111111")
    forget_answers(owner, "404")
