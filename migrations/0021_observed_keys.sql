-- The keys that were not declared when values were written under them, with the numbers of values by type. A follower of the change
-- log counts them (src/observed). No value is kept.
create table observed_keys (
  organization_id integer not null,
  stack_id integer not null,
  key text collate "C" not null,
  texts bigint not null,
  numbers bigint not null,
  booleans bigint not null,
  objects bigint not null,
  arrays bigint not null,
  dates bigint not null,
  datetimes bigint not null,
  first_seen timestamptz not null,
  last_seen timestamptz not null,
  -- The only entity that has written the key. Its erasure removes the row, because such a key may say something about it. Null: several.
  entity_id uuid,
  primary key (organization_id, stack_id, key)
) with (fillfactor = 70);
create index observed_keys_entity on observed_keys (organization_id, entity_id) where entity_id is not null;
alter table observed_keys alter column organization_id set (n_distinct = 1);
