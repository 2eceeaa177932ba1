-- Definitions: what an organization declares about its people and records, and the keys that it writes without a declaration. Ids are
-- per organization and are assigned under the lock of its head.

create table stacks (
  organization_id integer not null,
  id integer not null check (id > 0),
  key text collate "C" not null,
  name text not null,
  kind text not null check (kind in ('item', 'event')),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  retention_days integer check (retention_days > 0),
  label text,
  version integer not null,
  primary key (organization_id, id),
  unique (organization_id, key)
);
comment on table stacks is 'A kind of record, such as orders.';
comment on column stacks.id is 'People are stack 0, which has no row.';
comment on column stacks.retention_days is
  'How many days after their creation the records of an event stack are erased. Null: they are kept.';
comment on column stacks.label is 'The template of the names of records, such as {name} ({sku}). Null: their identifiers name them.';
-- A process that has the definitions of a version reads those that changed later.
comment on column stacks.version is 'The version of the definitions that changed the row last.';

create table attributes (
  organization_id integer not null,
  id integer not null check (id > 0),
  owner_stack_id integer not null,
  key text collate "C" not null,
  name text not null,
  description text,
  type text not null check (type in ('text', 'number', 'boolean', 'date', 'datetime', 'json', 'person', 'stack')),
  target_stack_id integer check ((target_stack_id is not null) = (type in ('person', 'stack'))),
  cardinality text not null check (cardinality in ('one', 'many')),
  indexed boolean not null,
  state text not null check (state in ('active', 'archived')),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  index_id integer,
  index_ready boolean not null default false,
  searchable boolean not null default false,
  rules jsonb not null default '{}',
  version integer not null,
  primary key (organization_id, id)
);
-- An archived key counts as undeclared, so it can be declared again.
create unique index attributes_active_key on attributes (organization_id, owner_stack_id, key) where state = 'active';
create index attributes_version on attributes (organization_id, version);
comment on table attributes is 'A declared attribute of people or of a stack.';
comment on column attributes.target_stack_id is 'Where a relationship leads: 0 for people, else a stack.';
-- Each new index has a new number, so the leftovers of an earlier one never mix with it. Relationships have an index too: it finds
-- plain values that were stored under the key before it was declared.
comment on column attributes.index_id is 'The current index of the values, which are in terms. Null: none.';
comment on column attributes.index_ready is 'Whether terms has all stored values.';
comment on column attributes.searchable is 'Whether a search finds the entities by the words of the attribute.';
comment on column attributes.rules is
  'The operands of the rules of its values, by name. A missing member is no rule.';
comment on column attributes.version is 'The version of the definitions that changed the row last.';

create table consent_types (
  organization_id integer not null,
  id integer not null check (id > 0),
  key text collate "C" not null,
  name text not null,
  description text,
  state text not null check (state in ('active', 'archived')),
  mandatory boolean not null,
  default_state boolean not null,
  channels jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  version integer not null,
  primary key (organization_id, id),
  unique (organization_id, key)
);
comment on table consent_types is 'A purpose for which people may be written to.';
comment on column consent_types.default_state is 'Whether people without an answer may be written to.';
comment on column consent_types.channels is
  'The channels of the purpose: [{channel, is_default, double_opt_in}]. A flag of a person answers the default purpose of its channel.';
comment on column consent_types.version is 'The version of the definitions that changed the row last.';

-- A follower of the change log counts these keys. No value is kept.
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
  entity_id uuid,
  primary key (organization_id, stack_id, key)
) with (fillfactor = 70);
create index observed_keys_entity on observed_keys (organization_id, entity_id) where entity_id is not null;
comment on table observed_keys is
  'A key that no attribute declared when values were written under it, with the numbers of values by type.';
comment on column observed_keys.entity_id is
  'The only entity that has written the key. Its erasure removes the row, because the key may say something about it. Null: several.';

-- A generic plan serves all organizations. With the true number of organizations, the planner assumes an average size, and scans one
-- large organization among many small ones although an index would be better. With n_distinct = 1 it plans for the largest (an
-- estimate never exceeds the share of the most common value). It takes effect at the next ANALYZE. The other files set it for the same
-- reason on each table of which an organization may have very many rows.
alter table observed_keys alter column organization_id set (n_distinct = 1);
