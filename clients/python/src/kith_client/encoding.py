"""What a request consists of, as bytes: JSON, path segments and queries."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Mapping


def encode(body: object) -> bytes:
    """Encodes a body as JSON. A datetime has its offset, and a UUID is a text. Raises ValueError or TypeError for what JSON cannot represent."""
    text = json.dumps(body, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return text.encode()


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a datetime without a time zone is no moment: give it one")
        return value.isoformat()
    if isinstance(value, (date, UUID)):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def path_of(template: str, params: Mapping[str, object]) -> str:
    """Fills in the template of a path. Raises ValueError for identifiers that a URL would normalize away."""
    for name, value in params.items():
        text = str(value)
        if text in ("", ".", ".."):
            raise ValueError(f"{text!r} is not an identifier that a URL can contain")
        template = template.replace(f"{{{name}}}", quote(text, safe=""))
    return template


def query_of(query: Mapping[str, object]) -> str:
    """Encodes a query with its question mark. A sequence repeats its name, and None is left out."""
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        values: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        pairs += [(name, _text(each)) for each in values if each is not None]
    return f"?{urlencode(pairs)}" if pairs else ""


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _plain(value) if isinstance(value, datetime) else str(value)
