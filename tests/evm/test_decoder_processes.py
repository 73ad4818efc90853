"""Several processes that decode: each chunk stays with one of them; one that dies loses only its own chunks."""

import asyncio
import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from bench.evm_chain import TransferChain
from tests.evm.indexed import InlineBlockDecoder
from tests.evm.recordings import lines
from tests.waiting import until

from icefall.evm.deriving.derive import contract_lookups, derive
from icefall.evm.deriving.packing import packed
from icefall.evm.indexing.batches import CHUNK_BYTES
from icefall.evm.indexing.decoder import BlockDecoder, DecoderDied, VerifiedChunk
from icefall.evm.indexing.decoder_processes import ProcessBlockDecoder, pipe_size_for
from icefall.evm.model import ContractInfo, StoredRaw
from icefall.evm.packed import PackedBlock, from_bytes, to_bytes
from icefall.upstream.evm.block_parts import FetchedBlock
from icefall.wire.evm.decode import decode_full

NOTHING, NO_INFO = StoredRaw(), ContractInfo()


@pytest.fixture(autouse=True)
def no_process_of_another_test() -> None:
    """They end by themselves when their pipes are closed."""
    for process in multiprocessing.active_children():
        process.join()


@cache
def chunks() -> list[list[FetchedBlock]]:
    """Of blocks in which it must be looked up whether a recipient has code."""
    blocks = []
    for row in lines("geth-1"):
        block, receipts = bytes(row.block), bytes(row.receipts)
        lookups = contract_lookups(decode_full(block, receipts, None, None))
        if lookups.code and not lookups.probes:
            blocks.append(FetchedBlock(row.number, block, receipts, None, None))
    return [blocks[start : start + 2] for start in range(0, 6, 2)]


async def verified_by(decoder: BlockDecoder, chunk: list[FetchedBlock]) -> VerifiedChunk:
    return await decoder.verify(1, chunk, NO_INFO, roots=True, raw=NOTHING)


async def rows_of(decoder: BlockDecoder, chunk: VerifiedChunk) -> list[PackedBlock]:
    """As if no recipient had code."""
    assert not chunk.derived
    info = ContractInfo(has_code={address: False for one in chunk.outlines for address in one.lookups.code})
    return await decoder.derive(chunk.ticket, range(2), info)


async def inline_rows() -> list[list[PackedBlock]]:
    decoder = InlineBlockDecoder()
    verified = [await verified_by(decoder, chunk) for chunk in chunks()]
    return [from_bytes(to_bytes(await rows_of(decoder, one))) for one in verified]


def test_rows_do_not_depend_on_the_number_of_processes() -> None:
    async def compare() -> None:
        with closing(ProcessBlockDecoder(2)) as decoder:
            verified = await asyncio.gather(*[verified_by(decoder, chunk) for chunk in chunks()])
            assert len(multiprocessing.active_children()) == 2
            steps = [rows_of(decoder, one) for one in reversed(verified)]
            assert list(reversed(await asyncio.gather(*steps))) == await inline_rows()

    asyncio.run(compare())


def test_blocks_without_lookups_are_derived_at_once() -> None:
    blocks = [FetchedBlock(one.number, *one[2:]) for one in TransferChain(per_block=2, addresses=5).blocks(8)]
    parts = [(one.block, one.receipts, one.calls, one.diffs) for one in blocks]
    expected = [packed(derive(decode_full(*part), NO_INFO)) for part in parts]

    async def compare() -> None:
        with closing(ProcessBlockDecoder(1)) as decoder:
            verified = await verified_by(decoder, [*blocks, *chunks()[0]])
            assert verified.derived == from_bytes(to_bytes(expected))
            assert len(verified.outlines) == len(blocks) + 2
            info = ContractInfo(has_code={it: False for one in verified.outlines for it in one.lookups.code})
            rest = await decoder.derive(verified.ticket, range(len(blocks), len(blocks) + 2), info)
            assert rest == (await inline_rows())[0]

    asyncio.run(compare())


def test_one_that_dies_is_replaced_and_the_other_goes_on() -> None:
    async def kill_first() -> None:
        with closing(ProcessBlockDecoder(2)) as decoder:
            first = await verified_by(decoder, chunks()[0])
            (process,) = multiprocessing.active_children()
            second = await verified_by(decoder, chunks()[1])
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            with pytest.raises(DecoderDied):
                await rows_of(decoder, first)
            expected = await inline_rows()
            assert await rows_of(decoder, second) == expected[1]
            with pytest.raises(DecoderDied, match="that verified these blocks"):
                await rows_of(decoder, first)
            again = await verified_by(decoder, chunks()[0])
            assert await rows_of(decoder, again) == expected[0]

    asyncio.run(kill_first())


