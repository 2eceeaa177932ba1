"""Verifies the requests of webhooks by Standard Webhooks 1.0."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from .errors import WebhookVerificationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from typing_extensions import NotRequired

TOLERANCE = 300


class Confirmation(TypedDict):
    """A grant that waits for its confirmation: the address of the person, and the link to send there."""

    consent_type_id: int
    channel: str
    address: str
    confirm_url: str


class WebhookEvent(TypedDict):
    """The body of a request. `data` is the Change, without values if the payload of the webhook is `ids`."""

    type: str
    timestamp: str
    data: dict[str, Any]
    confirmations: NotRequired[list[Confirmation]]


class Headers(Protocol):
    """The headers of a request, as most web frameworks have them."""

    def items(self) -> Iterable[tuple[str, str]]: ...


def verify_webhook(body: bytes | str, headers: Headers, secrets: str | Sequence[str]) -> WebhookEvent:
    """Verifies a request and returns its event. `body` is what arrived, before any parser. `secrets` are those that the receiver accepts:
    during a rotation the old and the new one. Raises WebhookVerificationError if no signature matches or `webhook-timestamp` is more
    than five minutes off, and ValueError for a text that is no secret."""
    keys = [_key_of(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    lower = {name.lower(): value for name, value in headers.items()}
    identifier, timestamp = lower.get("webhook-id"), lower.get("webhook-timestamp")
    signatures = lower.get("webhook-signature")
    if not (identifier and timestamp and signatures):
        raise WebhookVerificationError("A header of Standard Webhooks is missing.")
    # A number of more than 4,300 digits is none for int().
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16) or abs(time.time() - int(timestamp)) > TOLERANCE:
        raise WebhookVerificationError("webhook-timestamp is more than five minutes off.")
    content = body.encode() if isinstance(body, str) else body
    # Some frameworks have bytes that are not UTF-8 as lone surrogates.
    message = f"{identifier}.{timestamp}.".encode(errors="surrogateescape") + content
    if not any(_is_signed(message, signature, key) for signature in signatures.split(" ") for key in keys):
        raise WebhookVerificationError("No signature matches: the request is not from the webhook, or was changed.")
    return json.loads(content)


def _key_of(secret: str) -> bytes:
    key = _decode(secret.removeprefix("whsec_"))
    if not key:
        raise ValueError("a secret of a webhook begins with whsec_ and continues in base64")
    return key


def _is_signed(message: bytes, signature: str, key: bytes) -> bool:
    given = _decode(signature[3:]) if signature.startswith("v1,") else None
    return given is not None and hmac.compare_digest(given, hmac.new(key, message, hashlib.sha256).digest())


def _decode(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
