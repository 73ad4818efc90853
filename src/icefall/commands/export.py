"""`icefall export`: tables of a chain as files, beside what writes them; and `icefall exports`.

The last block is fixed when the command starts. The same command later adds the blocks that have come since.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from icefall.commands.forget import configured_chain
from icefall.compose.export_jobs import run_exports
from icefall.compose.exported_chains import PRIMARY_CHAINS, opened_tables
from icefall.compose.shared_chains import ready_to_run_alone
from icefall.compose.stores import stores_of
from icefall.config.settings import Config
from icefall.config.values import ConfigError, bare, close_match
from icefall.db.engine import StoreError
from icefall.errors import StartRefused
from icefall.exports.files import TableExport, Target
from icefall.exports.formats import FORMATS, writer_of
from icefall.exports.tables import ExportedChain, Kept, Table
from icefall.observe.program import name_process

_PARTITION = "range:100000"
_DAY = 86_400
_RANGE = re.compile(r"range:([1-9][0-9]{0,11})")


def run_export(config: Config, flags: Mapping[str, str], write_line: Callable[[str], object]) -> int:
    """Export the tables that the flags name. ConfigError for flags that make no sense, StartRefused where the chain is
    not indexed or the disk is full."""
    file_format = _one_of(flags.get("format", "csv"), tuple(FORMATS), "--format")
    partition = flags.get("partition", _PARTITION)
    if partition != "day" and not _RANGE.fullmatch(partition):
        raise ConfigError(f"--partition={bare(partition)} is neither day nor range:N, as in range:100000")
    folder = Path(flags.get("out") or "export").absolute()
    target = Target(folder, file_format, partition, writer_of(file_format))
    with closing(stores_of(config)) as stores:
        try:
            with opened_tables(stores, _chain_name(config, flags.get("chain", ""))) as chain:
                tables = _tables(chain, flags.get("table", "all"))
                span = _span(chain, flags)
                for table in tables:
                    _export_table(chain, table, target, span, write_line)
        except StoreError as error:
            raise StartRefused(str(error)) from error
        except OSError as error:
            where = error.filename or folder
            raise StartRefused(f"{where} cannot be written: {error.strerror}; the same command goes on") from error
    return 0


def _export_table(
    chain: ExportedChain,
    table: Table,
    target: Target,
    span: tuple[int, int],
    write_line: Callable[[str], object],
) -> None:
    first, last = span
    stored_from = chain.stored_from(table)
    if stored_from is None or stored_from > last:
        why = "still filled in" if table.missing_below else "not stored for this chain"
        hint = "" if table.missing_below else " (see store_logs in docs/settings.md)"
        write_line(f"{table.name}: {why}, left out{hint}")
        return
    first = max(first, stored_from)
    ranges = [(first, last)]
    if table.kept is Kept.BY_BLOCK:
        by_range = _RANGE.fullmatch(target.partition)
        ranges = list(_aligned(first, last, int(by_range[1])) if by_range else _days(chain, first, last))
    rows = 0
    for file, was_there in TableExport(chain, table, target).run(ranges):
        rows += file.rows
        blocks = f"blocks {file.first_block} to {file.last_block}"
        write_line(f"{table.name}: {blocks}: {file.rows} rows{', already exported' if was_there else ''}")
    write_line(f"{table.name}: {rows} rows in {len(ranges)} file{'' if len(ranges) == 1 else 's'}")


def _aligned(first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    while first <= last:
        end = min(last, first - first % size + size - 1)
        yield first, end
        first = end + 1


def _days(chain: ExportedChain, first: int, last: int) -> Iterator[tuple[int, int]]:
    """The blocks of each day (UTC)."""
    while first <= last:
        time = chain.block_time(first)
        later = chain.first_block_since(first, last, time - time % _DAY + _DAY)
        end = last if later is None else later - 1
        yield first, end
        first = end + 1


def _span(chain: ExportedChain, flags: Mapping[str, str]) -> tuple[int, int]:
    """The first and the last block: those that are stored, or fewer."""
    stored = chain.span()
    if stored is None:
        raise StartRefused("no block is stored yet: nothing to export")
    first, last = stored
    if text := flags.get("from"):
        first = max(first, _number(text, "--from"))
    if (text := flags.get("to", "latest")) != "latest":
        last = min(last, _number(text, "--to"))
    if first > last:
        raise StartRefused(f"blocks {stored[0]} to {stored[1]} are stored: none of them is between --from and --to")
    return first, last


def _number(text: str, flag: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text):
        raise ConfigError(f"{flag}={bare(text)} is not a block number")
    return int(text)


def _tables(chain: ExportedChain, text: str) -> list[Table]:
    if text == "all":
        return list(chain.tables)
    by_name = {table.name: table for table in chain.tables}
    return [by_name[_one_of(name.strip(), tuple(by_name), "--table")] for name in text.split(",")]


def _one_of(text: str, names: tuple[str, ...], flag: str) -> str:
    if text not in names:
        meant = close_match(text, names)
        hint = f"did you mean {meant}?" if meant else f"use one of {', '.join(names)}"
        raise ConfigError(f"{flag}={bare(text)} is not known; {hint}")
    return text


def _chain_name(config: Config, text: str) -> str:
    """P or X of the network as p-chain or x-chain, or the ID of an EVM chain."""
    if not text:
        raise ConfigError("icefall export needs a chain: use icefall export --chain=43114 --table=blocks --out=DIR")
    if name := PRIMARY_CHAINS.get(text.lower()):
        return name
    chain = configured_chain(config.chain, text)
    if chain is not None:
        return chain.id
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise ConfigError(f"--chain={bare(text)}: neither P nor X, and no [[chain]] has this id, name or alias")
    return text


def run_export_jobs(config: Config) -> int:
    """`icefall exports`: write the files of exports of EVM chains that callers order, until it is stopped."""
    config = ready_to_run_alone(config)
    name_process()
    return asyncio.run(run_exports(config, supervised=False, with_engine=False))
