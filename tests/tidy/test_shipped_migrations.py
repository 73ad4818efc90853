"""Stores migrate from the first schema on: the schema files and the migrations agree, and what was shipped stays.

A change of the schema edits `schema.<engine>.sql` and adds a migration. The first migration of a package comes with a
copy of the schema files as they were shipped, in tests/tidy/first_schemas/<package>/: `git show <tag>:<path>`.
"""

import hashlib
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.engines import KITS, NOTES
from tests.store.structure import normalised, structure
from tests.tidy.source import PACKAGE

from icefall.db.migrate import FIRST, load_schema

FIRST_SCHEMAS = Path(__file__).parent / "first_schemas"
# The first characters of the hash of each file, without its comments. A new migration gets a new line.
SHIPPED = {
    "access/schema.postgres.sql": "89469c4c5826297b",
    "access/schema.sqlite.sql": "d5413d7e7d2468c4",
    "evm/schema.postgres.sql": "9e55ffcea4a4595e",
    "evm/schema.sqlite.sql": "628a340af59c2fc3",
    "node/schema.postgres.sql": "adca93f119a2e2e6",
    "node/schema.sqlite.sql": "587807d97a4e2506",
}
MIGRATIONS = {
    "access/0102_webhooks.postgres.sql": "29051290ada5208b",
    "access/0102_webhooks.sqlite.sql": "7041837631387116",
    "access/0103_export_jobs.postgres.sql": "ea3de775ac0f3c52",
    "access/0103_export_jobs.sqlite.sql": "7d4ee6f93b5403ce",
    "access/0104_webhook_filter.postgres.sql": "6c9682341ed96883",
    "access/0104_webhook_filter.sqlite.sql": "6c9682341ed96883",
    "access/0105_webhook_filling.postgres.sql": "75b70fe553e511e9",
    "access/0105_webhook_filling.sqlite.sql": "95837deec682762a",
    "access/0106_contract_abis.postgres.sql": "540b046068dbc321",
    "access/0106_contract_abis.sqlite.sql": "01b80b30569a8b75",
    "access/0107_waiting_messages.postgres.sql": "be9dd333276729f6",
    "access/0107_waiting_messages.sqlite.sql": "be9dd333276729f6",
    "evm/0102_bytes.postgres.sql": "01d1668f440e49d6",
    "evm/0102_bytes.sqlite.sql": "e3b0c44298fc1c14",
    "evm/0103_nft_ranges.postgres.sql": "8e9bfe6fcb6558f2",
    "evm/0103_nft_ranges.sqlite.sql": "6f963d59190f6bcd",
    "evm/0104_webhook_outbox.postgres.sql": "712a514b73fee9ab",
    "evm/0104_webhook_outbox.sqlite.sql": "b1534170c5ac184d",
    "evm/0105_storage_layouts.postgres.sql": "a0ef05b33b0e2525",
    "evm/0105_storage_layouts.sqlite.sql": "13d7cfcc2b1e814a",
    "evm/0106_slot_balances.postgres.sql": "1cea20ad45510ee1",
    "evm/0106_slot_balances.sqlite.sql": "97f00ee6ff934c2e",
    "evm/0107_layout_standard.postgres.sql": "ba58cba8d51048b7",
    "evm/0107_layout_standard.sqlite.sql": "025ff56d8a03f528",
    "evm/0108_messages.postgres.sql": "4136df3d6705a0b5",
    "evm/0108_messages.sqlite.sql": "a9e1d2a534666abe",
    "evm/0109_name_parts.postgres.sql": "f4accbb213971fe0",
    "evm/0109_name_parts.sqlite.sql": "9582a7f508e60fba",
    "evm/0110_token_list.postgres.sql": "f7571cced1005d86",
    "evm/0110_token_list.sqlite.sql": "7c22f299ed55aae0",
    "evm/0111_token_totals.postgres.sql": "e9e3e0699a391465",
    "evm/0111_token_totals.sqlite.sql": "0fe72e9ab4ad3220",
    "evm/0112_words_dropped.postgres.sql": "70356d601d0098eb",
    "evm/0112_words_dropped.sqlite.sql": "0e705a866b797f7d",
    "evm/0113_block_details.postgres.sql": "1c178e50c7b323a0",
    "evm/0113_block_details.sqlite.sql": "8b48c88137c7cc2f",
    "evm/0114_touches.postgres.sql": "911ecd919a62219c",
    "evm/0114_touches.sqlite.sql": "e3b0c44298fc1c14",
    "evm/0115_block_groups.postgres.sql": "cf9eacbe867789dd",
    "evm/0115_block_groups.sqlite.sql": "e3b0c44298fc1c14",
    "evm/0116_native_balances.postgres.sql": "46f77978b9f7c34d",
    "evm/0116_native_balances.sqlite.sql": "e3b0c44298fc1c14",
    "evm/0117_holdings.postgres.sql": "2277ceb1c7c0d72d",
    "evm/0117_holdings.sqlite.sql": "e3b0c44298fc1c14",
    "evm/0118_distrust.postgres.sql": "e69282a834a76420",
    "evm/0118_distrust.sqlite.sql": "2fe363048a750fab",
    "evm/0119_audited_tokens.postgres.sql": "68e7363e92ca1198",
    "evm/0119_audited_tokens.sqlite.sql": "68e7363e92ca1198",
    "node/0102_health_report.postgres.sql": "0913b2dd4e1c6ecc",
    "node/0102_health_report.sqlite.sql": "0913b2dd4e1c6ecc",
    "node/0103_platform.postgres.sql": "0a93d52706ffa4a2",
    "node/0103_platform.sqlite.sql": "9768db8da4c23303",
    "node/0104_lists.postgres.sql": "54152aee3ab9466d",
    "node/0104_lists.sqlite.sql": "9934689ea8202733",
    "node/0105_stake_lists.postgres.sql": "011da49a89866873",
    "node/0105_stake_lists.sqlite.sql": "9d57c32dc551e3de",
    "node/0106_webhook_outbox.postgres.sql": "712a514b73fee9ab",
    "node/0106_webhook_outbox.sqlite.sql": "b1534170c5ac184d",
    "node/0107_l1_fees.postgres.sql": "8f8ca2d3ff41d395",
    "node/0107_l1_fees.sqlite.sql": "ee96a5f32cfd4476",
    "node/0108_burned_and_amounts.postgres.sql": "ccac88cdadca3f90",
    "node/0108_burned_and_amounts.sqlite.sql": "df69d261582f3352",
    "node/0109_l1_moves.postgres.sql": "7f6965755bf4433e",
    "node/0109_l1_moves.sqlite.sql": "fd5dd476e0e70971",
    "node/0110_observed_node.postgres.sql": "fa90d2ae1eef7fff",
    "node/0110_observed_node.sqlite.sql": "5fdd86ff79444221",
    "node/0111_address_txs.postgres.sql": "ab1697b5049054f1",
    "node/0111_address_txs.sqlite.sql": "ab1697b5049054f1",
    "node/0112_vertices.postgres.sql": "1ecd1cec27d7592a",
    "node/0112_vertices.sqlite.sql": "76f9d3d4e6f9028a",
}
PACKAGES = sorted({name.partition("/")[0] for name in SHIPPED})


