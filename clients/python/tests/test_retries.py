"""Retries: what is sent again after a failure, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from test_entities import unique

from kith_client import ClientCredentials, InvalidParameter, Kith, KithConnectionError, OperationFailed


def overloaded(**headers: str) -> httpx.Response:
    body = {"error": "operation_failed", "message": "The service is overloaded.", "details": []}
    return httpx.Response(503, json=body, headers=headers)


def test_a_create_whose_response_is_lost_is_done_once(flaky: Callable[..., Any], pauses: list[float]) -> None:
    kith, network = flaky("lost", "lost")
    name = unique("Once")
    person = kith.people.create({"first_name": name})
    assert len({request.headers["Idempotency-Key"] for request in network.requests}) == 1
    assert (len(network.requests), len(pauses)) == (3, 2)
    assert [found["id"] for found in kith.people.filter({"first_name": name})] == [person["id"]]


def test_a_patch_is_repeated_only_with_a_version_or_a_key(flaky: Callable[..., Any]) -> None:
    kith, network = flaky()
    name = unique("patched")
    kith.people.create({"external_id": name})
    network.answers = ["lost"]
    with pytest.raises(KithConnectionError):
        kith.people.patch(name, {"language": "en"})
    network.answers = ["lost"]
    assert kith.people.patch(name, {"language": "de"}, idempotency_key=unique("key")) is True
    # The first attempt was carried out, so the second does not meet its version.
    network.answers = ["lost"]
    with pytest.raises(InvalidParameter) as outdated:
        kith.people.patch(name, {"language": "it"}, if_match=3)
    assert outdated.value.answer_lost and outdated.value.attempts == 2


def test_a_delete_whose_response_is_lost_is_done(flaky: Callable[..., Any]) -> None:
    kith, network = flaky()
    name = unique("deleted")
    kith.people.create({"external_id": name})
    network.answers = ["lost"]
    assert kith.people.delete(name) is True


def test_a_read_waits_as_the_service_says(flaky: Callable[..., Any], pauses: list[float]) -> None:
    kith, _ = flaky(overloaded(**{"Retry-After": "7"}), "refused")
    kith.people.list(size=1).page()
    assert 7 <= pauses[0] <= 7.2 and 0 <= pauses[1] <= 0.4
    kith, network = flaky(overloaded(**{"Retry-After": "31"}))
    with pytest.raises(OperationFailed) as refused:
        kith.people.list(size=1).page()
    assert refused.value.is_temporary and len(network.requests) == 1


def test_a_write_that_may_be_done_is_repeated_only_under_a_key(flaky: Callable[..., Any]) -> None:
    unknown = httpx.Response(503, json={"error": "operation_failed", "outcome": "unknown"})
    kith, network = flaky(unknown)
    with pytest.raises(OperationFailed) as failed:
        kith.people.delete(unique("x"))
    assert failed.value.outcome == "unknown" and len(network.requests) == 1
    kith, network = flaky(unknown)
    assert kith.people.create({"first_name": "Keyed"})["version"] == 1


def test_an_address_where_nothing_listens_is_tried_three_times(pauses: list[float]) -> None:
    with Kith("http://127.0.0.1:9", "token") as kith, pytest.raises(KithConnectionError) as failed:
        kith.people.list().page()
    assert failed.value.attempts == 3 and not failed.value.was_sent


def test_a_response_that_is_not_of_kith_is_told(flaky: Callable[..., Any]) -> None:
    kith, _ = flaky(httpx.Response(301, headers={"Location": "https://elsewhere.example"}))
    with pytest.raises(KithConnectionError, match="Check the url"):
        kith.people.get("ada")


def test_a_client_fetches_its_tokens_and_a_new_one_after_401(kith: Kith, url: str, pauses: list[float]) -> None:
    made = kith.api.create_client({"name": "Shop", "scopes": ["people:read", "people:write", "exports:read"]})
    credentials = ClientCredentials(made["client_id"], made["client_secret"])
    assert made["client_secret"] not in repr(credentials)
    with Kith(url, credentials) as shop:
        shop.people.list(size=1).page()
        shop._transport._current = ("a.b.c", 1e12)  # noqa: SLF001
        assert shop.people.create({"first_name": "Renewed"})["version"] == 1
        shop._transport._current = ("a.b.c", 1e12)  # noqa: SLF001
        assert len(list(shop.people.export())) >= 1


def test_reads_show_the_writes_of_the_client(flaky: Callable[..., Any]) -> None:
    kith, network = flaky(read_your_writes=True)
    kith.people.create({"external_id": unique("own")})
    kith.people.list(size=1).page()
    assert network.requests[-1].headers["If-Sequence"] == str(kith.sequence)
