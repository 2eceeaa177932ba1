"""What is verified without the service: webhooks and receipts."""

from __future__ import annotations

import json
import math
import struct
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from test_entities import unique

from kith_client import Kith, ReceiptError, WebhookVerificationError, verify_receipt, verify_webhook
from kith_client.proofs import canonical_json

# The example of the Standard Webhooks specification.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLw" + "=="[: -len("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLw") % 4]
BODY = '{"event_type":"ping","data":{"success":true}}'


def signed(secret: str, body: str, at: float) -> dict[str, str]:
    import base64
    import hashlib
    import hmac

    key = base64.b64decode(secret.removeprefix("whsec_"))
    signature = hmac.new(key, f"msg_1.{int(at)}.{body}".encode(), hashlib.sha256).digest()
    value = f"v1a,xx v1,{base64.b64encode(signature).decode()}"
    return {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(int(at)), "Webhook-Signature": value}


def test_a_signed_request_is_accepted_by_any_of_the_secrets() -> None:
    headers = signed(SECRET, BODY, time.time())
    other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
    assert verify_webhook(BODY, headers, [other, SECRET]) == json.loads(BODY)
    for changed in (BODY + " ", BODY.replace("true", "null")):
        with pytest.raises(WebhookVerificationError, match="No signature"):
            verify_webhook(changed, headers, SECRET)
    with pytest.raises(WebhookVerificationError, match="No signature"):
        verify_webhook(BODY, headers, other)
    with pytest.raises(WebhookVerificationError, match="missing"):
        verify_webhook(BODY, {}, SECRET)
    with pytest.raises(ValueError, match="begins with whsec_"):
        verify_webhook(BODY, headers, "whsec_ä")


@pytest.mark.parametrize("age", [-310, 310])
def test_a_request_of_another_time_is_refused(age: int) -> None:
    with pytest.raises(WebhookVerificationError, match="five minutes"):
        verify_webhook(BODY, signed(SECRET, BODY, time.time() - age), SECRET)


@pytest.mark.parametrize(("name", "value"), [("Webhook-Timestamp", "9" * 5_000), ("Webhook-Id", "\udcff")])
def test_a_header_that_no_webhook_sends_is_refused_as_any_other(name: str, value: str) -> None:
    with pytest.raises(WebhookVerificationError):
        verify_webhook(BODY, signed(SECRET, BODY, time.time()) | {name: value}, SECRET)


def test_what_the_package_standardwebhooks_signs_is_accepted() -> None:
    webhooks = pytest.importorskip("standardwebhooks.webhooks", reason="the package standardwebhooks is not installed")
    from datetime import datetime, timezone

    now = datetime.now(timezone.utc)
    signature = webhooks.Webhook(SECRET).sign("msg_1", now, BODY)
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature}
    assert verify_webhook(BODY.encode(), headers, SECRET) == json.loads(BODY)


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[tuple[bytes, dict[str, str]]]]]:
    received: list[tuple[bytes, dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802
            received.append((self.rfile.read(int(self.headers["content-length"])), dict(self.headers)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", received
    server.shutdown()
    server.server_close()


def test_what_the_service_sends_is_accepted(kith: Kith, receiver: Any) -> None:
    address, received = receiver
    webhook = kith.api.create_webhook({"url": address, "events": ["person.created"]})
    assert kith.api.test_webhook(webhook["id"])["delivered"] is True
    body, headers = received[0]
    assert verify_webhook(body, headers, webhook["secret"])["type"] == "webhook.test"
    kith.api.delete_webhook(webhook["id"])


def receipt_of(kith: Kith) -> tuple[dict[str, Any], str]:
    name = unique("granted")
    text = kith.api.add_consent_text(1, {"language": "en", "text": "Send me the newsletter."})
    answer = {"consent_type_id": 1, "channel": "email", "state": True, "method": "web_form", "text_version": text["version"]}
    kith.people.create({"external_id": name, "email": f"{name}@example.com", "consents": [answer]})
    receipt: Any = kith.people.receipt(name, consent_type_id=1, channel="email")
    return receipt, kith.api.list_ledger_keys()["keys"][0]["key"]


def test_a_receipt_is_verified_offline_and_every_change_of_it_is_found(kith: Kith) -> None:
    receipt, key = receipt_of(kith)
    content = json.dumps(receipt).encode()
    verified = verify_receipt(content, key=key, text=b"Send me the newsletter.")
    assert verified.entry["state"] is True and verified.text == "given" and verified.index < verified.size
    assert verify_receipt(json.dumps({"status": "Success", "data": receipt}).encode()).text == "stated"
    with pytest.raises(ReceiptError, match="byte for byte"):
        verify_receipt(content, text=b"Something else.")
    for member in receipt:
        changed = {**receipt, member: {**receipt[member], "x": 1} if isinstance(receipt[member], dict) else f"{receipt[member]}x"}
        with pytest.raises(ReceiptError) as refused:
            verify_receipt(json.dumps(changed).encode())
        assert refused.value.part == member
        with pytest.raises(ReceiptError) as refused:
            verify_receipt(json.dumps({name: value for name, value in receipt.items() if name != member}).encode())
        assert refused.value.part == member
    with pytest.raises(ReceiptError, match="twice"):
        verify_receipt(content.replace(b'"salt"', b'"salt": "", "salt"', 1))
    other = receipt_of(kith)[0]
    with pytest.raises(ReceiptError) as mixed:
        verify_receipt(json.dumps({**receipt, "tlog_proof": other["tlog_proof"]}).encode())
    assert mixed.value.part == "tlog_proof"


@pytest.mark.parametrize(
    ("bits", "text"),
    # The samples of RFC 8785, appendix B.
    [
        (0x0000000000000000, "0"),
        (0x8000000000000000, "0"),
        (0x0000000000000001, "5e-324"),
        (0x8000000000000001, "-5e-324"),
        (0x7FEFFFFFFFFFFFFF, "1.7976931348623157e+308"),
        (0x4340000000000000, "9007199254740992"),
        (0x4430000000000000, "295147905179352830000"),
        (0x44B52D02C7E14AF5, "9.999999999999997e+22"),
        (0x44B52D02C7E14AF6, "1e+23"),
        (0x444B1AE4D6E2EF4F, "999999999999999900000"),
        (0x444B1AE4D6E2EF50, "1e+21"),
        (0x3EB0C6F7A0B5ED8C, "9.999999999999997e-7"),
        (0x3EB0C6F7A0B5ED8D, "0.000001"),
        (0x41B3DE4355555553, "333333333.3333332"),
        (0xBECBF647612F3696, "-0.0000033333333333333333"),
    ],
)
def test_numbers_have_the_canonical_form_of_rfc_8785(bits: int, text: str) -> None:
    number = struct.unpack(">d", struct.pack(">Q", bits))[0]
    assert canonical_json(number).decode() == text
    assert math.isfinite(number)


def test_members_are_sorted_by_their_utf_16_code_units() -> None:
    value = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}
    assert [json.loads(canonical_json(value))[key] for key in json.loads(canonical_json(value))] == [2, 4, 6, 7, 1, 5, 3]
