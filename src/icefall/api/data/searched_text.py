"""What a searched text may be: a number, a whole address or hash, the beginning of one, or a part of a name."""

import re

import msgspec

ADDRESS_DIGITS, HASH_DIGITS = 40, 64
PREFIX_DIGITS_MIN = 6  # of a beginning: a shorter one is that of too many
_DIGITS_MAX = 18  # of a block number
_HEX = re.compile(r"(0[xX])?([0-9a-fA-F]{1,64})")
_GROUPED = re.compile(r"[0-9]{1,3}(,[0-9]{3})+")
_NUMBER = re.compile(r"[0-9]+")


class HexRange(msgspec.Struct, frozen=True):
    """All values of a length that begin with some digits: the first and the last of them."""

    first: bytes
    last: bytes


class SearchedText(msgspec.Struct, frozen=True):
    """Each field is what the text is if it is read that way, else None."""

    text: str
    number: int | None = None
    address: bytes | None = None
    hash: bytes | None = None
    address_prefix: HexRange | None = None
    hash_prefix: HexRange | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it names one thing only, so that no name is looked for."""
        return self.address is not None or self.hash is not None


def read_text(text: str) -> SearchedText:
    """Read a text in every way that it allows. Hex digits may be of any case, and without `0x`."""
    number = _number(text)
    found = _HEX.fullmatch(text)
    if found is None:
        return SearchedText(text, number)
    digits = found[2].lower()
    if found[1] and len(digits) <= _DIGITS_MAX - 3:
        number = int(digits, 16)
    if len(digits) == HASH_DIGITS:
        return SearchedText(text, hash=bytes.fromhex(digits))
    if len(digits) == ADDRESS_DIGITS:
        return SearchedText(text, address=bytes.fromhex(digits), hash_prefix=_range(digits, HASH_DIGITS))
    if len(digits) < PREFIX_DIGITS_MIN:
        return SearchedText(text, number)
    is_of_address = len(digits) < ADDRESS_DIGITS
    return SearchedText(
        text,
        number,
        address_prefix=_range(digits, ADDRESS_DIGITS) if is_of_address else None,
        hash_prefix=_range(digits, HASH_DIGITS),
    )


def _number(text: str) -> int | None:
    digits = text.replace(",", "") if _GROUPED.fullmatch(text) else text
    return int(digits) if _NUMBER.fullmatch(digits) and digits.isascii() and len(digits) <= _DIGITS_MAX else None


def _range(digits: str, size: int) -> HexRange:
    return HexRange(bytes.fromhex(digits.ljust(size, "0")), bytes.fromhex(digits.ljust(size, "f")))
