-- Filters: an index over the values of declared attributes, and one on email.
-- An index on entities.attributes would end HOT updates, so the values stand in a table of their own.

-- Of an attribute whose values are in `terms`: the index that is kept for it now. A new number each time one is asked
-- for, so that the leftovers of an earlier one never mix with it. Not ready: `terms` still lacks stored values.
alter table attributes add column index_id integer, add column index_ready boolean not null default false;
-- Relationships have one too: plain values that stood under the key before it was declared are found by it.
update attributes set index_id = id where state = 'active' and (indexed or target_stack_id is not null);

-- A value has up to 64 kB and a btree key 2.7: `value` is a prefix, and whoever reads it looks at the row as well.
create table terms (
  organization_id integer not null,
  index_id integer not null,
  value text collate "C" not null,
  entity_id uuid not null,
  primary key (organization_id, index_id, value, entity_id)
);

-- How far the filling of an index from stored values has come: entities up to `after_id`, `indexed` of about `total`.
create table fills (
  organization_id integer not null,
  index_id integer not null,
  after_id uuid not null,
  indexed integer not null,
  total integer not null,
  primary key (organization_id, index_id)
);

-- An email has at most 318 bytes by its syntax. Only a PATCH that changes it is no HOT update.
create index entities_email on entities (organization_id, stack_id, email collate "C", id) where email is not null;
