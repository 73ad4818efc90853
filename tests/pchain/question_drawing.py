"""Questions to `platform.*` as clients might send them, right and wrong: drawn as the text of a JSON-RPC request."""

import json
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from icefall.wire.ids import NODE_ID_PREFIX, id_text, short_id_text
from icefall.wire.text import cb58, checksum_hex
from icefall.wire.text.bech32 import address_text


class Known(NamedTuple):
    """What a chain has, to ask for: addresses and the names of the others as bytes, and its height."""

    hrp: str
    height: int
    addresses: Sequence[bytes]
    txids: Sequence[bytes]
    blocks: Sequence[bytes]
    subnets: Sequence[bytes]
    chains: Sequence[bytes]
    nodes: Sequence[bytes]
    validations: Sequence[bytes]
    raw_txs: Sequence[bytes]


Draw = Callable[[random.Random, Known], str]  # a JSON value

# fmt: off
_ODD = (
    "null", "true", "false", "[]", "{}", "[null]", "[[]]", '[""]', '["x"]', "[1]", '{"a":1}',
    "0", "1", "-1", "1.0", "1e0", "1.5", "65535", "65536", "4294967295", "4294967296", "9223372036854775807",
    "18446744073709551615", "18446744073709551616",
    '""', '"0"', '"1"', '"-1"', '"+1"', '"01"', '" 1"', '"1 "', '"0x1"', '"1.0"', '"1e1"', '"true"', '"null"',
    '"65536"', '"4294967296"', '"18446744073709551615"', '"18446744073709551616"', '"proposed"', '"Proposed"',
    '"\\u0000"', '"\\ud800"', '"<a&b>"', '"\\u00e9"', '"x\\ny"', '"a\\"b"', '"P"', '"X"', '"C"', '"p"',
    '"11111111111111111111111111111111LpoYY"', '"' + "z" * 300 + '"', '"' + "1" * 70 + '"',
)
_SHAPES = ("", "null", "[]", "[null]", "[{}]", "[{},{}]", "{}", '"x"', "5", "[5]", '[""]', "true", "[[]]", "[{}", "{]")
# fmt: on


def _one_of(*drawn: Draw) -> Draw:
    return lambda source, known: source.choice(drawn)(source, known)


def _text(value: str) -> str:
    return json.dumps(value)


def _damaged(source: random.Random, text: str) -> str:
    """A text with one character more, less or other."""
    at = source.randrange(len(text)) if text else 0
    more = source.choice("1Az0-_ é")
    return text[:at] + source.choice(("", more, more + text[at : at + 1])) + text[at + 1 :]


def _id_of(names: Callable[[Known], Sequence[bytes]]) -> Draw:
    def draw(source: random.Random, known: Known) -> str:
        there = names(known)
        raw = source.choice(there) if there else source.randbytes(32)
        form = source.random()
        if form < 0.75:
            return _text(id_text(raw))
        if form < 0.85:
            return _text(_damaged(source, id_text(raw)))
        return _text(source.choice((f"0x{raw.hex()}", cb58.encode(raw[:31]), cb58.encode(raw + b"\0"), raw.hex())))

    return draw


def _unknown_id(source: random.Random, known: Known) -> str:
    return _text(id_text(source.randbytes(32)))


def _some_id(source: random.Random, known: Known) -> str:
    """The ID of something, whatever it is."""
    every = (*known.txids, *known.blocks, *known.subnets, *known.chains, *known.validations, bytes(32))
    return _text(id_text(source.choice(every)))


def _odd(source: random.Random, known: Known) -> str:
    return source.choice(_ODD)


def _address(source: random.Random, known: Known) -> str:
    raw, form = source.choice(known.addresses), source.random()
    if form < 0.6:
        return _text(address_text("P", known.hrp, raw))
    text = address_text("P", known.hrp, raw)
    other = source.choice(("X", "C", "Q", "", "p", id_text(bytes(32)), id_text(source.choice(known.chains))))
    return _text(
        source.choice(
            (
                short_id_text(raw),
                address_text(other, known.hrp, raw),
                address_text("P", source.choice(("avax", "fuji", "local", "x")), raw),
                address_text("P", known.hrp, raw[:19]),
                address_text("P", known.hrp, source.randbytes(20)),
                text.upper(),
                text.partition("-")[2],
                text + "-" + text,
                _damaged(source, text),
            )
        )
    )


