"""People: who they are and what they have a right to, beside what they share with records."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..addresses import Id, below
from ..errors import KithConnectionError
from .entities import AsyncEntities
from .listing import AsyncListing

if TYPE_CHECKING:
    from datetime import datetime

    from typing_extensions import Unpack

    from ..models import (
        ConsentReceipt,
        ContactDecision,
        ContactDecisions,
        DossierLine,
        DuplicateGroup,
        Erased,
        ErasureBody,
        MergeResult,
        Person,
        PersonBody,
        PersonItem,
        RecordedAnswer,
        UnmergeResult,
    )
    from ..options import CallOptions, WriteOptions

    Channel = Literal["email", "sms"]


class AsyncPeople(AsyncEntities["Person", "PersonItem", "PersonBody"]):
    """The people of an organization."""

    async def lookup(
        self,
        *,
        email: str | None = None,
        mobile_number: str | None = None,
        mobile_prefix: str | None = None,
        external_id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> list[Person]:
        """Finds the people who have an email, a phone number or an external identifier, at most 100."""
        key = {"email": email, "mobile_number": mobile_number, "mobile_prefix": mobile_prefix, "external_id": external_id}
        body = {name: value for name, value in key.items() if value is not None}
        found = await self._send("POST", "/lookup", None, {}, body, options)
        return found["items"]

    def duplicates(
        self,
        *,
        by: Sequence[str] | None = None,
        size: int | None = None,
        after: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncListing[DuplicateGroup]:
        """Lists the groups of people who share an email, a phone number, or name and date of birth."""
        return self._searching("/duplicates", {"by": by}, size, after, options)

    async def merge(
        self, address: str, *, other: str, dry_run: bool = False, **options: Unpack[WriteOptions]
    ) -> MergeResult:
        """Merges another person into a person, who survives. `dry_run` returns what would change, and changes nothing."""
        return await self._write("POST", "/merge", address, _from(other), dry_run, options)

    async def unmerge(
        self, address: str, *, other: str, dry_run: bool = False, **options: Unpack[WriteOptions]
    ) -> UnmergeResult:
        """Undoes a merge: the other person returns, and what was written since stays with the survivor."""
        return await self._write("POST", "/unmerge", address, _from(other), dry_run, options)

    async def dossier(self, address: str, **options: Unpack[CallOptions]) -> AsyncIterator[DossierLine]:
        """Reads everything that is held about a person, line by line and from one moment."""
        is_complete = False
        async for line in self._transport.lines("GET", self._path("/dossier", address), options=options):
            value: Any = json.loads(line)
            is_complete = value["type"] == "end"
            yield value
        if not is_complete:
            raise KithConnectionError("The dossier is incomplete: its last line is missing.")

    async def erase(self, address: str, body: ErasureBody, **options: Unpack[WriteOptions]) -> Erased:
        """Erases a person and returns the certificate. It cannot be undone, so `"dry_run": True` in the body first tells what would go."""
        return await self._send("POST", "/erase", address, {}, body, options)

    def consent_history(
        self,
        address: str,
        *,
        consent_type_id: int | None = None,
        channel: Channel | None = None,
        size: int | None = None,
        after: str | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncListing[RecordedAnswer]:
        """Lists the consent answers of a person, newest first, with their evidence."""
        endpoint, params = below("people", "GET", "/consents/history", address)
        query = {"consent_type_id": consent_type_id, "channel": channel}
        by = {"by": "before_version", "limit": "limit", "position": "version"}
        return self._transport.listing(endpoint, params, query, options, size, after, **by)

    async def contactable(
        self,
        address: str,
        *,
        consent_type_id: int,
        channel: Channel,
        links: bool = False,
        at: str | datetime | None = None,
        **options: Unpack[CallOptions],
    ) -> ContactDecision:
        """Tells whether a person may be written to, and why. `links` makes the links that a message carries."""
        body: dict[str, Any] = {"consent_type_id": consent_type_id, "channel": channel}
        body |= ({"links": True} if links else {}) | ({"at": at} if at is not None else {})
        return await self._send("POST", "/contactable", address, {}, body, options)

    async def contactable_many(
        self,
        external_ids: Sequence[str],
        *,
        consent_type_id: int,
        channel: Channel,
        links: bool = False,
        **options: Unpack[CallOptions],
    ) -> ContactDecisions:
        """Tells which of up to 1,000 people may be written to, in their order and from one moment."""
        body = {"external_ids": list(external_ids), "consent_type_id": consent_type_id, "channel": channel}
        return await self._send("POST", "/contactable", None, {}, body | ({"links": True} if links else {}), options)

    async def receipt(
        self,
        address: str,
        *,
        consent_type_id: int,
        channel: Channel,
        sequence: int | None = None,
        **options: Unpack[CallOptions],
    ) -> ConsentReceipt:
        """Reads the receipt of the current answer, or of that with the change number `sequence`. `verify_receipt` verifies it offline."""
        path = f"/consents/{consent_type_id}/{channel}/receipt"
        return await self._send("GET", path, address, {"sequence": sequence}, None, options)


def _from(other: str) -> dict[str, str]:
    return {"from_id" if isinstance(other, Id) else "from": other}
