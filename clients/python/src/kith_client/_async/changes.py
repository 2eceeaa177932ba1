"""The change log of an organization."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import httpx

from ..answers import Page
from ..encoding import query_of
from ..errors import KithConnectionError, KithException
from ..retry import pause_before_reconnect
from .io import sleep
from .listing import AsyncListing
from .transport import AsyncTransport

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..models import Change, ChangePage
    from ..options import CallOptions

    OneOrMore = str | Sequence[str]

SILENCE = 40.0
"""kith sends a comment every 15 seconds, so a silent connection is broken."""


class AsyncChanges:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        after: int = 0,
        log_id: str | None = None,
        subject: OneOrMore | None = None,
        stack: OneOrMore | None = None,
        operation: OneOrMore | None = None,
        segment: OneOrMore | None = None,
        links: Literal["id"] | None = None,
        size: int | None = None,
        wait: float | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncListing[Change]:
        """Lists the changes, oldest first. If none matches yet, the service waits up to `wait` seconds for the first, at most 20."""
        query = {"log_id": log_id, "subject": subject, "stack": stack, "operation": operation, "segment": segment}

        async def read(position: str | None, is_first: bool) -> Page[Any]:
            sent = {**query, "links": links, "limit": size, "wait": wait if is_first else None, "after": position}
            page: ChangePage = await self._transport.send("GET /v1/changes", {}, sent, None, options)
            has_more = page["last"] < page["head"]
            following = str(page["last"]) if has_more else None
            return Page(page["items"], has_more, following, sequence=page["last"], log_id=page["log_id"])

        return AsyncListing(read, str(after))

    def follow(
        self,
        *,
        after: int = 0,
        log_id: str | None = None,
        subject: OneOrMore | None = None,
        stack: OneOrMore | None = None,
        operation: OneOrMore | None = None,
        segment: OneOrMore | None = None,
        links: Literal["id"] | None = None,
        on_retry: Callable[[KithException, float], None] | None = None,
        on_warning: Callable[[str], None] | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncChangeStream:
        """Follows the change log: the changes after a position, then each new one as it happens.

        It connects again after a broken connection or a restart of the service, and continues after the last change, so that none is
        missing and none comes twice. Raises if the service refuses the request: 401, 403, or 410 if the position is not one of this
        log. `on_retry` is called with the reason and the pause in seconds."""
        query = {"subject": subject, "stack": stack, "operation": operation, "segment": segment, "links": links}
        return AsyncChangeStream(self._transport, query, options, after, log_id, on_retry, on_warning)


class AsyncChangeStream:
    """The changes that `follow` delivers. Iterating it again continues after `last`."""

    def __init__(
        self,
        transport: AsyncTransport,
        query: Mapping[str, object],
        options: Mapping[str, Any],
        after: int,
        log_id: str | None,
        on_retry: Callable[[KithException, float], None] | None,
        on_warning: Callable[[str], None] | None,
    ) -> None:
        self._transport, self._query, self._options = transport, query, options
        self._on_retry, self._on_warning = on_retry, on_warning
        self._warning: str | None = None
        self._has_connected = False
        self.last = after
        """The number of the last change that the loop has finished, or a later one if the changes up to it do not match."""
        self.log_id = log_id
        """Names the numbering that `last` belongs to. None before the first connection, unless it was given."""

    async def __aiter__(self) -> AsyncIterator[Change]:
        failures = 0
        while True:
            failure: KithException = KithConnectionError("The service ended the stream.")
            try:
                async for sequence, change in self._connect():
                    if change is not None:
                        yield change
                    self.last, failures = sequence, 0
            except KithException as error:
                failure = error
            failures += 1
            failure.attempts = failures
            pause = pause_before_reconnect(failure, failures)
            # An address that has never answered is probably wrong.
            retries = self._options.get("retries", self._transport.retries)
            if pause is None or (not self._has_connected and failures > retries):
                raise failure
            if self._on_retry:
                self._on_retry(failure, pause)
            await sleep(pause)

    async def _connect(self) -> AsyncIterator[tuple[int, Change | None]]:
        """The positions of one connection, each with its change, if it matches. A block of server-sent events ends at a blank line."""
        path = "/v1/changes" + query_of({"after": self.last, "log_id": self.log_id, **self._query})
        position: int | None = None
        change: Any = None
        async for line in self._transport.lines(
            "GET",
            path,
            options=self._options,
            accept="text/event-stream",
            silence=SILENCE,
            on_response=self._note,
        ):
            if line.startswith(b"id: "):
                position = int(line[4:])
            elif line.startswith(b"data: "):
                change = json.loads(line[6:])
            elif not line:
                if position is not None:
                    yield position, change
                position, change = None, None

    def _note(self, headers: httpx.Headers) -> None:
        self._has_connected = True
        self.log_id = headers.get("kith-log-id", self.log_id)
        warning = headers.get("x-kith-warning")
        if warning is not None and warning != self._warning and self._on_warning:
            self._on_warning(warning)
        self._warning = warning
