"""Several processes that decode: each chunk stays with one of them; one that dies loses only its own chunks."""

import asyncio
import multiprocessing
import os
import signal
from contextlib import closing

import pytest
from bench.evm_chain import TransferChain
from tests.evm.indexed import InlineBlockDecoder

from icefall.evm.following.decoder import DecoderDied, ProcessBlockDecoder
from icefall.evm.model import ContractInfo, RawKinds
from icefall.evm.packed import PackedBlock, from_bytes, to_bytes
from icefall.upstream.evm.block_parts import FetchedBlock

ROOTS = True
NOTHING = RawKinds()


def chunks() -> list[list[FetchedBlock]]:
    blocks = [FetchedBlock(one.number, *one[2:]) for one in TransferChain(per_block=2, addresses=5).blocks(8)]
    return [blocks[start : start + 2] for start in range(1, 7, 2)]


async def inline_rows() -> list[list[PackedBlock]]:
    decoder = InlineBlockDecoder()
    verified = [await decoder.verify(1, chunk, roots=ROOTS, kept=NOTHING) for chunk in chunks()]
    found = [await decoder.derive(one.ticket, range(2), ContractInfo()) for one in verified]
    return [from_bytes(to_bytes(blocks)) for blocks in found]


def test_rows_do_not_depend_on_the_number_of_processes() -> None:
    async def compare() -> None:
        with closing(ProcessBlockDecoder(2)) as decoder:
            verified = await asyncio.gather(
                *[decoder.verify(1, chunk, roots=ROOTS, kept=NOTHING) for chunk in chunks()]
            )
            assert len(multiprocessing.active_children()) == 2
            steps = [decoder.derive(one.ticket, range(2), ContractInfo()) for one in reversed(verified)]
            assert list(reversed(await asyncio.gather(*steps))) == await inline_rows()

    asyncio.run(compare())


def test_one_that_dies_is_replaced_and_the_other_goes_on() -> None:
    async def kill_first() -> None:
        with closing(ProcessBlockDecoder(2)) as decoder:
            first = await decoder.verify(1, chunks()[0], roots=ROOTS, kept=NOTHING)
            (process,) = multiprocessing.active_children()
            second = await decoder.verify(1, chunks()[1], roots=ROOTS, kept=NOTHING)
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            with pytest.raises(DecoderDied):
                await decoder.derive(first.ticket, range(2), ContractInfo())
            expected = await inline_rows()
            assert await decoder.derive(second.ticket, range(2), ContractInfo()) == expected[1]
            with pytest.raises(DecoderDied, match="that verified these blocks"):
                await decoder.derive(first.ticket, range(2), ContractInfo())
            again = await decoder.verify(1, chunks()[0], roots=ROOTS, kept=NOTHING)
            assert await decoder.derive(again.ticket, range(2), ContractInfo()) == expected[0]

    asyncio.run(kill_first())
