"""Lists, which are read page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

from ..answers import Page

Item = TypeVar("Item")


class AsyncListing(Generic[Item]):
    """A list. It sends no request until it is read, and each iteration reads again."""

    def __init__(self, read: Callable[[str | None, bool], Awaitable[Page[Item]]], after: str | None = None) -> None:
        self._read, self._after = read, after

    async def __aiter__(self) -> AsyncIterator[Item]:
        async for page in self.pages():
            for item in page.items:
                yield item

    async def pages(self) -> AsyncIterator[Page[Item]]:
        """Iterates the pages. Each is requested when the one before is consumed."""
        page = await self.page()
        yield page
        while page.next is not None:
            page = await self._read(page.next, False)
            yield page

    async def page(self) -> Page[Item]:
        """Reads only the first page, which says where the next one begins."""
        return await self._read(self._after, True)

    async def all(self) -> list[Item]:
        """Reads the items of all pages."""
        return [item async for item in self]
