"""The formats of the ledger: proofs of https://c2sp.org/tlog-proof, a Merkle proof of RFC 6962 that leads to a signed checkpoint."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

ED25519 = 1
MAX_SIGNATURES = 100
MAX_HASHES = 53
"""A tree of 2^53 leaves has proofs of at most 53 hashes."""
MAX_INTEGER = 2**53 - 1


class FormatError(Exception):
    """A text of the ledger that is not in its format."""


@dataclass(frozen=True)
class VerifierKey:
    """A key that verifies notes (https://c2sp.org/signed-note). `id` is the key ID."""

    name: str
    id: bytes
    public_key: bytes


def decode_base64(text: str) -> bytes | None:
    """Decodes standard base64 in its canonical form: padded, and without unused bits. None for any other text."""
    try:
        content = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return content if base64.b64encode(content).decode() == text else None


def decode_base64url(text: str) -> bytes | None:
    """Decodes base64url in its canonical form: without padding and unused bits. None for any other text."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        return None
    return decode_base64(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))


def parse_decimal(text: str) -> int | None:
    """Parses a decimal number without leading zeros. None for any other text, and for numbers above 2^53 - 1."""
    value = int(text) if re.fullmatch(r"(0|[1-9][0-9]{0,15})", text) else None
    return value if value is not None and value <= MAX_INTEGER else None


def canonical_json(value: Any) -> bytes:
    """The canonical form of a JSON value, by RFC 8785. Raises FormatError for a text that is not well-formed Unicode."""
    try:
        return _canonical(value).encode()
    except (UnicodeEncodeError, RecursionError) as error:
        raise FormatError("A text is not well-formed Unicode.") from error


def _canonical(value: Any) -> str:
    if isinstance(value, dict):
        members = sorted(cast("dict[str, Any]", value).items(), key=lambda member: member[0].encode("utf-16-be"))
        return "{" + ",".join(f"{_canonical(name)}:{_canonical(each)}" for name, each in members) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(_canonical, value))}]"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _canonical_number(value)
    return json.dumps(value, ensure_ascii=False)


def _canonical_number(value: float) -> str:
    """A number as ECMAScript prints it: without an exponent from 1e-6 to below 1e21."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        return "null"
    if number == 0:
        return "0"
    mantissa, _, exponent = f"{abs(number)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    sign = "-" if number < 0 else ""
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def verify_ed25519(public_key: bytes, signature: bytes, content: bytes) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise ImportError("Receipts need the package cryptography: pip install kith-client[receipts]") from error
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, content)
    except (InvalidSignature, ValueError):
        return False
    return True


def parse_verifier_key(text: str) -> VerifierKey:
    """Parses a verifier key: `name+hash+base64`."""
    match = re.fullmatch(r"([^+]*)\+([0-9a-f]{8})\+(.*)", text, re.DOTALL)
    if not match:
        raise FormatError("A verifier key has the form name+hash+base64.")
    name, identifier = match[1], bytes.fromhex(match[2])
    _check_name(name)
    encoded = decode_base64(match[3])
    if encoded is None:
        raise FormatError("The last part of the verifier key is not base64.")
    if len(encoded) != 33 or encoded[0] != ED25519:
        raise FormatError("The verifier key is not an Ed25519 key.")
    if hashlib.sha256(f"{name}\n".encode() + encoded).digest()[:4] != identifier:
        message = "The hash of the verifier key is not that of its name and key: a part of it was changed."
        raise FormatError(message)
    return VerifierKey(name, identifier, encoded[1:])


def _check_name(name: str) -> None:
    if not name or any(each.isspace() or each == "+" or unicodedata.category(each) in ("Cc", "Cs") for each in name):
        raise FormatError("The name of a key is not empty and has no spaces, control characters and plus signs.")


