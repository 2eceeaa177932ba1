"""Imports, exports and the change log: streams that continue after a broken connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from test_entities import unique

from kith_client import ImportResult, Kith, KithConnectionError, KithError, KithImportError


def test_an_import_goes_in_portions_and_counts_all_lines(kith: Kith) -> None:
    name, seen = unique("in"), list[ImportResult]()
    lines: list[Any] = [{"external_id": f"{name}-{n}"} for n in range(250)]
    lines[149] = '{"external_id": "bad", "email": "none"}'
    result = kith.people.import_(lines, portion=100, progress=seen.append)
    assert (result.lines, result.created, result.failed) == (250, 249, 1)
    assert [(refusal["line"], refusal["error"]) for refusal in result.refused] == [(150, "invalid_parameter")]
    assert seen[-1] == result and [each.lines for each in seen] == sorted(each.lines for each in seen)
    # The service takes all portions as one import.
    undone = kith.undo_import(result.request_id)
    assert undone["deleted"] == 249 and undone["left"] == []


def test_an_import_continues_after_a_lost_response(flaky: Callable[..., Any]) -> None:
    kith, network = flaky(None, "lost", 20)
    name = unique("lost")
    result = kith.people.import_(({"external_id": f"{name}-{n}"} for n in range(30)), portion=10)
    assert (result.received, result.created + result.unchanged) == (30, 30)
    assert len(network.requests) == 5 and kith.people.count({"external_id": {"$starts_with": name}}) == 30


def test_an_import_does_not_repeat_lines_without_an_identifier(flaky: Callable[..., Any]) -> None:
    kith, _ = flaky("lost")
    with pytest.raises(KithConnectionError):
        kith.people.import_([{"first_name": unique("nameless")}])


def test_an_import_that_ended_continues_where_it_was(kith: Kith) -> None:
    name = unique("rest")
    lines: list[Any] = [{"external_id": f"{name}-{n}"} for n in range(20)] + [{"email": "none"}] * 10
    with pytest.raises(KithImportError) as ended:
        kith.people.import_(lines, portion=20, max_refused=3, request_id=name)
    assert not ended.value.is_temporary
    lines[20:] = [{"external_id": f"{name}-{n}"} for n in range(20, 30)]
    rest = kith.people.import_(lines, skip=20, request_id=name)
    assert (rest.lines, rest.created) == (30, 10)


def test_an_export_reads_compressed_lines_and_asks_for_plain_ones_over_loopback(url: str, token: str, orders: str) -> None:
    codings = list[tuple[str, str | None]]()

    class Compressing(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            asked, request.headers["Accept-Encoding"] = request.headers["Accept-Encoding"], "gzip"
            response = super().handle_request(request)
            codings.append((asked, response.headers.get("Content-Encoding")))
            return response

    with Kith(url, token, http=httpx.Client(transport=Compressing())) as kith, Kith(url, token) as plain:
        plain.stack(orders).import_({"external_id": unique("z")} for _ in range(50))
        assert list(kith.stack(orders).export()) == list(plain.stack(orders).export())
    assert codings == [("identity", "gzip")]


def test_an_export_continues_after_a_broken_connection(flaky: Callable[..., Any], orders: str) -> None:
    kith, network = flaky()
    kith.stack(orders).import_({"external_id": unique("o")} for _ in range(50))
    whole = [order["record_id"] for order in kith.stack(orders).export()]
    network.answers = [5_000, 5_000]
    assert [order["record_id"] for order in kith.stack(orders).export()] == whole
    network.answers = [5_000]
    with pytest.raises(KithConnectionError):
        list(kith.stack(orders).export(retries=0))


def test_a_follower_misses_no_change_and_sees_none_twice(flaky: Callable[..., Any]) -> None:
    kith, network = flaky()
    start = kith.people.create({"external_id": unique("first")})
    after = next(iter(kith.people.history(start["external_id"] or "")))["sequence"]
    names = [unique(f"followed-{n}") for n in range(6)]
    for name in names[:5]:
        kith.people.create({"external_id": name})
    retried = list[float]()
    network.answers = [1_500, "refused"]
    changes = kith.changes.follow(after=after, subject="person", on_retry=lambda _, pause: retried.append(pause))
    seen = list[Any]()
    for change in changes:
        seen.append(change["external_id"])
        if len(seen) == 5:
            kith.people.create({"external_id": names[5]})
        if len(seen) == 6:
            break
    assert seen == names and len(retried) == 2
    # The change in work does not count.
    assert changes.last == change["sequence"] - 1 and changes.log_id is not None
    with pytest.raises(KithError) as other:
        next(iter(kith.changes.follow(after=after, log_id="00000000-0000-4000-8000-000000000000")))
    assert other.value.status == 410


def test_the_change_log_is_listed_page_by_page(kith: Kith) -> None:
    name = unique("listed")
    for language in ("en", "de", "it"):
        kith.people.upsert({"external_id": name, "language": language})
    first = next(iter(kith.people.history(name, size=10, after="2")))["sequence"]
    changes = [change for change in kith.changes.list(after=first - 1, size=1, subject=["person"])]
    assert [change["version"] for change in changes if change["external_id"] == name] == [1, 2, 3]
