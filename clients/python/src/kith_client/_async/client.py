"""The client of one service with one set of credentials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import httpx

from ..answers import page_of
from ..credentials import ClientCredentials
from .changes import AsyncChanges
from .endpoints import AsyncEndpoints
from .entities import AsyncEntities
from .io import TokenSource
from .listing import AsyncListing
from .people import AsyncPeople
from .transport import AsyncTransport

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ..models import RecordBody, SearchHit, StackRecord, StackRecordItem, UndoBody, Undone
    from ..options import CallOptions


class AsyncKith:
    """A client of one service. It holds connections: use it in `async with`, or close it.

    `token` is a token, a function that returns one and is called before every attempt, or ClientCredentials. `timeout` is the longest
    silence of an attempt in seconds. With `read_your_writes`, reads show the writes of this client, also where a standby answers."""

    def __init__(
        self,
        url: str,
        token: str | TokenSource | ClientCredentials,
        *,
        timeout: float = 12.0,
        retries: int = 2,
        read_your_writes: bool = False,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._transport = AsyncTransport(
            url, token=token, timeout=timeout, retries=retries, read_your_writes=read_your_writes, http=http
        )
        self.people = AsyncPeople(self._transport, "people")
        self.changes = AsyncChanges(self._transport)
        self.api = AsyncEndpoints(self._transport)
        """Every endpoint that answers in JSON, under the name that the OpenAPI document gives it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._transport.aclose()

    @property
    def sequence(self) -> int | None:
        """The highest change number in the responses to the writes of this client, for `if_sequence` of another client."""
        return self._transport.newest_write

    def stack(self, key: str) -> AsyncEntities[StackRecord, StackRecordItem, RecordBody]:
        """The records of a stack."""
        # `people` is a reserved key: no stack has it.
        if key == "people":
            raise ValueError("people is not a stack: use .people")
        return AsyncEntities(self._transport, key)

    def search(
        self,
        text: str,
        *,
        owners: Sequence[str] = ("people",),
        size: int | None = None,
        after: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncListing[SearchHit]:
        """Finds people, and records of the stacks that `owners` names, in one list, best match first."""

        async def read(cursor: str | None, is_first: bool) -> Any:
            body: dict[str, Any] = {"text": text, "owners": list(owners)}
            body |= {name: value for name, value in (("size", size), ("cursor", cursor)) if value is not None}
            return page_of(await self._transport.send("POST /v1/search", {}, {}, body, options), "next_cursor")

        return AsyncListing(read, after)

    async def undo_import(self, import_id: str, *, dry_run: bool = False, **options: Unpack[CallOptions]) -> Undone:
        """Takes back what an import changed and nothing has written since, and returns what it left. `import_id` is its request id."""
        total: Undone = await self.api.undo_import(import_id, {"dry_run": dry_run}, **options)
        while total["has_more"]:
            more: UndoBody = {"dry_run": True, "position": total["position"]} if dry_run else {"dry_run": False}
            part = await self.api.undo_import(import_id, more, **options)
            for count in ("deleted", "updated", "restored"):
                part[count] += total[count]
            part["left"] = total["left"] + part["left"]
            total = part
        return total

    async def is_ready(self, **options: Unpack[CallOptions]) -> bool:
        """Whether the service accepts requests. Raises KithConnectionError if it cannot be reached. Needs no token."""
        ready = await self._transport.send("GET /readyz", {}, {}, None, options)
        return ready["ready"]
