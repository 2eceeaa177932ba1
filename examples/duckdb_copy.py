# Keeps a copy of people, records and links in DuckDB (`pip install duckdb`): python duckdb_copy.py copy.db, with KITH_URL and KITH_TOKEN.
# docs/changes.md, "Copies with relationships", describes it. The position is stored with the changes up to it, so it may be killed at any time.

import json, os, sys, urllib.parse, urllib.request
import duckdb

db = duckdb.connect(sys.argv[1])
db.execute("""
    create table if not exists entities (id text primary key, owner text not null, created_at text not null, data json, leads_to text);
    create table if not exists links (source text not null, key text not null, position integer not null, target text not null);
    create table if not exists log_position (log_id text not null, after bigint not null);
    create or replace view relationships as
      with recursive led(id, target) as (
        select id, id from entities where data is not null
        union all
        select e.id, led.target from entities e join led on e.leads_to = led.id
      )
      select l.source, l.key, led.target, min(l.position) as position
      from links l join led on led.id = l.target join entities s on s.id = l.source
      where s.data is not null group by l.source, l.key, led.target;
""")

def apply(change):
    id, links, is_gone = change["id"], change["links"] or {}, change["operation"] in ("delete", "erase", "merge")
    after = change["after"] or {}
    stored = db.execute("select data from entities where id = ?", [id]).fetchone()
    data = json.loads(stored[0]) if stored and stored[0] else {"attribute_values": {}}  # a restore has all values
    values = data["attribute_values"] | after.pop("attribute_values", {})
    after.pop("consents", None)
    data |= after | {"version": change["version"], "updated_at": change["at"]}
    data["attribute_values"] = {key: value for key, value in values.items() if value is not None and key not in links}
    db.execute("""insert into entities values (?, ?, ?, ?, ?)
        on conflict (id) do update set data = excluded.data, leads_to = excluded.leads_to""",
        [id, change["stack_key"] or "people", change["at"], None if is_gone else json.dumps(data), after.get("merged_into")])
    if is_gone:
        db.execute("delete from links where source = ?", [id])
    for key, sides in links.items():
        db.execute("delete from links where source = ? and key = ?", [id, key])
        for position, target in enumerate(sides.get("after", [])):
            db.execute("insert into links values (?, ?, ?, ?)", [id, key, position, target])

while True:
    position = db.execute("select after, log_id from log_position").fetchone()
    query = dict(zip(("after", "log_id"), position or ()), links="id", subject=["person", "record"], limit=1000, wait=20)
    request = urllib.request.Request(f"{os.environ['KITH_URL']}/v1/changes?{urllib.parse.urlencode(query, doseq=True)}")
    request.add_header("Authorization", f"Bearer {os.environ['KITH_TOKEN']}")
    page = json.load(urllib.request.urlopen(request))["data"]
    db.begin()
    for change in page["items"]:
        apply(change)
    db.execute("delete from log_position")
    db.execute("insert into log_position values (?, ?)", [page["log_id"], page["last"]])
    db.commit()
