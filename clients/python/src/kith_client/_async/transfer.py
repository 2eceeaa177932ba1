"""Imports: lines that go in portions, each of which is repeated after a broken connection."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from ..encoding import encode
from ..errors import KithConnectionError, KithException, KithImportError
from ..progress import ImportRefusal, ImportResult, OnProgress, reporter
from ..retry import pause_before
from .io import Source, each, sleep
from .transport import NDJSON, AsyncTransport

MAX_PORTION_BYTES = 8_000_000
MAX_REFUSED = 10_000
COUNTS = ("received", "created", "updated", "unchanged", "failed")


class AsyncImport:
    """One import. Its portions have one request id, so that they are one import for the service, too."""

    def __init__(
        self,
        transport: AsyncTransport,
        path: str,
        options: Mapping[str, Any],
        match: Sequence[str],
        skip: int,
        progress: OnProgress | Literal[True] | None,
    ) -> None:
        self._transport, self._path, self._match, self._skip = transport, path, match, skip
        self._retries: int = options.get("retries", transport.retries)
        self.result = ImportResult(options.get("request_id") or secrets.token_hex(16), lines=skip)
        self._options = {**options, "request_id": self.result.request_id}
        self._report, self._end_report = reporter(progress)

    async def run(self, lines: Source[Any], portion: int) -> ImportResult:
        skipped, size = 0, 0
        waiting: list[bytes] = []
        is_repeatable = True
        try:
            async for line in each(lines):
                if skipped < self._skip:
                    skipped += 1
                    continue
                waiting.append(line.encode() if isinstance(line, str) else encode(line))
                size += len(waiting[-1])
                is_repeatable = is_repeatable and self._is_named(line)
                if len(waiting) >= portion or size >= MAX_PORTION_BYTES:
                    await self._send(waiting, is_repeatable)
                    waiting, size, is_repeatable = [], 0, True
            if waiting:
                await self._send(waiting, is_repeatable)
        finally:
            self._end_report()
        return self.result

    def _is_named(self, line: Any) -> bool:
        """Whether the line finds what it wrote before. Another one creates something new each time that it is sent."""
        if isinstance(line, str):
            try:
                line = json.loads(line)
            except ValueError:
                return True
        names = {"mobile": "mobile_number"}
        return any(line.get(names.get(kind, kind)) is not None for kind in (*self._match, *line.get("match", ())))

    async def _send(self, lines: Sequence[bytes], is_repeatable: bool) -> None:
        attempt = 0
        while True:
            attempt += 1
            try:
                self.result = await self._attempt(lines, self.result)
            except KithImportError:
                raise
            except KithException as error:
                error.attempts = attempt
                pause = pause_before(error, attempt, self._retries, is_repeatable)
                if pause is None:
                    raise
                await sleep(pause)
            else:
                return

    async def _attempt(self, lines: Sequence[bytes], before: ImportResult) -> ImportResult:
        """The result with the counts of a portion, which it reports while they grow."""
        content = b"\n".join(lines) + b"\n"
        result = before
        refused = list(before.refused)
        async for text in self._transport.lines(
            "POST", self._path, options=self._options, content=content, content_type=NDJSON
        ):
            answer: dict[str, Any] = json.loads(text)
            counts = answer.get("progress", answer)
            if "error" in answer and "line" not in answer:
                raise KithImportError(answer, before.lines + counts["received"])
            if "line" in answer and len(refused) < MAX_REFUSED:
                refused.append(cast("ImportRefusal", {**answer, "line": answer["line"] + before.lines}))
            if "received" in counts:
                done = {name: getattr(before, name) + counts[name] for name in COUNTS}
                result = replace(before, lines=before.lines + counts["received"], refused=refused, **done)
                if "progress" not in answer:
                    return self._finish(result, answer, before.lines + len(lines))
                self._report(result)
        raise KithConnectionError("The response ended before its last line.")

    def _finish(self, result: ImportResult, last: Mapping[str, Any], lines: int) -> ImportResult:
        sequence = last.get("sequence")
        if sequence is not None:
            self._transport.note_write(sequence)
        warnings = result.warnings + last.get("warnings", 0)
        result = replace(result, lines=lines, sequence=sequence or result.sequence, warnings=warnings)
        self._report(result)
        return result
