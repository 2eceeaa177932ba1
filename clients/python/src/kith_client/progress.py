"""How far an import has come, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from .models import Detail, ErrorCode


class ImportRefusal(TypedDict):
    """A refused line. `line` counts from 1, over all portions. The other lines are processed."""

    line: int
    error: ErrorCode
    message: str
    details: list[Detail]
    reason: NotRequired[Literal["erased"]]


@dataclass
class ImportResult:
    """The counts of an import. `progress` gets them while it runs."""

    request_id: str
    """Names the import: `undo_import` takes it back."""
    lines: int = 0
    """How many lines are done, with those that were skipped: the `skip` of an import that continues."""
    received: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    """A portion that was sent again after a broken connection counts here what the first attempt had stored."""
    failed: int = 0
    """Refused lines."""
    warnings: int = 0
    """Stored lines whose `mobile_number` is no phone number."""
    sequence: int | None = None
    """The number of a change: the log up to it includes all lines that were not refused."""
    refused: list[ImportRefusal] = field(default_factory=list["ImportRefusal"])
    """The first 10,000 refusals."""


OnProgress = Callable[[ImportResult], None]


def reporter(progress: OnProgress | Literal[True] | None) -> tuple[OnProgress, Callable[[], None]]:
    """What reports the progress, and what ends the report. True is a bar of tqdm, and nothing if that is not installed."""
    if progress is None:
        return _ignore, _end
    if progress is not True:
        return progress, _end
    try:
        from tqdm import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return _ignore, _end
    bar: Any = tqdm(unit=" lines")

    def show(result: ImportResult) -> None:
        bar.update(result.lines - bar.n)
        bar.set_postfix(created=result.created, updated=result.updated, failed=result.failed)

    return show, bar.close


def _ignore(result: ImportResult) -> None:
    pass


def _end() -> None:
    pass
