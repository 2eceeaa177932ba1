"""What differs between the asynchronous and the synchronous client."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar

from anyio import Lock, sleep

Value = TypeVar("Value")

TokenSource = Callable[[], "str | Awaitable[str]"]
Source = AsyncIterable[Value] | Iterable[Value]

__all__ = ["Lock", "Source", "TokenSource", "call", "each", "sleep"]


async def call(get_token: TokenSource) -> str:
    token = get_token()
    return token if isinstance(token, str) else await token


async def each(source: Source[Value]) -> AsyncIterator[Value]:
    if isinstance(source, AsyncIterable):
        async for value in source:
            yield value
    else:
        for value in source:
            yield value
