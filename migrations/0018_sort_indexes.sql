-- The indexes that sort the entities of a stack by a field. The first request that sorts by a field creates its index: nobody
-- can declare the fixed fields, and an attribute is declared as indexed.

-- `terms` has exactly one term of each entity of the stack under `index_id`, a number of the same kind as those of attributes.
-- While `ready` is false, `terms` lacks stored values.
create table sort_indexes (
  organization_id integer not null,
  stack_id integer not null,
  field text collate "C" not null,
  index_id integer not null,
  ready boolean not null default false,
  primary key (organization_id, stack_id, field)
);
alter table sort_indexes alter column organization_id set (n_distinct = 1);
