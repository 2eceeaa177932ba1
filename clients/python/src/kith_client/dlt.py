"""A source for dlt (https://dlthub.com): people and records in a warehouse, kept up to date by the change log.

    pipeline = dlt.pipeline("kith", destination="duckdb", dataset_name="kith")
    pipeline.run(kith_source(url, token))

Each run reads the changes since the one before, and then what changed as it is now. dlt stores the position with the rows, so a run that
was killed is repeated, and a row that comes twice replaces itself."""

# The types of dlt are incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import dlt

from ._sync.client import Kith

if TYPE_CHECKING:
    from .credentials import ClientCredentials

TYPES = {"text": "text", "number": "double", "boolean": "bool", "date": "date", "datetime": "timestamp"}
PROFILE = {
    **{f"{name}_name": {"data_type": "text"} for name in ("first", "last")},
    **{name: {"data_type": "text"} for name in ("email", "mobile_prefix", "mobile_number", "language")},
    **{f"{name}_consent": {"data_type": "bool"} for name in ("email", "sms", "push_notification")},
    "date_of_birth": {"data_type": "date"},
    "consents": {"data_type": "json"},
}
DELETED: dict[str, Any] = {"_deleted": {"data_type": "bool", "hard_delete": True}}
PAGE = 500
"""The changes of a page, and so the most identifiers of a filter."""


@dlt.source(name="kith", max_table_nesting=2)
def kith_source(url: str, token: str | ClientCredentials) -> Any:
    """The tables `people`, one for each stack, by its key, and `merges`: whom a merged person leads to.

    An attribute is the column `attribute_values__<key>`. A relationship has the internal identifiers of its targets, as text or as a JSON
    array: those of when the row was last read, so join with the target to leave out those that were deleted since. The token needs the
    scopes `changes:read`, `people:read`, `records:read` and `schema:read`."""
    kith = Kith(url, token, retries=5)
    columns = _columns(kith)

    def marked(table: str, rows: Any) -> Any:
        hints = dlt.mark.make_hints(
            table_name=table,
            columns=columns.get(table, DELETED),
            primary_key="id",
            write_disposition={"disposition": "merge", "strategy": "delete-insert"},
        )
        return dlt.mark.with_hints(rows, hints, create_table_variant=True)

    @dlt.resource(name="entities")
    def entities() -> Iterator[Any]:
        # A table exists from the first run, also while it is empty.
        for table in columns:
            yield marked(table, dlt.mark.materialize_table_schema())
        state = dlt.current.resource_state()
        position = {name: state[name] for name in ("after", "log_id") if name in state}
        for page in kith.changes.list(**position, subject=["person", "record"], links="id", size=PAGE).pages():
            for table, rows in _rows(kith, page.items).items():
                yield marked(table, rows)
            state["after"], state["log_id"] = page.sequence, page.log_id

    return entities


def _columns(kith: Kith) -> dict[str, dict[str, Any]]:
    """The columns of each table that the definitions declare."""
    schema = kith.api.get_schema()
    named = {"external_id": {"data_type": "text"}, **DELETED}
    merges = {"id": {"data_type": "text"}, "merged_into": {"data_type": "text"}, **DELETED}
    tables: dict[str, dict[str, Any]] = {"people": {**named, **PROFILE}, "merges": merges}
    tables |= {stack["key"]: dict(named) for stack in schema["stacks"]}
    for attribute in schema["attributes"]:
        is_many = attribute["cardinality"] == "many"
        link = "text" if attribute["type"] in ("person", "stack") else "json"
        data_type = "json" if is_many else TYPES.get(attribute["type"], link)
        tables[attribute["owner"]][f"attribute_values__{attribute['key']}"] = {"data_type": data_type}
    return tables


def _rows(kith: Kith, changes: list[Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows of what changed, by table: as it is now, or that it is gone."""
    changed: dict[str, dict[str, Any]] = {}
    for change in changes:
        changed.setdefault(change["stack_key"] or "people", {})[change["id"]] = change
    tables: dict[str, list[dict[str, Any]]] = {}
    for owner, last in changed.items():
        key = "id" if owner == "people" else "record_id"
        found: Any = kith.people if owner == "people" else kith.stack(owner)
        rows = {each[key]: each for each in found.filter({key: {"$in": list(last)}}, links="id", size=PAGE)}
        tables[owner] = [_row(rows[id], key) if id in rows else {"id": id, "_deleted": True} for id in last]
    merges = {change["id"]: _merge(change) for change in changes if change["operation"] in ("merge", "unmerge")}
    return {**tables, "merges": list(merges.values())} if merges else tables


def _row(entity: Mapping[str, Any], key: str) -> dict[str, Any]:
    values = {name: _value(value) for name, value in entity["attribute_values"].items()}
    return {**entity, "id": entity[key], "attribute_values": values, "_deleted": False}


def _value(value: Any) -> Any:
    """A link is the identifier of its target."""
    if isinstance(value, list):
        return [_value(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    links = ({"id"}, {"record_id"})
    return next(iter(value.values())) if isinstance(value, dict) and value.keys() in links else value  # pyright: ignore


def _merge(change: Mapping[str, Any]) -> dict[str, Any]:
    after: dict[str, Any] = change["after"] or {}
    into = after.get("merged_into")
    return {"id": change["id"], "merged_into": into, "_deleted": into is None}