def _list_of(one: Draw, most: int = 3) -> Draw:
    def draw(source: random.Random, known: Known) -> str:
        items = [one(source, known) for _ in range(source.randint(0, most))]
        if source.random() < 0.1:
            items.append(source.choice(_ODD))
        if items and source.random() < 0.1:
            items.append(items[0])
        if items and source.random() < 0.02:
            items = [items[0]] * source.choice((256, 257, 1024, 1025))
        return f"[{','.join(items)}]"

    return draw


def _node_id(source: random.Random, known: Known) -> str:
    raw = source.choice(known.nodes) if source.random() < 0.8 else source.randbytes(20)
    text = NODE_ID_PREFIX + short_id_text(raw)
    if source.random() < 0.8:
        return _text(text)
    others = (
        short_id_text(raw),
        text.lower(),
        NODE_ID_PREFIX,
        _damaged(source, text),
        NODE_ID_PREFIX + id_text(bytes(32)),
    )
    return _text(source.choice(others))


def _height(source: random.Random, known: Known) -> str:
    number = source.choice((source.randint(0, known.height), known.height, known.height + 1, known.height + 99, 2**63))
    return source.choice((str(number), _text(str(number)), str(number), '"proposed"'))


def _number(source: random.Random, known: Known) -> str:
    number = source.choice((0, 1, 2, 3, 5, 1023, 1024, 1025, 2000))
    return source.choice((str(number), _text(str(number))))


def _no_sample(source: random.Random, known: Known) -> str:
    """A size of a sample that is not random: none, or more than there is."""
    return source.choice(("0", '"0"', '"00"', "-1", "70000", "null", "1.0", '"x"', "[]"))


def _encoding(source: random.Random, known: Known) -> str:
    usual = '"hex"', '"hexc"', '"hexnc"', '"json"'
    odd = '"cb58"', '"HEX"', '"Json"', '""', "null", "1", '"base58"', "[]", '"hex "'
    return source.choice(usual if source.random() < 0.8 else odd)


def _bool(source: random.Random, known: Known) -> str:
    return source.choice(("true", "false", "true", "false", "null", '"true"', "1", "0", '""'))


def _source_chain(source: random.Random, known: Known) -> str:
    named = id_text(source.choice(known.chains))
    others = named, id_text(bytes(32)), _damaged(source, named)
    return _text(source.choice(("P", "X", "C", "", "x", "platform", "Q", 'a"b', "x\ny", *others)))


def _start_index(source: random.Random, known: Known) -> str:
    address, utxo = _address(source, known), _some_id(source, known)
    forms = (
        f'{{"address":{address},"utxo":{utxo}}}',
        f'{{"address":{address},"utxo":{_unknown_id(source, known)}}}',
        f'{{"address":{address}}}',
        f'{{"utxo":{utxo}}}',
        f'{{"Address":{address},"UTXO":{utxo}}}',
        f'{{"address":{address},"utxo":{source.choice(_ODD)}}}',
        f'{{"address":{source.choice(_ODD)},"utxo":{utxo}}}',
        "{}",
    )
    return source.choice(forms)


def _raw_tx(source: random.Random, known: Known) -> str:
    """Bytes that are no new transaction: accepted before, damaged, or none."""
    raw = source.choice(known.raw_txs)
    if source.random() < 0.6:
        other_type = raw[:2] + source.randint(0, 45).to_bytes(4, "big") + raw[6:]
        short = raw[: source.randrange(len(raw))]
        others = raw[:-1], raw + b"\0", b"", b"\0\1", bytes(6), source.randbytes(40)
        raw = source.choice((other_type, other_type, short, short, *others))
    text = checksum_hex.encode(raw, source.choice(("hex", "hexc", "hexnc")))
    return _text(source.choice((text, text, text, text[2:], text[:-1], _damaged(source, text))))


_TX = _one_of(_id_of(lambda known: known.txids), _id_of(lambda known: known.txids), _some_id, _unknown_id)
_BLOCK = _one_of(_id_of(lambda known: known.blocks), _id_of(lambda known: known.blocks), _some_id, _unknown_id)
_SUBNET = _one_of(_id_of(lambda known: known.subnets), _id_of(lambda known: known.subnets), _some_id, _unknown_id)
_CHAIN = _one_of(_id_of(lambda known: known.chains), _id_of(lambda known: known.chains), _some_id, _unknown_id)
_VALIDATION = _one_of(_id_of(lambda known: known.validations), _some_id, _unknown_id)
_ADDRESSES = _list_of(_address)

