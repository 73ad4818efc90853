"""The tables and what is made of them: every endpoint says what it does, and the pages in docs/ are fresh."""

from collections.abc import Callable

import pytest
from tests.tidy.source import ROOT

from icefall.api.describing.docs import GENERATED
from icefall.api.describing.hosted import DIFFERENCES, NEWER, OPERATIONS, REASONS, hosted_markdown, reason_of, shape_of
from icefall.api.http.row import Rest, Rpc
from icefall.api.table import ENDPOINTS
from icefall.db.schema_docs import schema_markdown

README = ROOT / "README.md"
API_PAGE = (ROOT / "docs" / "api.md").read_text()
PAGES = GENERATED | {"schema.md": schema_markdown}


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: row.label)
def test_every_endpoint_says_what_it_does_and_is_documented(row: Rest | Rpc) -> None:
    assert row.summary.strip() == row.summary
    assert row.summary.endswith(".")
    assert len(row.summary) > 10
    assert f"`{row.label}`" in API_PAGE
    assert row.summary in API_PAGE


def test_no_endpoint_is_there_twice() -> None:
    labels = [(row.path, row.label) for row in ENDPOINTS]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(("name", "make"), PAGES.items(), ids=list(PAGES))
def test_generated_pages_are_fresh(name: str, make: Callable[[], str]) -> None:
    assert (ROOT / "docs" / name).read_text() == make(), "run make docs"


def test_every_hosted_operation_is_served_or_has_a_reason() -> None:
    """docs/hosted-api.md says of each operation what becomes of it, and every row with a hosted name is among them."""
    labels = [" ".join(one.split(" ")[:2]) for one in OPERATIONS]
    assert len(set(labels)) == len(labels) == 111
    rows = [row for row in ENDPOINTS if isinstance(row, Rest) and row.operation and not row.ours]
    shapes = {shape_of(row.label) for row in ENDPOINTS if isinstance(row, Rest)}
    assert {label for label in labels if shape_of(label) not in shapes and not reason_of(label)} == set()
    assert set(DIFFERENCES) <= set(labels)
    assert [begin for begin in REASONS if not any(one.partition(" ")[2].startswith(begin) for one in labels)] == []
    assert {shape_of(row.label) for row in rows} - set(NEWER) <= {shape_of(one) for one in labels}
    assert {row.label: row.operation for row in rows if row.label in NEWER} == NEWER
    page = hosted_markdown(())
    assert page.count("| no |") == 111
    assert all(f"| `{label}` |" in page for label in labels)


def test_the_readme_says_how_to_start_and_how_to_test() -> None:
    readme = README.read_text()
    assert "make up" in readme
    assert "make test" in readme
    makefile = (ROOT / "Makefile").read_text()
    assert "\nup:" in makefile
    assert "\ntest:" in makefile
