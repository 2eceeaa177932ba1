"""The asynchronous client does what the synchronous one does, whose modules are generated from it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from test_entities import unique

from kith_client import AsyncKith, NotFound


def test_concurrent_calls_share_the_client(url: str, token: str) -> None:
    async def run() -> None:
        async def get_token() -> str:
            return token

        async with AsyncKith(url, get_token) as kith:
            names = [unique("async") for _ in range(20)]
            await asyncio.gather(*(kith.people.create({"external_id": name}) for name in names))
            assert await kith.people.count({"external_id": {"$in": names}}) == 20
            found = [person["external_id"] async for person in kith.people.filter({"external_id": {"$in": names}}, size=7)]
            assert sorted(map(str, found)) == sorted(names)
            with pytest.raises(NotFound):
                await kith.people.get(unique("nobody"))

    asyncio.run(run())


def test_lines_come_from_an_asynchronous_source(url: str, token: str) -> None:
    async def run() -> None:
        async with AsyncKith(url, token) as kith:
            name = unique("source")

            async def lines() -> AsyncIterator[Any]:
                for n in range(25):
                    yield {"external_id": f"{name}-{n}"}

            result = await kith.people.import_(lines(), portion=10)
            assert result.created == 25
            exported = [person async for person in kith.people.export()]
            assert sum(str(person["external_id"]).startswith(name) for person in exported) == 25
            async for change in kith.changes.follow(after=(result.sequence or 0) - 1):
                assert change["sequence"] == result.sequence
                break

    asyncio.run(run())