_METHODS: dict[str, dict[str, Draw]] = {
    "getHeight": {},
    "getProposedHeight": {},
    "getTimestamp": {},
    "getBlock": {"blockID": _BLOCK, "encoding": _encoding},
    "getBlockByHeight": {"height": _height, "encoding": _encoding},
    "getTx": {"txID": _TX, "encoding": _encoding},
    "getTxStatus": {"txID": _TX},
    "issueTx": {"tx": _raw_tx, "encoding": _encoding},
    "getUTXOs": {
        "addresses": _ADDRESSES,
        "sourceChain": _source_chain,
        "limit": _number,
        "startIndex": _start_index,
        "encoding": _encoding,
    },
    "getBalance": {"addresses": _ADDRESSES},
    "getStake": {"addresses": _ADDRESSES, "validatorsOnly": _bool, "encoding": _encoding},
    "getRewardUTXOs": {"txID": _TX, "encoding": _encoding},
    "getSubnet": {"subnetID": _SUBNET},
    "getSubnets": {"ids": _list_of(_SUBNET)},
    "getStakingAssetID": {"subnetID": _SUBNET},
    "getCurrentValidators": {"subnetID": _SUBNET, "nodeIDs": _list_of(_node_id)},
    "getL1Validator": {"validationID": _VALIDATION},
    "getCurrentSupply": {"subnetID": _SUBNET},
    "getTotalStake": {"subnetID": _SUBNET},
    "getMinStake": {"subnetID": _SUBNET},
    "sampleValidators": {"size": _no_sample, "subnetID": _SUBNET},
    "getValidatorsAt": {"height": _height, "subnetID": _SUBNET},
    "getAllValidatorsAt": {"height": _height},
    "validatedBy": {"blockchainID": _CHAIN},
    "validates": {"subnetID": _SUBNET},
    "getBlockchains": {},
    "getBlockchainStatus": {"blockchainID": _one_of(_CHAIN, _source_chain)},
    "getFeeConfig": {},
    "getFeeState": {},
    "getValidatorFeeConfig": {},
    "getValidatorFeeState": {},
    "getPendingValidators": {"subnetID": _SUBNET},
    "getMaxStakeAmount": {"subnetID": _SUBNET, "nodeID": _node_id},
    "listAddresses": {},
    "GetHeight": {},
    "getheight": {},
    "get.Height": {},
}


class Question(NamedTuple):
    method: str
    body: str


def draw_question(source: random.Random, known: Known) -> Question:
    """A request that is right for its method mostly, and in most of the others one thing is not."""
    name = source.choice(tuple(_METHODS))
    params = {key: draw(source, known) for key, draw in _METHODS[name].items() if source.random() < 0.85}
    spoilt = source.choice(tuple(params)) if params and source.random() < 0.3 else ""
    if spoilt and spoilt != "size":  # nor is a sample asked for whose members are random
        params[spoilt] = source.choice(_ODD)
    pairs = [(_key(source, key), value) for key, value in params.items()]
    if source.random() < 0.05:
        pairs.append((source.choice(("", "x", "nodeIDs", "encoding")), source.choice(_ODD)))
    if pairs and source.random() < 0.05:
        pairs.append((pairs[0][0], "null"))
    text = "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"
    shape = source.random()
    if shape < 0.08:
        text = source.choice(_SHAPES)
    elif shape < 0.14:
        text = source.choice((f"[{text}]", f"[{text},5]", f" {text} "))
    method = f"platform.{name}"
    return Question(method, _request(source, method, text))


def _key(source: random.Random, key: str) -> str:
    """A parameter's name, whose case does not matter."""
    return source.choice((key.lower(), key.upper(), key[0].upper() + key[1:])) if source.random() < 0.1 else key


def _request(source: random.Random, method: str, params: str) -> str:
    number = source.choice(("1", "1", "1", '"a"', "-7", "1.5", "true", '{"a": 1}', "[1]"))
    of_params = f',"params":{params}' if params else ""
    return f'{{"jsonrpc":"2.0","id":{number},"method":"{method}"{of_params}}}'
