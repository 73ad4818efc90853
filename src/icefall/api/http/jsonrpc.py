"""JSON-RPC 2.0 over one body: envelope in, rows called, envelope out.

The fast path is one decode into a struct. What it rejects (a key in another case, a wrong type, bytes after the value,
invalid JSON) takes the slow path, which reads as the existing node does and returns its error texts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import msgspec

from icefall.api.dialect import BATCH_MAX, Dialect
from icefall.api.http.result_cache import ResultCache
from icefall.api.http.row import Rpc, never
from icefall.api.http.rpc_params import NodeBinder
from icefall.api.http.structs import InvalidValue
from icefall.errors import BadRequest, IcefallError, InternalError, Unavailable
from icefall.observe.counters import CallCounters
from icefall.wire.text.go_text import quote
from icefall.wire.text.jsonscan import JsonError, compact, elements, first_value, json_type, members, string_of

ARGUMENT_TEXT = (
    "couldn't unmarshal an argument. Ensure arguments are valid and properly formatted. "
    "See documentation for example calls"
)
VERSION_TEXT = "jsonrpc must be 2.0"
METHOD_TEXT = "method must be given"
INTERNAL_TEXT = "internal error"
BATCH_ANSWER_MAX = 4 << 20
ID_SIZE_MAX = 16 << 10  # bytes; every answer carries its request's id
METHOD_SIZE_MAX = 8 << 10  # characters; an unknown name is quoted in the error
TOO_LONG = -32000
PARSE, INVALID = -32700, -32600
_TYPE_TEXT = "json: cannot unmarshal {} into Go {} of type {}"


class Envelope(msgspec.Struct, forbid_unknown_fields=True):
    """A request as it was sent. Raw fields are empty when left out."""

    jsonrpc: str = ""
    method: str = ""
    params: msgspec.Raw = msgspec.Raw()
    id: msgspec.Raw = msgspec.Raw()


class RpcFailure(Exception):
    """An error that is answered with an error object. `request` is the request as far as it could be read."""

    def __init__(self, code: int, text: str, request: Envelope | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.request = request


class RpcMethod(msgspec.Struct, frozen=True):
    """A compiled row: the binder of its parameters, its handler with its services, its slot among the counters."""

    row: Rpc
    binder: NodeBinder
    call: Callable[[Any], Awaitable[Any]]
    slot: int


_decoder = msgspec.json.Decoder(Envelope)
_encode = msgspec.json.Encoder().encode
_COMPACT_NEEDED = frozenset(b" \t\r\n<>&")


class RpcOutcome(msgspec.Struct, frozen=True):
    """The body to send (empty for a notification), the method that ran, and the error if it failed."""

    body: bytes
    method: RpcMethod | None = None
    error: IcefallError | None = None


class RpcService:
    """The methods of one path. `cache`: of results that depend on its store."""

    def __init__(
        self, methods: Mapping[str, RpcMethod], dialect: Dialect, counters: CallCounters, cache: ResultCache
    ) -> None:
        self._cache = cache
        self._methods = methods
        self._services = {name.split(".")[0] for name in methods}
        self._dialect = dialect
        self._counters = counters

    def answer(self, body: bytes) -> Coroutine[Any, Any, RpcOutcome]:
        try:
            envelope = _decoder.decode(body)
            if not (body.isascii() or self._dialect.bad_utf8_ignored):
                body.decode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._slowly(body)
        return self._one(envelope)

    async def _slowly(self, body: bytes) -> RpcOutcome:
        try:
            value = self._first_value(body)
            if value[:1] == b"[" and self._dialect.batches:
                return await self._batch(value)
            envelope = self._read(value)
        except RpcFailure as refused:
            return self._refuse(refused, refused.request or Envelope())
        return await self._one(envelope)

    async def _one(self, envelope: Envelope) -> RpcOutcome:
        method = self._methods.get(envelope.method)
        raw_id = bytes(envelope.id)
        if method is None or envelope.jsonrpc != "2.0" or len(raw_id) > ID_SIZE_MAX:
            return self._not_called(envelope, raw_id)
        key = (envelope.method, bytes(envelope.params))
        repeatable, cache, cached, params = method.row.repeatable, self._cache, None, None
        if repeatable is not never:
            cached = cache.find(key)
        if cached is None:
            try:
                params = method.binder.from_json(key[1])
            except InvalidValue:
                refused = RpcFailure(self._dialect.bad_params, ARGUMENT_TEXT)
                return self._silent(envelope, self._refuse(refused, envelope))
        began = self._counters.begin(method.slot)
        error: IcefallError | None = None
        try:
            if cached is None:
                moment = cache.moment  # before it is made: what is committed meanwhile makes it of no use later
                found = await method.call(params)
                result = found if type(found) is msgspec.Raw else _encode(found)
                if repeatable is not never and repeatable(params):
                    cache.put(key, moment, bytes(result))
            else:
                result = cached
        except IcefallError as raised:
            error = raised
        except Exception as bug:  # the caller gets no details, the log does
            error = InternalError(INTERNAL_TEXT)
            error.__cause__ = bug
        finally:
            self._counters.end(method.slot, began, failed=error is not None)
        if error is None:
            body = b'{"jsonrpc":"2.0","result":%b,"id":%b}\n' % (result, _echo(raw_id))
            if raw_id and raw_id != b"null":
                return RpcOutcome(body, method)
        else:
            text = INTERNAL_TEXT if isinstance(error, InternalError) else str(error)
            body = self._refusal(RpcFailure(error.rpc_code, text), envelope)
        return self._silent(envelope, RpcOutcome(body, method, error))

    def _not_called(self, envelope: Envelope, raw_id: bytes) -> RpcOutcome:
        """Refuse what is no call of a method that exists."""
        name = envelope.method
        if len(raw_id) > ID_SIZE_MAX:
            refused = RpcFailure(INVALID, f"id may be {ID_SIZE_MAX} bytes long at most, got {len(raw_id)}")
        elif envelope.jsonrpc != "2.0":
            refused = RpcFailure(INVALID, VERSION_TEXT, envelope)
        elif self._dialect.no_request_answered and not name:
            refused = RpcFailure(INVALID, METHOD_TEXT, envelope)
        elif len(name) > METHOD_SIZE_MAX:
            refused = RpcFailure(INVALID, f"method may be {METHOD_SIZE_MAX} characters long at most, got {len(name)}")
        else:
            refused = RpcFailure(self._dialect.method_not_found, self._unknown(name))
        outcome = self._refuse(refused, envelope)
        answered = refused.code == INVALID and self._dialect.no_request_answered
        return outcome if answered else self._silent(envelope, outcome)

    def _silent(self, envelope: Envelope, outcome: RpcOutcome) -> RpcOutcome:
        """Return the outcome of a notification without a body: it is executed and gets no answer."""
        raw_id = bytes(envelope.id)
        if not raw_id or (raw_id == b"null" and not self._dialect.null_id_answered):
            return RpcOutcome(b"", outcome.method, outcome.error)
        return outcome

    def _refuse(self, refused: RpcFailure, envelope: Envelope) -> RpcOutcome:
        self._counters.count_unrouted()
        return RpcOutcome(self._refusal(refused, envelope), None, BadRequest(str(refused)))

    async def _batch(self, value: bytes) -> RpcOutcome:
        calls = elements(value)
        if not calls or len(calls) > BATCH_MAX:
            raise RpcFailure(INVALID, f"a batch holds 1 to {BATCH_MAX} calls, got {len(calls)}")
        answers: list[RpcOutcome] = []
        size = 0
        for call in calls:
            try:
                envelope = self._read(call)
                if size >= BATCH_ANSWER_MAX:  # 100 small calls must not return a gigabyte
                    raise RpcFailure(
                        TOO_LONG,
                        f"not executed: the answer of this batch has reached {BATCH_ANSWER_MAX} bytes; "
                        "send the remaining calls in another batch",
                        envelope,
                    )
            except RpcFailure as refused:
                answers.append(self._refuse(refused, refused.request or Envelope()))
                continue
            answers.append(await self._one(envelope))
            size += len(answers[-1].body)
            await asyncio.sleep(0)  # other requests can run between two calls of a batch
        bodies = [answer.body.rstrip(b"\n") for answer in answers if answer.body]
        server_errors = [answer.error for answer in answers if isinstance(answer.error, (Unavailable, InternalError))]
        error = max(server_errors, key=is_unavailable, default=None)
        return RpcOutcome(b"[%b]\n" % b",".join(bodies) if bodies else b"", None, error)

    def _first_value(self, body: bytes) -> bytes:
        try:
            value, rest = first_value(body)
        except JsonError as error:
            raise RpcFailure(PARSE, str(error)) from error
        if rest and not self._dialect.trailing_bytes_ignored:
            raise RpcFailure(PARSE, "unexpected bytes after the JSON value")
        if not self._dialect.bad_utf8_ignored:
            try:
                value.decode()
            except UnicodeDecodeError as error:
                raise RpcFailure(PARSE, f"byte {error.start} is not UTF-8") from error
        return value

    def _read(self, value: bytes) -> Envelope:
        """An envelope the way the node reads one: case does not matter, the last of equal keys wins, null is none."""
        envelope = Envelope()
        if value == b"null" and not self._dialect.null_id_answered:
            return envelope
        if value[:1] != b"{":
            text = _TYPE_TEXT.format(json_type(value), "value", "json2.serverRequest")
            raise RpcFailure(self._dialect.invalid_request, text)
        wrong = ""
        for key, raw in members(value):
            name = key.lower()
            if name in ("params", "id"):
                setattr(envelope, name, msgspec.Raw(raw))
            elif name in ("jsonrpc", "method") and raw != b"null":
                if raw[:1] == b'"':
                    setattr(envelope, name, string_of(raw))
                elif not wrong:
                    wrong = _TYPE_TEXT.format(json_type(raw), f"struct field serverRequest.{name}", "string")
        if wrong:
            raise RpcFailure(self._dialect.invalid_request, wrong, envelope)
        return envelope

    def _unknown(self, name: str) -> str:
        """The node's text for an unknown method. It upper-cases the letter after the first dot before its lookup."""
        service, dot, rest = name.partition(".")
        if dot and rest[:1].isupper():
            return "method must start with a non-uppercase letter"
        looked_up = service + dot + rest[:1].upper() + rest[1:]
        if looked_up.count(".") != 1:
            return f"rpc: service/method request ill-formed: {quote(looked_up)}"
        what = "method" if service in self._services else "service"
        return f"rpc: can't find {what} {quote(looked_up)}"

    def _refusal(self, refused: RpcFailure, envelope: Envelope) -> bytes:
        error: dict[str, Any] = {"code": refused.code, "message": str(refused)}
        raw_id = bytes(envelope.id) or b"null"
        if self._dialect.error_data:
            error["data"] = (
                None
                if refused.request is None and refused.code != PARSE
                else _request_data(refused.request or Envelope())
            )
            # as Go writes JSON
            text = _encode(error).replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")
        else:
            text = _encode(error)
        return b'{"jsonrpc":"2.0","error":%b,"id":%b}\n' % (text, _echo(raw_id))


def _request_data(envelope: Envelope) -> dict[str, Any]:
    return {
        "jsonrpc": envelope.jsonrpc,
        "method": envelope.method,
        "params": msgspec.Raw(bytes(envelope.params) or b"null"),
        "id": msgspec.Raw(bytes(envelope.id) or b"null"),
    }


def _echo(raw_id: bytes) -> bytes:
    if len(raw_id) > ID_SIZE_MAX:
        return b"null"
    return raw_id if _COMPACT_NEEDED.isdisjoint(raw_id) else compact(raw_id)


def is_unavailable(error: IcefallError | None) -> bool:
    return isinstance(error, Unavailable)
