"""How an entity is addressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Id(str):
    """Addresses an entity by its internal identifier. A plain str is an external identifier."""

    __slots__ = ()


def id_of(entity: Mapping[str, object]) -> Id:
    """The internal identifier of a person or a record, as an address."""
    return Id(entity["record_id"] if "record_id" in entity else entity["id"])


def below(owner: str, method: str, path: str = "", address: str | None = None) -> tuple[str, dict[str, object]]:
    """The endpoint of an owner, `people` or the key of a stack, and the parameters of its path."""
    params: dict[str, object] = {} if owner == "people" else {"stack_key": owner}
    name = "uuid" if owner == "people" else "record_id"
    base = "/v1/people" if owner == "people" else "/v1/stacks/{stack_key}"
    if address is None:
        return f"{method} {base}{path}", params
    if isinstance(address, Id):
        return f"{method} {base}/internal/{{{name}}}{path}", {**params, name: address}
    return f"{method} {base}/{{external_id}}{path}", {**params, "external_id": address}
