"""What differs between the asynchronous and the synchronous client."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from time import sleep
from typing import TypeVar

Value = TypeVar("Value")

TokenSource = Callable[[], str]
Source = Iterable[Value]

__all__ = ["Lock", "Source", "TokenSource", "call", "each", "sleep"]


def call(get_token: TokenSource) -> str:
    return get_token()


def each(source: Source[Value]) -> Source[Value]:
    return source
