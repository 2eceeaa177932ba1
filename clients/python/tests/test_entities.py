"""People and records: what a program reads and writes."""

from __future__ import annotations

import uuid
from datetime import datetime, timezone

import pytest

from kith_client import (
    DuplicateEntry,
    Forbidden,
    Id,
    InvalidParameter,
    Kith,
    NotFound,
    Unauthorized,
    id_of,
)


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def test_a_person_is_created_read_changed_and_deleted(kith: Kith) -> None:
    name = unique("ada")
    created = kith.people.create({"external_id": name, "first_name": "Ada"})
    assert kith.people.patch(name, {"last_name": "Lovelace"}, if_match=created["version"]) is True
    patched = kith.people.patch(name, {"language": "en"}, representation=True)
    assert (patched["first_name"], patched["last_name"], patched["version"]) == ("Ada", "Lovelace", 3)
    assert kith.people.get(id_of(created))["external_id"] == name
    assert [each and each["id"] for each in kith.people.get_many([name, unique("nobody")])] == [created["id"], None]
    assert [each and each["version"] for each in kith.people.get_many([id_of(created)], fields=["version"])] == [3]
    assert kith.people.get(name, version=1)["last_name"] is None
    assert kith.people.get(name, at=datetime.now(timezone.utc))["version"] == 3
    assert kith.people.delete(name) is True
    assert kith.people.restore(id_of(created))["version"] == 5
    operations = [change["operation"] for change in kith.people.history(name, size=2)]
    assert operations == ["restore", "delete", "update", "update", "create"]


@pytest.mark.parametrize("name", ["a/b", "ü ?#%", "..x", "a'(b)", "%2F"])
def test_any_identifier_reaches_its_person(kith: Kith, name: str) -> None:
    name = name + unique("")
    kith.people.create({"external_id": name})
    assert kith.people.get(name)["external_id"] == name


def test_a_list_iterates_all_pages(kith: Kith, orders: str) -> None:
    buyer = unique("buyer")
    kith.stack(orders).batch(
        [{"op": "create", "external_id": f"{buyer}-{n}", "body": {"attribute_values": {"total": n, "buyer": buyer}}} for n in range(7)]
    )
    bought = {"attribute_values.buyer": buyer}
    assert len(kith.stack(orders).filter(bought, size=3).all()) == 7
    sort = {"field": "attribute_values.total", "direction": "desc"}
    dearest = kith.stack(orders).filter(bought, size=3, fields=["attribute_values.total"], sort=sort)
    assert [order["attribute_values"]["total"] for order in dearest] == [6, 5, 4, 3, 2, 1, 0]
    first = kith.stack(orders).filter(bought, size=2, count=True).page()
    assert (first.count, first.has_more, len(first.items)) == (7, True, 2)
    assert len(list(kith.stack(orders).filter(bought, size=2, after=first.next).pages())) == 3
    assert kith.stack(orders).count(bought) == 7
    related = list(kith.people.related(buyer, target=orders, direction="incoming", size=4, include=["buyer"]))
    assert {order["included"]["buyer"]["external_id"] for order in related} == {buyer}
    groups = list(kith.stack(orders).groups({"filter": bought, "measures": [{"op": "sum", "field": "attribute_values.total"}]}))
    assert groups[0]["measures"] == [21]
    assert kith.people.filter({"attribute_values.ctiy": 1}).page().warnings[0]["path"] == "/filter/attribute_values.ctiy"


def test_an_error_has_the_class_of_its_code(kith: Kith, url: str) -> None:
    name = unique("eve")
    kith.people.create({"external_id": name})
    with pytest.raises(DuplicateEntry):
        kith.people.create({"external_id": name})
    with pytest.raises(InvalidParameter, match="at /email: ") as invalid:
        kith.people.patch(name, {"email": "none"})
    assert invalid.value.details[0]["path"] == "/email" and not invalid.value.is_temporary
    with pytest.raises(InvalidParameter) as outdated:
        kith.people.patch(name, {"language": "en"}, if_match=9)
    assert outdated.value.status == 412
    with pytest.raises(NotFound) as missing:
        kith.people.patch(unique("nobody"), {"language": "en"})
    # The service documents 500 for it, so that a program looks at the code.
    assert (missing.value.status, missing.value.missing, missing.value.is_temporary) == (500, "entity", False)
    with pytest.raises(NotFound) as stack:
        kith.stack("none").get("x")
    assert stack.value.missing == "stack"
    reader = kith.api.create_token({"scopes": ["people:read"], "expires_in": 60})["token"]
    with Kith(url, reader) as other, pytest.raises(Forbidden):
        other.people.delete(name)
    with Kith(url, "nonsense") as other, pytest.raises(Unauthorized):
        other.people.get(name)


