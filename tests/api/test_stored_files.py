"""Files as answers: what is sent of them for each form of Range and If-Range."""

import asyncio
from pathlib import Path

import pytest

from icefall.api.http.stored_files import StoredFile, part_of

CONTENT = bytes(range(250)) * 4000  # more than one piece


@pytest.fixture
def file(tmp_path: Path) -> StoredFile:
    path = tmp_path / "a.zip"
    path.write_bytes(CONTENT)
    return StoredFile(path)


def sent(file: StoredFile, wanted: str | None, only_if: str | None = None) -> tuple[int, bytes, dict[str, str]]:
    part = part_of(file, wanted, only_if)

    async def read() -> bytes:
        return b"".join([piece async for piece in part.pieces()])

    body = asyncio.run(read())
    assert len(body) == part.length
    return part.status, body, dict(part.headers)


@pytest.mark.parametrize(
    ("wanted", "first", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=10-299999", 10, 300_000),
        ("bytes=999990-", 999_990, 1_000_000),
        ("bytes=5-99999999", 5, 1_000_000),
        ("bytes=-3", 999_997, 1_000_000),
        ("bytes=-99999999", 0, 1_000_000),
    ],
)
def test_the_part_that_is_asked_for(file: StoredFile, wanted: str, first: int, end: int) -> None:
    status, body, headers = sent(file, wanted)
    assert (status, body) == (206, CONTENT[first:end])
    assert headers["content-range"] == f"bytes {first}-{end - 1}/{len(CONTENT)}"


@pytest.mark.parametrize("wanted", [None, "bytes=5-4", "bytes=0-1,5-6", "lines=1-2", "bytes=", "bytes=-", "x"])
def test_all_of_it_where_no_range_can_be_read(file: StoredFile, wanted: str | None) -> None:
    status, body, headers = sent(file, wanted)
    assert (status, body) == (200, CONTENT)
    assert headers["accept-ranges"] == "bytes"


@pytest.mark.parametrize("wanted", ["bytes=1000000-", "bytes=1000000-1000001", "bytes=-0"])
def test_a_range_behind_the_end(file: StoredFile, wanted: str) -> None:
    status, body, headers = sent(file, wanted)
    assert (status, body, headers["content-range"]) == (416, b"", "bytes */1000000")


def test_a_part_of_another_file_is_not_continued(file: StoredFile) -> None:
    tag = sent(file, None)[2]["etag"]
    assert sent(file, "bytes=9-", tag)[0] == 206
    assert sent(file, "bytes=9-", '"another"')[:2] == (200, CONTENT)


def test_a_file_that_is_cut_short_is_no_whole_answer(file: StoredFile) -> None:
    part = part_of(file, None, None)
    file.path.write_bytes(CONTENT[:1000])

    async def read() -> list[bytes]:
        return [piece async for piece in part.pieces()]

    with pytest.raises(OSError, match="ended early"):
        asyncio.run(read())
