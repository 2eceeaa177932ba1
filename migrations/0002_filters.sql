-- Filters: an index over the values of declared attributes, and one on email.
-- An index on entities.attributes would prevent HOT updates, so the values are in a separate table.

-- `index_id` is the current index of an attribute whose values are in `terms`. Each new index has a new number, so that the
-- leftovers of an earlier one never mix with it. While `index_ready` is false, `terms` lacks stored values.
alter table attributes add column index_id integer, add column index_ready boolean not null default false;
-- Relationships have an index too. It finds plain values that were stored under the key before it was declared.
update attributes set index_id = id where state = 'active' and (indexed or target_stack_id is not null);

-- A value has up to 64 kB and a btree key up to 2.7 kB. `value` is therefore a prefix, and a reader also checks the row.
create table terms (
  organization_id integer not null,
  index_id integer not null,
  value text collate "C" not null,
  entity_id uuid not null,
  primary key (organization_id, index_id, value, entity_id)
);

-- The progress of an index backfill from stored values: entities up to `after_id`, `indexed` of about `total`.
create table fills (
  organization_id integer not null,
  index_id integer not null,
  after_id uuid not null,
  indexed integer not null,
  total integer not null,
  primary key (organization_id, index_id)
);

-- By its syntax, an email has at most 318 bytes. Only a PATCH that changes the email is not a HOT update.
create index entities_email on entities (organization_id, stack_id, email collate "C", id) where email is not null;
