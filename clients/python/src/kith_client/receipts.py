"""Verifies consent receipts without a server. Needs the package `cryptography`."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from .answers import object_of
from .errors import ReceiptError
from .proofs import (
    FormatError,
    canonical_json,
    decode_base64,
    decode_base64url,
    hash_leaf,
    is_included,
    parse_checkpoint,
    parse_proof,
    parse_verifier_key,
    verify_ed25519,
    verify_note,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from .proofs import VerifierKey

    Result = TypeVar("Result")

FORMAT = "kith consent receipt 1"
MAX_BYTES = 1_048_576
MEMBERS = ("entry", "salt", "tlog_proof", "verifier_key", "jws")


@dataclass
class VerifiedReceipt:
    """The facts that a verified receipt proves."""

    entry: dict[str, Any]
    key: str
    origin: str
    """The log that contains the entry."""
    index: int
    size: int
    root_hash: str
    text: Literal["none", "stated", "given"]
    """Whether the entry names a text: `stated` is in the receipt and `given` by the caller, and its hash is the sealed one."""


def verify_receipt(receipt: bytes, *, key: str | None = None, text: bytes | None = None) -> VerifiedReceipt:
    """Verifies a receipt, JSON in UTF-8. `key` is the note key that must have signed; without it, the receipt's own key is used. `text` is
    what the person answered to. Raises ReceiptError, which names the part that is wrong."""
    parsed = _parse(receipt)
    verifier = _checked_key(parsed["verifier_key"], key)
    _check_signature(parsed, verifier)
    if parsed.get("dct:conformsTo") != FORMAT:
        _fail("dct:conformsTo", f'This version of kith verifies receipts of the format "{FORMAT}" only.')
    index, size, origin, root_hash = _checked_inclusion(parsed, verifier)
    stated = _checked_text(parsed, text)
    return VerifiedReceipt(parsed["entry"], parsed["verifier_key"], origin, index, size, root_hash, stated)


def _fail(part: str, message: str) -> NoReturn:
    raise ReceiptError(part, message)


def _part(part: str, check: Callable[[], Result]) -> Result:
    """Runs a check of a part. A FormatError becomes a ReceiptError of the part."""
    try:
        return check()
    except FormatError as error:
        raise ReceiptError(part, str(error)) from error


def _parse(content: bytes) -> dict[str, Any]:
    if len(content) > MAX_BYTES:
        _fail("receipt", "The receipt is larger than 1 MiB.")
    value = _parse_json(content, "receipt", "receipt")
    # A saved response has the receipt in its envelope.
    envelope = object_of(value) or {}
    if object_of(envelope.get("data")) is not None:
        foreign = next((name for name in envelope if name not in ("status", "data")), None)
        if foreign is not None:
            _fail("receipt", f"The response around the receipt has the member {json.dumps(foreign)}, which no signature covers.")
        value = envelope["data"]
    receipt = object_of(value)
    if receipt is None:
        _fail("receipt", "The receipt is not a JSON object.")
    for member in MEMBERS:
        kind, noun = (dict, "an object") if member == "entry" else (str, "a text")
        if member not in receipt:
            _fail(member, f"The receipt has no member {member}.")
        if not isinstance(receipt[member], kind):
            _fail(member, f"The member {member} of the receipt is not {noun}.")
    return receipt


def _parse_json(content: bytes, part: str, noun: str) -> Any:
    """Parses JSON in UTF-8 without repeated members. `noun` names it in the messages of refusals."""

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [name for name, _ in pairs]
            repeated = json.dumps(next(name for name in names if names.count(name) > 1), ensure_ascii=False)
            _fail(part, f"An object of the {noun} has the member {repeated} twice. Programs differ in which of the two they read.")
        return members

    def no_constant(name: str) -> NoReturn:
        raise ValueError(name)

    try:
        return json.loads(content.decode(), object_pairs_hook=object_of, parse_constant=no_constant)
    except (ValueError, RecursionError):
        _fail(part, f"The {noun} is not JSON in UTF-8.")


def _checked_key(stated: str, expected: str | None) -> VerifierKey:
    key = _part("verifier_key", lambda: parse_verifier_key(stated))
    if expected is not None:
        _part("key", lambda: parse_verifier_key(expected))
        if expected != stated:
            _fail("verifier_key", f"The receipt is signed by the key {stated}, not by the key that you gave.")
    return key


def _check_signature(receipt: dict[str, Any], key: VerifierKey) -> None:
    """Checks that the key signed the receipt, and that each member is the one that it signed."""
    hashes = _signed_hashes(receipt["jws"], key)
    if hashes is None:
        _fail("jws", "The signature of the receipt is wrong: it is not by the key of the receipt, or it was changed.")
    signed = {member: value for member, value in receipt.items() if member != "jws"}
    for member, value in signed.items():
        if member not in hashes:
            _fail(member, f"The member {member} was added: the signature does not cover it.")
        if _hash_of(value) != hashes[member]:
            _fail(member, f"The member {member} was changed after the receipt was signed.")
    missing = next((member for member in hashes if member not in signed), None)
    if missing is not None:
        _fail(missing, f"The member {missing} was removed from the receipt.")


def _signed_hashes(jws: str, key: VerifierKey) -> dict[str, Any] | None:
    """The payload of the compact JWS (RFC 7515): the hashes of the members. None if the key did not sign it."""
    parts = jws.split(".")
    if len(parts) != 3:
        return None
    header, payload, signature = (decode_base64url(part) for part in parts)
    if header is None or payload is None or signature is None:
        return None
    if not verify_ed25519(key.public_key, signature, f"{parts[0]}.{parts[1]}".encode()):
        return None
    claims = _parse_object(header, "header of the signature")
    if claims.get("alg") != "EdDSA" or "crit" in claims:
        return None
    return _parse_object(payload, "content of the signature")


def _parse_object(content: bytes, noun: str) -> dict[str, Any]:
    value = object_of(_parse_json(content, "jws", noun))
    return value if value is not None else _fail("jws", f"The {noun} is not a JSON object.")


def _hash_of(value: Any) -> str | None:
    """The hash of a member. None for a text that has no canonical JSON, such as half a surrogate pair."""
    try:
        digest = hashlib.sha256(canonical_json(value)).digest()
    except FormatError:
        return None
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _checked_inclusion(receipt: dict[str, Any], key: VerifierKey) -> tuple[int, int, str, str]:
    index, hashes, checkpoint = _part("tlog_proof", lambda: parse_proof(receipt["tlog_proof"]))
    text = _part("tlog_proof", lambda: verify_note(checkpoint, key))
    origin, size, root = _part("tlog_proof", lambda: parse_checkpoint(text))
    if origin != key.name:
        _fail("tlog_proof", f"The checkpoint is of the log {origin}, but its key is that of the log {key.name}.")
    salt = decode_base64(receipt["salt"])
    if salt is None or len(salt) != 32:
        _fail("salt", "The salt is not base64 of 32 bytes.")
    leaf = hash_leaf(hashlib.sha256(salt + canonical_json(receipt["entry"])).digest())
    if not is_included(index, leaf, size, root, hashes):
        message = "The proof does not lead from the entry and its salt to the checkpoint: the entry is not in the log."
        _fail("tlog_proof", message)
    return index, size, origin, base64.b64encode(root).decode()


def _checked_text(receipt: dict[str, Any], given: bytes | None) -> Literal["none", "stated", "given"]:
    """Checks the text of the receipt and that of the caller against the hash in the entry, which the log sealed."""
    sealed = receipt["entry"].get("text_sha256")
    value: Any = receipt
    for member in ("dpv:hasRecordOfActivity", "dpv:hasNotice", "rdf:value", "@value"):
        value = (object_of(value) or {}).get(member)
    stated = value if isinstance(value, str) else None
    if given is not None and sealed is None:
        _fail("text", "The entry names no text, so the receipt proves nothing about the text that you gave.")
    if stated is not None and hashlib.sha256(stated.encode()).hexdigest() != sealed:
        _fail("dpv:hasRecordOfActivity", "The text of the receipt is not the one whose hash the log sealed.")
    if given is not None and hashlib.sha256(given).hexdigest() != sealed:
        message = "The text that you gave is not the one that the person answered to, byte for byte: the log sealed another hash."
        _fail("text", message)
    return "given" if given is not None else "none" if stated is None else "stated"