def verify_note(note: str, key: VerifierKey) -> str:
    """Verifies a note and returns its text. Signatures of other keys are ignored."""
    if any(unicodedata.category(each) == "Cs" for each in note):
        raise FormatError("The note is not well-formed Unicode.")
    if re.search(r"[\0-\x09\x0b-\x1f]", note):
        raise FormatError("The note contains a control character other than the newline.")
    end = note.rfind("\n\n")
    if end == -1:
        raise FormatError("The note has no blank line between its text and its signatures.")
    if not note.endswith("\n"):
        raise FormatError("The note does not end with a newline.")
    text, lines = note[: end + 1], note[end + 2 :].split("\n")[:-1]
    if not lines:
        raise FormatError("The note has no signature.")
    if len(lines) > MAX_SIGNATURES:
        raise FormatError(f"The note has more than {MAX_SIGNATURES} signatures.")
    ours = [rest for name, content in map(_parse_signature, lines) if (name, content[:4]) == (key.name, key.id) for rest in [content[4:]]]
    for signature in ours:
        if not verify_ed25519(key.public_key, signature, text.encode()):
            raise FormatError(f"The signature of the note by the key {key.name}+{key.id.hex()} is wrong.")
    if not ours:
        raise FormatError(f"The note is not signed by the key {key.name}+{key.id.hex()}.")
    return text


def _parse_signature(line: str) -> tuple[str, bytes]:
    match = re.fullmatch(r"— ([^ ]+) ([^ ]+)", line)
    if not match:
        raise FormatError('A signature of the note has not the form "— name base64".')
    _check_name(match[1])
    content = decode_base64(match[2])
    if content is None:
        raise FormatError("A signature of the note is not base64.")
    if len(content) <= 4:
        raise FormatError("A signature of the note is too short.")
    return match[1], content


def parse_checkpoint(text: str) -> tuple[str, int, bytes]:
    """The origin, the size and the root hash of a checkpoint: the text of a verified note, with its last newline."""
    *lines, last = text.split("\n")
    if last:
        raise FormatError("The checkpoint does not end with a newline.")
    if len(lines) < 3:
        raise FormatError("A checkpoint has three lines: origin, size and root hash.")
    if "" in lines:
        raise FormatError("The checkpoint contains an empty line.")
    size, root = parse_decimal(lines[1]), decode_base64(lines[2])
    if size is None:
        message = "The size of the checkpoint is not a decimal number up to 2^53 - 1 without leading zeros."
        raise FormatError(message)
    if root is None or len(root) != 32:
        raise FormatError("The root hash of the checkpoint is not base64 of 32 bytes.")
    return lines[0], size, root


def parse_proof(text: str) -> tuple[int, list[bytes], str]:
    """The index, the hashes and the checkpoint of a proof. The checkpoint is returned as it is, without a check."""
    head, blank, checkpoint = text.partition("\n\n")
    if not blank:
        raise FormatError("The proof has no blank line before its checkpoint.")
    lines = head.split("\n")
    if lines.pop(0) != "c2sp.org/tlog-proof@v1":
        raise FormatError("The first line of the proof is not c2sp.org/tlog-proof@v1.")
    if lines and lines[0].startswith("extra ") and decode_base64(lines.pop(0).removeprefix("extra ")) is None:
        raise FormatError("The extra data of the proof is not base64.")
    line = lines.pop(0) if lines else ""
    index = parse_decimal(line.removeprefix("index ")) if line.startswith("index ") else None
    if index is None:
        message = "The index of the proof is not a decimal number up to 2^53 - 1 without leading zeros."
        raise FormatError(message)
    if len(lines) > MAX_HASHES:
        raise FormatError(f"The proof has more than {MAX_HASHES} hashes.")
    return index, [_parse_hash(each, number) for number, each in enumerate(lines, 1)], checkpoint


def _parse_hash(line: str, number: int) -> bytes:
    content = decode_base64(line)
    if content is None or len(content) != 32:
        raise FormatError(f"The hash {number} of the proof is not base64 of 32 bytes.")
    return content


def hash_leaf(content: bytes) -> bytes:
    return hashlib.sha256(b"\0" + content).digest()


def is_included(index: int, leaf_hash: bytes, size: int, root_hash: bytes, hashes: Sequence[bytes]) -> bool:
    """Whether `hashes` prove that the leaf has this index in the tree of `size` leaves and `root_hash`. RFC 9162, 2.1.3.2."""
    node, last, root = index, size - 1, leaf_hash
    if node > last:
        return False
    for sibling in hashes:
        if last == 0:
            return False
        is_left = node % 2 == 0 and node != last
        # The last node of a level without a sibling is its own parent.
        while node % 2 == 0 and node == last and node != 0:
            node, last = node // 2, last // 2
        node, last = node // 2, last // 2
        root = hashlib.sha256(b"\1" + (root + sibling if is_left else sibling + root)).digest()
    return last == 0 and root == root_hash
