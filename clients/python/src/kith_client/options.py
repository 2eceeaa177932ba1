"""The options of calls, and the requests that they make."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from .answers import object_of
from .encoding import encode, path_of, query_of
from .repetitions import REPETITIONS

if TYPE_CHECKING:
    from collections.abc import Mapping


class CallOptions(TypedDict, total=False):
    """The options of every call."""

    timeout: float
    """The longest silence of an attempt in seconds, in place of that of the client."""
    retries: int
    """The maximum number of retries, in place of that of the client."""
    request_id: str
    """Sent as `X-Request-Id`: 1 to 64 letters, digits, `_` and `-`. The service writes it to its log and change log."""
    if_sequence: int
    """On a read: the number of a change that it must show, also where a standby answers."""
    strict: bool
    """Refuses a filter by a key that is not declared and that no entity has. Without it, the response has `warnings`."""


class WriteOptions(CallOptions, total=False):
    """The options of a write."""

    if_match: int | Literal["*"]
    """The version that the entity must have, or `*` for any version. Otherwise the write is refused with 412."""
    references: Literal["strict"]
    """`strict` refuses relationship targets that do not exist. Without it, they are created as placeholders."""
    erased: Literal["recreate"]
    """`recreate` gives an identifier, an email or a phone number of an erased person to somebody again."""
    idempotency_key: str
    """The client generates one for every POST that writes, and repeats it in retries. The service carries out a key once within 24
    hours, so a `replace` or `patch` with a key is also retried."""


@dataclass
class Request:
    """A request, ready to be sent, and when it may be sent again."""

    method: str
    path: str
    content: bytes | None
    headers: dict[str, str]
    is_repeatable: bool
    """Whether it may be sent again even if it may have been carried out."""
    is_authorized: bool = True
    is_dry_run: bool = False
    wait: float = 0
    """How long the service may wait before it responds, in seconds."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def has_key(self) -> bool:
        return "Idempotency-Key" in self.headers


_ALLOWED = CallOptions.__annotations__.keys() | WriteOptions.__annotations__.keys() | {"representation"}


def prepare(
    endpoint: str,
    params: Mapping[str, object],
    query: Mapping[str, object],
    body: object,
    options: Mapping[str, Any],
    newest: int | None,
) -> Request:
    """Makes the request of an endpoint. `newest` is the number of a change that a read must show."""
    method, template = endpoint.split(" ")
    is_dry_run = bool(query.get("dry_run"))
    # A dry run changes nothing, so it is repeated like a read.
    repetition = "read" if is_dry_run else REPETITIONS.get(endpoint, "read")
    name = (object_of(body) or {}).get("external_id")
    # After a replacement that renames, another entity may have the old name. A retry would replace that one.
    renames = "external_id" in params and name not in (None, params["external_id"])
    headers = headers_of(options, None if repetition != "read" else newest)
    if body is not None:
        headers["Content-Type"] = "application/json"
    if repetition == "keyed":
        headers.setdefault("Idempotency-Key", secrets.token_hex(16))
    return Request(
        method=method,
        path=path_of(template, params) + query_of(query),
        content=None if body is None else encode(body),
        headers=headers,
        is_repeatable=repetition == "read"
        or (repetition == "safe" and not renames)
        or (repetition == "versioned" and isinstance(options.get("if_match"), int)),
        is_authorized=template.startswith("/v1/"),
        is_dry_run=is_dry_run,
        wait=float(str(query.get("wait") or 0)),
        options=options,
    )


def headers_of(options: Mapping[str, Any], newest: int | None, accept: str = "application/json") -> dict[str, str]:
    """The headers of a call. Raises TypeError for an option that does not exist, as Python does for keywords."""
    unknown = options.keys() - _ALLOWED
    if unknown:
        raise TypeError(f"{', '.join(sorted(unknown))} is not an option of a call")
    if_match, if_sequence = options.get("if_match"), options.get("if_sequence", newest)
    preferences = [
        *(["return=representation"] if options.get("representation") else []),
        *(f"{name}={options[name]}" for name in ("references", "erased") if options.get(name)),
        *(["handling=strict"] if options.get("strict") else []),
    ]
    headers = {
        "Accept": accept,
        "X-Request-Id": options.get("request_id"),
        "If-Match": f'"{if_match}"' if isinstance(if_match, int) else if_match,
        "If-Sequence": None if if_sequence is None else str(if_sequence),
        "Prefer": ", ".join(preferences) or None,
        "Idempotency-Key": options.get("idempotency_key"),
    }
    return {name: value for name, value in headers.items() if value is not None}