def test_calls_larger_than_a_pipe_and_cancelled_ones_keep_their_order() -> None:
    blocks = [block for chunk in chunks() for block in chunk]
    large = [block for _ in range(200) for block in blocks]  # some megabytes: neither pipe holds as much

    async def compare() -> None:
        with closing(ProcessBlockDecoder(1)) as decoder:
            calls = [asyncio.create_task(verified_by(decoder, part)) for part in (large, large, blocks, blocks[:1])]
            await asyncio.sleep(0)  # all have begun
            calls[0].cancel()
            calls[2].cancel()
            done = await asyncio.gather(*calls, return_exceptions=True)
            assert [isinstance(one, VerifiedChunk) for one in done] == [False, True, False, True]
            assert [len(one.outlines) for one in done if isinstance(one, VerifiedChunk)] == [len(large), 1]

    asyncio.run(compare())


def bytes_read(process: multiprocessing.process.BaseProcess) -> int:
    return int(Path(f"/proc/{process.pid}/io").read_text().split()[1])


def has_whole_pipes(decoder: ProcessBlockDecoder) -> bool:
    """The system grants a user so much for the pipes of all programs: those of other tests may have it just now."""
    running = decoder._processes[0].start()
    pipes = [running._answers, *(requests._pipe for requests in running._requests)]
    if all(fcntl.fcntl(pipe.fileno(), fcntl.F_GETPIPE_SZ) >= pipe_size_for(1) for pipe in pipes):
        return True
    decoder.close()
    for process in multiprocessing.active_children():
        process.join()
    return False


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="what a process has read is not shown by this system")
def test_a_process_has_enough_to_do_while_the_event_loop_is_held_up() -> None:
    blocks = [block for chunk in chunks() for block in chunk]
    large = blocks * (CHUNK_BYTES // sum(block.size for block in blocks))
    size = sum(block.size for block in large)

    async def hold_up() -> None:
        with closing(ProcessBlockDecoder(1)) as decoder:
            until(lambda: has_whole_pipes(decoder), "pipes as large as they should be")
            await verified_by(decoder, blocks)  # it has started
            (process,) = multiprocessing.active_children()
            before = bytes_read(process)
            calls = [asyncio.create_task(verified_by(decoder, large)) for _ in range(8)]
            await asyncio.sleep(0)  # all have begun
            until(lambda: bytes_read(process) - before > 8 * size, "eight chunks read without another turn of the loop")
            await asyncio.gather(*calls)

    asyncio.run(hold_up())


def test_the_pipes_of_any_number_of_processes_stay_below_the_limit_of_a_user() -> None:
    """Of Linux: 64 MB, beyond which each new pipe, of any program, has two pages."""
    sizes = {processes: pipe_size_for(processes) for processes in range(1, 65)}
    assert all(size * 9 * processes < 64 << 20 for processes, size in sizes.items())
    assert (sizes[4], sizes[8], sizes[64]) == (1 << 19, 1 << 18, 1 << 16)


def test_what_fails_in_a_process_fails_here_with_its_own_traceback() -> None:
    async def fail() -> None:
        with closing(ProcessBlockDecoder(1)) as decoder:
            with pytest.raises(TypeError) as raised:
                await verified_by(decoder, [FetchedBlock(1, 5, b"", None, None)])  # type: ignore[arg-type] # no upstream sends it
            assert "decode_full" in "".join(raised.value.__notes__)
            assert (await verified_by(decoder, chunks()[0])).rejected is None

    asyncio.run(fail())


def test_processes_end_when_they_are_closed_in_the_middle_of_a_call() -> None:
    async def close() -> list[multiprocessing.process.BaseProcess]:
        decoder = ProcessBlockDecoder(2)
        decoder.start()
        calls = [asyncio.create_task(verified_by(decoder, chunk)) for chunk in chunks()]
        await asyncio.sleep(0)
        processes = multiprocessing.active_children()
        decoder.close()
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(one) for one in done] == [DecoderDied] * len(calls)
        return processes

    processes = asyncio.run(close())
    assert len(processes) == 2
    for process in processes:
        process.join()
        assert process.exitcode == 0


def test_a_decoding_process_imports_neither_the_event_loop_nor_upstreams() -> None:
    """It starts with each index, and those take as long to import as all that it needs."""
    code = "import sys, icefall.evm.indexing.decoder; print([*sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "icefall.wire.evm.decode" in done.stdout
    assert not [name for name in ("'asyncio'", "'aiohttp'", "'yarl'", "icefall.upstream") if name in done.stdout]
