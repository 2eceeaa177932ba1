"""People, and the records of a stack: what both have."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

from ..addresses import Id, below
from ..answers import page_of
from ..encoding import encode, path_of, query_of
from ..errors import KithException
from ..retry import pause_before_reconnect
from .io import Source, sleep
from .listing import AsyncListing
from .transfer import AsyncImport
from .transport import AsyncTransport

if TYPE_CHECKING:
    from datetime import datetime

    from typing_extensions import Unpack

    from ..models import (
        Aggregate,
        AggregateBody,
        AggregateLine,
        BatchAnswer,
        BatchDryRun,
        Change,
        EntityDryRun,
        ListSort,
        PersonItem,
        StackRecordItem,
    )
    from ..options import CallOptions, WriteOptions
    from ..progress import ImportResult, OnProgress

Entity = TypeVar("Entity")
Item = TypeVar("Item")
Body = TypeVar("Body")


class AsyncEntities(Generic[Entity, Item, Body]):
    """The methods of people and of records. A str addresses an entity by its external identifier, an `Id` by its internal one."""

    def __init__(self, transport: AsyncTransport, owner: str) -> None:
        self._transport, self._owner = transport, owner

    @overload
    async def create(self, body: Body, *, dry_run: Literal[False] = False, **options: Unpack[WriteOptions]) -> Entity: ...
    @overload
    async def create(self, body: Body, *, dry_run: Literal[True], **options: Unpack[WriteOptions]) -> EntityDryRun: ...
    async def create(self, body: Body, *, dry_run: bool = False, **options: Unpack[WriteOptions]) -> Any:
        """Creates an entity, or completes the placeholder with this external identifier. Raises DuplicateEntry if the entity exists."""
        return await self._write("POST", "", None, body, dry_run, options)

    @overload
    async def upsert(self, body: Body, *, match: Sequence[str] | None = None, dry_run: Literal[False] = False, **options: Unpack[WriteOptions]) -> Entity: ...  # fmt: skip
    @overload
    async def upsert(self, body: Body, *, match: Sequence[str] | None = None, dry_run: Literal[True], **options: Unpack[WriteOptions]) -> EntityDryRun: ...  # fmt: skip
    async def upsert(self, body: Body, *, match: Sequence[str] | None = None, dry_run: bool = False, **options: Unpack[WriteOptions]) -> Any:  # fmt: skip
        """Creates the entity if it does not exist, else changes it like `patch`. A token without the read scope receives only the
        identifiers. With `match`, of people only, a person is also recognized by `email` or `mobile`."""
        matched = body if match is None else {**cast("dict[str, Any]", body), "match": list(match)}
        return await self._write("POST", "/upsert", None, matched, dry_run, options)

    @overload
    async def replace(self, address: str, body: Body, *, representation: Literal[False] = False, dry_run: Literal[False] = False, **options: Unpack[WriteOptions]) -> Literal[True]: ...  # fmt: skip
    @overload
    async def replace(self, address: str, body: Body, *, representation: Literal[True], dry_run: Literal[False] = False, **options: Unpack[WriteOptions]) -> Entity: ...  # fmt: skip
    @overload
    async def replace(self, address: str, body: Body, *, representation: bool = False, dry_run: Literal[True], **options: Unpack[WriteOptions]) -> EntityDryRun: ...  # fmt: skip
    async def replace(self, address: str, body: Body, *, representation: bool = False, dry_run: bool = False, **options: Unpack[WriteOptions]) -> Any:  # fmt: skip
        """Replaces an entity. Fields that the body omits are cleared, except the external identifier and the consent answers."""
        return await self._write("PUT", "", address, body, dry_run, {**options, "representation": representation})

    @overload
    async def patch(self, address: str, body: Body, *, representation: Literal[False] = False, dry_run: Literal[False] = False, **options: Unpack[WriteOptions]) -> Literal[True]: ...  # fmt: skip
    @overload
    async def patch(self, address: str, body: Body, *, representation: Literal[True], dry_run: Literal[False] = False, **options: Unpack[WriteOptions]) -> Entity: ...  # fmt: skip
    @overload
    async def patch(self, address: str, body: Body, *, representation: bool = False, dry_run: Literal[True], **options: Unpack[WriteOptions]) -> EntityDryRun: ...  # fmt: skip
    async def patch(self, address: str, body: Body, *, representation: bool = False, dry_run: bool = False, **options: Unpack[WriteOptions]) -> Any:  # fmt: skip
        """Changes the fields that the body names: a value sets, None clears, an absent field stays. `representation=True` returns the
        entity. With a version in `if_match`, the write is repeated after a lost response."""
        return await self._write("PATCH", "", address, body, dry_run, {**options, "representation": representation})

    @overload
    async def delete(self, address: str, *, dry_run: Literal[False] = False, **options: Unpack[WriteOptions]) -> Literal[True]: ...  # fmt: skip
    @overload
    async def delete(self, address: str, *, dry_run: Literal[True], **options: Unpack[WriteOptions]) -> EntityDryRun: ...  # fmt: skip
    async def delete(self, address: str, *, dry_run: bool = False, **options: Unpack[WriteOptions]) -> Any:
        """Deletes an entity. Also returns True if the response to an attempt was lost and the retry finds no entity."""
        return await self._write("DELETE", "", address, None, dry_run, options)

    @overload
    async def restore(self, address: str, *, dry_run: Literal[False] = False, **options: Unpack[WriteOptions]) -> Entity: ...  # fmt: skip
    @overload
    async def restore(self, address: str, *, dry_run: Literal[True], **options: Unpack[WriteOptions]) -> EntityDryRun: ...  # fmt: skip
    async def restore(self, address: str, *, dry_run: bool = False, **options: Unpack[WriteOptions]) -> Any:
        """Restores a deleted entity by its internal identifier, with its values, consent answers and links."""
        return await self._write("POST", "/restore", address, None, dry_run, options)

    @overload
    async def batch(self, operations: Sequence[Mapping[str, Any]], *, atomic: bool = False, match: Sequence[str] | None = None, dry_run: Literal[False] = False, **options: Unpack[WriteOptions]) -> BatchAnswer: ...  # fmt: skip
    @overload
    async def batch(self, operations: Sequence[Mapping[str, Any]], *, atomic: bool = False, match: Sequence[str] | None = None, dry_run: Literal[True], **options: Unpack[WriteOptions]) -> BatchDryRun: ...  # fmt: skip
    async def batch(self, operations: Sequence[Mapping[str, Any]], *, atomic: bool = False, match: Sequence[str] | None = None, dry_run: bool = False, **options: Unpack[WriteOptions]) -> Any:  # fmt: skip
        """Sends up to 1,000 writes in one request. Each succeeds or fails on its own. With `atomic`, all succeed or none does, and the
        first failure raises. `if_match` of an operation is a version or `*`."""
        body: dict[str, Any] = {"operations": [_with_tag(operation) for operation in operations], "atomic": atomic}
        if match is not None:
            body["match"] = list(match)
        return await self._write("POST", "/batch", None, body, dry_run, options)

    async def get(
        self,
        address: str,
        *,
        at: str | datetime | None = None,
        version: int | None = None,
        labels: bool | None = None,
        links: Literal["id"] | None = None,
        **options: Unpack[CallOptions],
    ) -> Entity:
        """Reads an entity. Its `version` can be passed as `if_match`. With `at` or `version`, the entity is read as it was."""
        query = {"at": at, "version": version, "labels": labels, "links": links}
        return await self._send("GET", "", address, query, None, options)

    async def get_many(
        self,
        addresses: Sequence[str],
        *,
        fields: Sequence[str] | None = None,
        include: Sequence[str] | None = None,
        labels: bool | None = None,
        links: Literal["id"] | None = None,
        **options: Unpack[CallOptions],
    ) -> Sequence[Item | None]:
        """Reads up to 1,000 entities, by external identifiers or by `Id`s, in one request. The items have the order of the addresses, with
        None where there is no entity."""
        named = "ids" if addresses and isinstance(addresses[0], Id) else "external_ids"
        body = {named: addresses, "fields": fields, "include": include, "labels": labels, "links": links}
        found = await self._send("POST", "/get", None, {}, _present(body), options)
        return found["items"]

    def list(
        self,
        *,
        order: Literal["asc", "desc"] | None = None,
        size: int | None = None,
        after: str | None = None,
        fields: Sequence[str] | None = None,
        include: Sequence[str] | None = None,
        labels: bool | None = None,
        links: Literal["id"] | None = None,
        sort: ListSort | None = None,
        count: bool = False,
        **options: Unpack[CallOptions],
    ) -> AsyncListing[Item]:
        """Lists all entities, newest first by default. With `fields`, an item has only these members."""
        selection = {"fields": fields, "include": include, "labels": labels, "links": links, "sort": sort}
        return self._listing("/list", None, {"sorting_type": order}, selection, count, size, after, options)

    def filter(
        self,
        filter: Mapping[str, Any],
        *,
        order: Literal["asc", "desc"] | None = None,
        size: int | None = None,
        after: str | None = None,
        fields: Sequence[str] | None = None,
        include: Sequence[str] | None = None,
        labels: bool | None = None,
        links: Literal["id"] | None = None,
        sort: ListSort | None = None,
        count: bool = False,
        **options: Unpack[CallOptions],
    ) -> AsyncListing[Item]:
        """Lists the entities that match a filter. A page has `warnings` if a key is probably misspelt, and `strict` refuses it."""
        selection = {"fields": fields, "include": include, "labels": labels, "links": links, "sort": sort}
        body = {"filter": filter, "sort_direction": order}
        return self._listing("/filter", None, body, selection, count, size, after, options)

    def related(
        self,
        address: str,
        *,
        target: str,
        attribute_key: str | None = None,
        direction: Literal["outgoing", "incoming", "both"] | None = None,
        order: Literal["asc", "desc"] | None = None,
        size: int | None = None,
        after: str | None = None,
        fields: Sequence[str] | None = None,
        include: Sequence[str] | None = None,
        labels: bool | None = None,
        links: Literal["id"] | None = None,
        sort: ListSort | None = None,
        count: bool = False,
        **options: Unpack[CallOptions],
    ) -> AsyncListing[PersonItem] | AsyncListing[StackRecordItem]:
        """Lists the entities of one owner, `people` or the key of a stack, that are linked to an entity."""
        selection = {"fields": fields, "include": include, "labels": labels, "links": links, "sort": sort}
        body = {"target": target, "attribute_key": attribute_key, "direction": direction, "sorting_type": order}
        return self._listing("/related", address, body, selection, count, size, after, options)

    def search(
        self,
        text: str,
        *,
        size: int | None = None,
        after: str | None = None,
        labels: bool | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncListing[Entity]:
        """Finds entities by their words, best match first. A word may be the beginning of one, or misspelt."""
        return self._searching("/search", {"text": text, "labels": labels}, size, after, options)

    async def count(self, filter: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]) -> int:
        """Counts all entities, or those that match a filter, exactly."""
        body = {"filter": filter, "fields": ["external_id"], "count": True, "cursor_configuration": {"size": 1}}
        path = "/list" if filter is None else "/filter"
        page = await self._send("POST", path, None, {}, _present(body), options)
        return page["count"]

    async def aggregate(self, query: AggregateBody, **options: Unpack[CallOptions]) -> Aggregate:
        """Counts and measures groups of entities. Without `measures`, it counts; without `group_by`, there is one group."""
        return await self._send("POST", "/aggregate", None, {}, query, options)

    async def groups(self, query: AggregateBody, **options: Unpack[CallOptions]) -> AsyncIterator[AggregateLine]:
        """Streams any number of groups. The last line has no `by`: it is what was counted of all groups."""
        path = self._path("/aggregate")
        async for line in self._transport.lines("POST", path, options=options, content=encode(query)):
            yield json.loads(line)

    def history(
        self, address: str, *, size: int | None = None, after: str | None = None, **options: Unpack[CallOptions]
    ) -> AsyncListing[Change]:
        """Lists the changes of an entity, newest first. Takes the scope `changes:read`."""
        endpoint, params = below(self._owner, "GET", "/history", address)
        by = {"by": "before_version", "limit": "limit", "position": "version"}
        return self._transport.listing(endpoint, params, {}, options, size, after, **by)

    async def import_(
        self,
        lines: Source[Body | str],
        *,
        dry_run: bool = False,
        create_only: bool = False,
        match: Sequence[str] | None = None,
        consents: Literal["now"] | None = None,
        lists: Literal["replace", "add"] | None = None,
        phone_country: str | None = None,
        max_refused: int | None = None,
        skip: int = 0,
        portion: int = 5_000,
        progress: OnProgress | Literal[True] | None = None,
        **options: Unpack[WriteOptions],
    ) -> ImportResult:
        """Upserts any number of entities. A str is sent as a line of JSON unchanged.

        The lines go in portions of `portion`, each in a request of its own that is repeated after a broken connection, and all under one
        `request_id`, by which the import can be undone. An import that ended continues with the same `request_id` and with `skip`, the
        number of lines that were done: that of the last `progress`, or of the KithImportError. Lines without an identifier are always
        new, so a portion with one is not repeated.

        `progress` is called after each portion and every second. True shows a bar of tqdm, if that is installed."""
        query = {
            "dry_run": dry_run or None,
            "create_only": create_only or None,
            "max_refused": max_refused,
            "match": ",".join(match) if match else None,
            "consents": consents,
            "lists": lists,
            "phone_country": phone_country,
        }
        path = self._path("/import") + query_of(query)
        work = AsyncImport(self._transport, path, options, match or ("external_id",), skip, progress)
        return await work.run(lines, portion)

    async def export(
        self,
        *,
        after: str | None = None,
        links: Literal["id"] | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncIterator[Entity]:
        """Streams a snapshot of all entities in the order of the internal identifier. After a broken connection it continues after the last
        entity, and the rest then shows a later moment; `retries=0` raises instead."""
        retries, failures = options.get("retries", self._transport.retries), 0
        key = "id" if self._owner == "people" else "record_id"
        while True:
            path = self._path("/export") + query_of({"after_id": after, "links": links})
            try:
                async for line in self._transport.lines("POST", path, options=options):
                    entity = json.loads(line)
                    yield entity
                    after, failures = entity[key], 0
                return
            except KithException as error:
                failures += 1
                pause = pause_before_reconnect(error, failures)
                if pause is None or failures > retries:
                    raise
                await sleep(pause)

    async def _write(
        self, method: str, path: str, address: str | None, body: Any, dry_run: bool, options: Mapping[str, Any]
    ) -> Any:
        return await self._send(method, path, address, {"dry_run": dry_run or None}, body, options)

    async def _send(
        self,
        method: str,
        path: str,
        address: str | None,
        query: Mapping[str, object],
        body: Any,
        options: Mapping[str, Any],
    ) -> Any:
        endpoint, params = below(self._owner, method, path, address)
        return await self._transport.send(endpoint, params, query, body, options)

    def _path(self, path: str, address: str | None = None) -> str:
        endpoint, params = below(self._owner, "", path, address)
        return path_of(endpoint.strip(), params)

    def _listing(
        self,
        path: str,
        address: str | None,
        body: Mapping[str, Any],
        selection: Mapping[str, Any],
        count: bool,
        size: int | None,
        after: str | None,
        options: Mapping[str, Any],
    ) -> AsyncListing[Any]:
        # A page with a sort or fields ends with a cursor, and any other page at its last entity.
        has_cursor = bool(selection["fields"] or selection["sort"])
        position = "next_cursor" if has_cursor else "id" if body.get("target", self._owner) == "people" else "record_id"

        async def read(following: str | None, is_first: bool) -> Any:
            cursor = _present({"size": size, "cursor" if has_cursor else "after_id": following})
            sent = {**body, **selection, "count": (count and is_first) or None, "cursor_configuration": cursor}
            return page_of(await self._send("POST", path, address, {}, _present(sent), options), position)

        return AsyncListing(read, after)

    def _searching(
        self, path: str, body: Mapping[str, Any], size: int | None, after: str | None, options: Mapping[str, Any]
    ) -> AsyncListing[Any]:
        async def read(cursor: str | None, is_first: bool) -> Any:
            sent = _present({**body, "size": size, "cursor": cursor})
            return page_of(await self._send("POST", path, None, {}, sent, options), "next_cursor")

        return AsyncListing(read, after)


def _with_tag(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    version = operation.get("if_match")
    return {**operation, "if_match": f'"{version}"'} if isinstance(version, int) else operation


def _present(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