def test_a_dry_run_stores_nothing(kith: Kith) -> None:
    name = unique("dry")
    would = kith.people.create({"external_id": name, "first_name": "Dry"}, dry_run=True)
    assert would["result"] == "created" and would["after"] is not None
    assert kith.people.batch([{"op": "upsert", "external_id": name, "body": {}}], dry_run=True)["failed"] == 0
    with pytest.raises(NotFound):
        kith.people.get(name)
    stack = kith.api.create_stack({"key": "dry", "kind": "item"}, dry_run=True)
    assert stack["dry_run"] is True


def test_a_batch_tells_of_each_operation(kith: Kith) -> None:
    name = unique("batch")
    done = kith.people.batch(
        [
            {"op": "create", "external_id": name, "body": {"first_name": "B"}},
            {"op": "patch", "external_id": name, "body": {"language": "en"}, "if_match": 9},
            {"op": "delete", "external_id": unique("nobody")},
        ]
    )
    assert [item["status"] for item in done["items"]] == [201, 412, 404] and done["failed"] == 2
    with pytest.raises(NotFound):
        kith.people.batch([{"op": "delete", "external_id": unique("nobody")}], atomic=True)


def test_people_are_recognized_merged_and_erased(kith: Kith) -> None:
    name, email = unique("rosa"), f"{unique('rosa')}@example.com"
    rosa = kith.people.upsert({"external_id": name, "email": email}, match=["external_id", "email"])
    again = kith.people.upsert({"external_id": f"{name}-2", "email": email}, match=["external_id", "email"])
    assert id_of(again) == id_of(rosa) and [person["id"] for person in kith.people.lookup(email=email)] == [rosa["id"]]
    other = kith.people.create({"external_id": f"{name}-3", "language": "it"})
    assert kith.people.merge(name, other=id_of(other))["person"]["language"] == "it"
    assert kith.people.unmerge(name, other=Id(other["id"]))["unmerged"]["language"] == "it"
    assert [line["type"] for line in kith.people.dossier(name)][-1] == "end"
    assert kith.people.erase(name, {"reason": "Request"})["erasure"]["removed"]["entities"] == 1


def test_a_misspelt_option_is_refused_before_anything_is_sent(kith: Kith) -> None:
    with pytest.raises(TypeError, match="ifmatch"):
        kith.people.patch("ada", {}, ifmatch=1)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="time zone"):
        kith.people.get("ada", at=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="JSON|range"):
        kith.people.create({"attribute_values": {"x": float("nan")}})


def test_every_list_of_the_api_can_be_iterated(kith: Kith) -> None:
    for n in range(3):
        kith.api.create_client({"name": f"Client {n}", "scopes": ["people:read"]})
        kith.api.create_token({"scopes": ["people:read"], "expires_in": 60, "name": f"token {n}"})
        kith.people.import_([{"external_id": unique("import")}])
        hold = unique("held")
        kith.people.create({"external_id": hold})
        kith.api.hold_person(hold, {"reason": "Case"})
        erased = unique("erased")
        kith.people.create({"external_id": erased})
        kith.people.erase(erased, {"reason": "Request"})
        kith.api.add_consent_text(1, {"language": "en", "text": f"Text {n}"})
    lists = {
        "clients": kith.api.list_clients(size=1),
        "tokens": kith.api.list_tokens(size=1),
        "imports": kith.api.list_imports(size=1),
        "holds": kith.api.list_holds(size=1),
        "erasures": kith.api.list_erasures(size=1),
        "texts": kith.api.list_consent_texts(1, size=1),
        "accesses": kith.api.list_accesses(size=1),
    }
    for name, listing in lists.items():
        items = [repr(item) for item in listing]
        assert len(items) >= 3 or name == "accesses", name
        assert len(items) == len(set(items)), name