def digest(text: str) -> str:
    return hashlib.sha256(normalised(text).encode()).hexdigest()[:16]


def is_changed(name: str) -> bool:
    return (PACKAGE / name).parent.joinpath("migrations").is_dir()


def first_schema(name: str) -> str:
    """A schema file as it was shipped, which is what it still is while its package has no migration."""
    return (FIRST_SCHEMAS / name if is_changed(name) else PACKAGE / name).read_text()


def test_what_was_shipped_stays_as_it_is() -> None:
    """If this fails for a schema file: add a migration, which brings the stores of users to the new schema."""
    assert {name: digest(first_schema(name)) for name in SHIPPED} == SHIPPED
    steps = {
        f"{path.parent.parent.name}/{path.name}": digest(path.read_text()) for path in PACKAGE.rglob("migrations/*.sql")
    }
    assert steps == MIGRATIONS
    assert sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("schema.*.sql")) == sorted(SHIPPED)


@pytest.mark.parametrize("package", PACKAGES)
def test_both_engines_are_at_the_same_number(package: str) -> None:
    numbers = {engine: load_schema(f"icefall.{package}", engine).number for engine in KITS}
    assert len(set(numbers.values())) == 1, numbers


def agree(folder: Path, engine: str, first: str, now: dict[str, str]) -> bool:
    """Whether a store of the first schema, migrated, has the same tables as a new one."""
    found = []
    for number, steps in enumerate(([{"schema": first}, now], [now])):
        (folder / str(number)).mkdir(parents=True)
        kit = KITS[engine](folder / str(number))
        with closing(kit):
            for scripts in steps:
                with closing(kit.open(scripts)) as store:
                    last = structure(store)
        found.append(last)
    return found[0] == found[1]


def scripts_of(package: str, engine: str) -> dict[str, str]:
    schema = load_schema(f"icefall.{package}", engine)
    steps = {step.name.removesuffix(f".{engine}.sql"): step.script for step in schema.migrations}
    return {"schema": schema.creation.script} | steps


CHANGED = [name for name in SHIPPED if is_changed(name)]


@pytest.mark.parametrize("name", CHANGED or [None])
def test_a_migrated_store_is_like_a_new_one(name: str | None, tmp_path: Path) -> None:
    if name is None:
        assert {load_schema(f"icefall.{package}", engine).number for package in PACKAGES for engine in KITS} == {FIRST}
        return
    package, _, file = name.partition("/")
    engine = file.split(".")[1]
    assert agree(tmp_path, engine, first_schema(name), scripts_of(package, engine)), f"{name} and its migrations differ"


MORE = "create table more (id integer not null);\n"
INDEX = "create index more_id on more (id);\n"
TRIED = [(MORE, True), (MORE + INDEX, False), (MORE.replace(" not null", ""), False), ("", False)]


@pytest.mark.parametrize("engine", KITS)
@pytest.mark.parametrize(("migration", "expected"), TRIED)
def test_a_schema_file_and_a_migration_that_differ_are_found(
    engine: str, migration: str, expected: bool, tmp_path: Path
) -> None:
    assert agree(tmp_path, engine, NOTES, {"schema": NOTES + MORE, "0102_more": migration}) == expected


def test_comments_may_be_changed() -> None:
    assert digest("-- a\ncreate table t (id integer); -- b\n") == digest("create table t (\n  id integer -- c\n);")
    assert digest("create table t (id integer);") != digest("create table t (id bigint);")
