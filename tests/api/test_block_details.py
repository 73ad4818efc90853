"""What the chain data interface says of a block besides the fields of the hosted service."""

from pathlib import Path

from msgspec.structs import replace
from tests.api.made_chain import ID, block, put, served


def test_a_block_that_an_older_release_indexed_is_without_them(tmp_path: Path) -> None:
    """Its columns are null: nothing stands for them, and nothing is made up."""
    old, known = block(0), block(1)
    known = replace(known, block=replace(known.block, fee_recipient=bytes(19) + b"\5", size=512, fees_burned=0))
    put(tmp_path, [old, known])
    with served(tmp_path) as app:
        target = f"/v1/chains/{ID}/blocks"
        hosted = app.result(target)["blocks"]
        more = {"feeRecipient": f"0x{5:040x}", "size": 512, "feesBurned": "0"}
        assert app.result(f"{target}:listDetails")["blocks"] == [hosted[0] | more, hosted[1]]
        assert app.result(f"{target}/1/details") == hosted[0] | more
        assert app.result(f"{target}/0/details") == app.result(f"{target}/0") == hosted[1]
        assert app.get(f"{target}/2/details").status == 404
