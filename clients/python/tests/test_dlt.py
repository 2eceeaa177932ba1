"""The source for dlt: a copy in DuckDB, killed and resumed, is equal to an export."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kith_client import Kith

dlt = pytest.importorskip("dlt", reason="the package dlt is not installed")
duckdb = pytest.importorskip("duckdb", reason="the package duckdb is not installed")

RUN = """
import os, sys
import dlt
import kith_client.dlt as source
pages = iter(range(int(sys.argv[1])))
read = source._rows
def rows(kith, changes):
    next(pages, None) is None and os._exit(9)
    return read(kith, changes)
source._rows = rows
pipeline = dlt.pipeline("kith", pipelines_dir=".", destination=dlt.destinations.duckdb("copy.db"), dataset_name="kith")
pipeline.run(source.kith_source(os.environ["KITH_URL"], os.environ["KITH_TOKEN"]))
"""


def load(folder: Path, token: str, pages: int) -> int:
    environment = {**os.environ, "KITH_TOKEN": token, "PYTHONPATH": str(Path(__file__).parents[1] / "src"), "RUNTIME__DLTHUB_TELEMETRY": "false"}
    return subprocess.run([sys.executable, "-c", RUN, str(pages)], cwd=folder, env=environment, check=False).returncode


def test_a_copy_that_was_killed_and_resumed_is_equal_to_an_export(
    url: str, tokens: dict[str, str], tmp_path: Path
) -> None:
    token = tokens["warehouse"]
    with Kith(url, token) as kith:
        kith.api.create_stack({"key": "orders", "kind": "item"})
        kith.api.create_attribute({"key": "total", "owner": "orders", "type": "number"})
        kith.api.create_attribute({"key": "buyer", "owner": "orders", "type": "person"})
        kith.api.create_attribute({"key": "since", "owner": "people", "type": "date"})
        people: list[Any] = [{"external_id": f"p{n}", "first_name": f"N{n}", "attribute_values": {"since": "2026-01-01"}} for n in range(700)]
        orders: list[Any] = [{"external_id": f"o{n}", "attribute_values": {"total": n / 4, "buyer": f"p{n}"}} for n in range(700)]
        kith.people.import_(people)
        kith.stack("orders").import_(orders)
        assert load(tmp_path, token, 2) == 9
        assert load(tmp_path, token, 100) == 0
        check(kith, tmp_path)
        kith.people.patch("p1", {"first_name": "Changed", "attribute_values": {"since": None}})
        kith.people.merge("p2", other="p3")
        kith.stack("orders").delete("o4")
        kith.people.erase("p5", {"reason": "Request"})
        assert load(tmp_path, token, 0) == 9
        assert load(tmp_path, token, 100) == 0
        check(kith, tmp_path)


def check(kith: Kith, folder: Path) -> None:
    with duckdb.connect(str(folder / "copy.db"), read_only=True) as db:
        people = db.execute("select id, external_id, first_name, version, attribute_values__since::text from kith.people order by id").fetchall()
        orders = db.execute(
            """select o.id, o.external_id, o.version, o.attribute_values__total, p.id
            from kith.orders o left join kith.merges m on m.id = o.attribute_values__buyer
            left join kith.people p on p.id = coalesce(m.merged_into, o.attribute_values__buyer) order by o.id"""
        ).fetchall()
    assert people == [
        (each["id"], each["external_id"], each["first_name"], each["version"], each["attribute_values"].get("since"))
        for each in kith.people.export()
    ]
    assert orders == [
        (each["record_id"], each["external_id"], each["version"], values["total"], (values.get("buyer") or {}).get("id"))
        for each in kith.stack("orders").export(links="id")
        for values in [each["attribute_values"]]
    ]
