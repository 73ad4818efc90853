"""Drawn questions, asked of AvalancheGo and of Icefall at one height: the answers are the same bytes."""

import json
import random
import re
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from tests.pchain.answer_equality import comparable
from tests.pchain.question_drawing import Known, Question, draw_question
from tests.server import JSON_TYPE
from tests.waiting import until

_AGAIN = 3
_HEIGHT = Question("platform.getHeight", '{"jsonrpc":"2.0","id":1,"method":"platform.getHeight"}')
_ANY_OF_THEM = re.compile(r"couldn't encode UTXO \w+ as")  # the first one of a list without an order


class Answer(NamedTuple):
    """`body` is what must be equal: without what each node sees for itself, lists without an order sorted."""

    status: int
    body: str


def differences(go_url: str, url: str, known: Known, source: random.Random, count: int) -> list[str]:
    """Ask both nodes that many questions; what was answered otherwise."""
    found = []
    for _ in range(count):
        question = draw_question(source, known)
        if question.method == "platform.issueTx":
            _ask(go_url, question)  # what was refused once is refused with a shorter text from then on
        for _ in range(_AGAIN):
            expected, ours = _ask(go_url, question), _ask(url, question)
            if expected == ours:
                break
            until(lambda: _ask(go_url, _HEIGHT) == _ask(url, _HEIGHT), "both are at one height")  # a block came
        else:
            found.append(f"{question.body}\n  AvalancheGo {expected}\n  Icefall     {ours}")
    return found


def _ask(url: str, question: Question) -> Answer:
    request = urllib.request.Request(f"{url}/ext/bc/P", question.body.encode(), {"content-type": JSON_TYPE})
    try:
        with urllib.request.urlopen(request) as answer:
            text = _ANY_OF_THEM.sub("couldn't encode UTXO as", answer.read().decode())
            return Answer(answer.status, _comparable(question, text))
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.read().decode())


def _comparable(question: Question, text: str) -> str:
    """The text itself where the whole of it must be equal, else the part that must be."""
    response = _read(text)
    params = _read(question.body).get("params")
    given = params[0] if isinstance(params, list) and params else params
    given = {key.lower(): value for key, value in given.items()} if isinstance(given, dict) else {}
    asked = {"nodeIDs": given.get("nodeids"), "subnetID": given.get("subnetid")}
    if question.method == "platform.getUTXOs" and "result" in response and {"limit", "startindex"} & set(given):
        response["result"].pop("utxos")  # a part of a list in which those of one block have no order
        response["result"]["endIndex"] = response["result"].pop("endIndex")["address"]
        return json.dumps(response)
    part = comparable(question.method, asked, response, is_drawn=False)
    return text if part is response else json.dumps(part)


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return {}
