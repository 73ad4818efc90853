"""Signatures and canonical JSON, with values of the hosted service's client, and the schedule of attempts."""

import pytest

from icefall.webhooks.retrying import ATTEMPT_S, ATTEMPTS_MAX, DELAYS_S, LEASE_S, Outcome, retry_at
from icefall.webhooks.signing import canonical_json, signature_headers, signature_of, standard_secret

SECRET = bytes.fromhex("00112233445566778899aabbccddeeff" * 2)
BODY = {
    "messageId": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee",
    "webhookId": "11111111-2222-4333-8444-555555555555",
    "eventType": "address_activity",
    "event": {"transaction": {"value": "5", "name": "Token €", "nested": {"b": 1, "a": True}}},
}


def test_the_signature_is_that_of_the_hosted_service() -> None:
    assert signature_of(SECRET, canonical_json(BODY)) == "q0BwCGzBgJSyV1GCltXXOkVaIxGNqasz7TVxz9jV1ao="


def test_keys_are_sorted_as_javascript_sorts_them() -> None:
    assert canonical_json({"\U0001f600": 1, "\ufb33": 2, "a": [None, "\n€\x7f"]}).decode() == (
        '{"a":[null,"\\n€\x7f"],"\U0001f600":1,"\ufb33":2}'
    )


@pytest.mark.parametrize("value", [1.5, 2**53, float("nan"), -(2**53)])
def test_numbers_that_languages_write_differently_are_refused(value: float) -> None:
    with pytest.raises(TypeError):
        canonical_json({"value": value})


def test_a_rotated_secret_signs_beside_the_new_one() -> None:
    old, new, body = b"o" * 32, b"n" * 32, b"{}"
    headers = signature_headers([new, old], "id", 12, body)
    signed = b"id.12." + body
    assert headers == {
        "x-signature": signature_of(new, body),
        "webhook-id": "id",
        "webhook-timestamp": "12",
        "webhook-signature": f"v1,{signature_of(new, signed)} v1,{signature_of(old, signed)}",
    }
    assert standard_secret(b"\0" * 3) == "whsec_AAAA"


def test_the_schedule_is_that_of_the_hosted_service() -> None:
    failed = Outcome(500, "it answered 500")
    times = [retry_at(attempts, failed, 0.0, 0.0) for attempts in range(1, ATTEMPTS_MAX)]
    assert times == list(DELAYS_S)
    assert sum(DELAYS_S) == pytest.approx(44.77 * 3600, rel=0.01)
    assert retry_at(ATTEMPTS_MAX, failed, 0.0, 0.0) is None
    assert retry_at(1, failed, 100.0, 1.0) == pytest.approx(111.0)
    assert retry_at(1, Outcome(429, "later", 600.0), 0.0, 0.0) == 600.0
    assert retry_at(1, Outcome(410, "gone"), 0.0, 0.0) is None


def test_an_attempt_ends_before_it_counts_as_lost() -> None:
    assert LEASE_S > 2 * ATTEMPT_S
