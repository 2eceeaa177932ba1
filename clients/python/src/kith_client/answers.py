"""What a response contains: the payload of a success, or the error of a refusal."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from .errors import KithConnectionError, error_of
from .retry import seconds_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .models import Detail

Item = TypeVar("Item")


def payload_of(status: int, headers: Mapping[str, str], content: bytes) -> Any:
    """The payload of a success envelope. Raises the error of an error envelope, and KithConnectionError for any other response."""
    envelope = parse(content)
    retry_after = seconds_until(headers.get("retry-after"))
    if envelope is not None:
        if status < 400 and envelope.get("status") == "Success":
            return envelope.get("data")
        if status >= 400 and isinstance(envelope.get("error"), str):
            raise error_of(status, envelope, retry_after)
    raise KithConnectionError(
        f"The response is not from kith: it has status {status} and not the format of kith. Check the url.",
        status=status,
        retry_after=retry_after,
    )


def parse(content: bytes) -> dict[str, Any] | None:
    """The JSON object of a response. None for any other text."""
    try:
        return object_of(json.loads(content))
    except ValueError:
        return None


def object_of(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


class Lines:
    """Splits a stream into lines. Only a line feed ends one: a text may contain other characters that Python takes for line ends."""

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        yield from lines


@dataclass
class Page(Generic[Item]):
    """One page of a listing."""

    items: list[Item]
    has_more: bool
    """Whether another page follows. A page of some listings may have fewer items than its size, even none, before the end."""
    next: str | None
    """Where the next page begins, for `after`. None on the last page."""
    count: int | None = None
    """The number of all matches, with `count=True`, on the first page."""
    sequence: int | None = None
    """The number of the change that `count` holds at, or that a page of the change log was read up to."""
    log_id: str | None = None
    """Names the numbering of the change log that `sequence` belongs to. Only in pages of the log."""
    warnings: list[Detail] = field(default_factory=list["Detail"])
    """The keys of a filter that are not declared and that no entity has."""


def page_of(sent: Mapping[str, Any], position: str | None) -> Page[Any]:
    """The page of a response. It continues at its own member `position`, or after the last item, whose member it is."""
    items: list[Any] = sent["items"]
    has_more: bool = sent.get("has_more", False)
    following = sent.get(position) if position is not None else None
    if following is None and has_more and items and position is not None:
        following = items[-1].get(position)
    more = {name: sent[name] for name in ("count", "sequence", "warnings") if name in sent}
    return Page(items, has_more, None if following is None else str(following), **more)
