-- The initial schema: organizations, their definitions, entities, links, consents and the change log.
-- The keys of every table of an organization's data begin with organization_id. It isolates the tenants, and it is
-- the distribution column if the tables are sharded over a cluster. The tables have no foreign keys: every write of a
-- link would lock its hot target, and the deletion of an entity with many links would be unbounded.

create table organizations (
  id integer primary key generated always as identity,
  key text collate "C" not null unique,
  created_at timestamptz not null default now()
);

-- The service's own keys that sign tokens. The first start creates them. The private half never leaves this table.
create table signing_keys (
  kid text primary key,
  algorithm text not null,
  public_jwk jsonb not null,
  private_jwk jsonb not null,
  created_at timestamptz not null default now()
);

-- One row per organization. `sequence` is the number of its last change. A transaction locks the row last and holds the
-- lock until the commit, so numbers have no gaps and become visible in order. `schema_version` increases with every
-- change of a definition. Every write updates the row. The low fillfactor leaves room on the page for HOT updates.
create table change_heads (
  organization_id integer primary key,
  sequence bigint not null default 0,
  schema_version integer not null default 1
) with (fillfactor = 10);

-- Ids are per organization and are assigned under the lock of its head row. 0 is the stack of people and has no row.
create table stacks (
  organization_id integer not null,
  id integer not null check (id > 0),
  key text collate "C" not null,
  name text not null,
  kind text not null check (kind in ('item', 'event')),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (organization_id, id),
  unique (organization_id, key)
);

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
  primary key (organization_id, id)
);
-- An archived key counts as undeclared, so it can be declared again.
create unique index attributes_active_key on attributes (organization_id, owner_stack_id, key) where state = 'active';

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
  primary key (organization_id, id),
  unique (organization_id, key)
);

-- People (stack 0) and records are in one table: they link to each other, and with two tables two writers could deadlock.
-- A record's ObjectId is the first 12 bytes of its id. `answers` has the current consent answers, so that the
-- lock of the row covers them: {"<consent type id>:<channel>": {"state": boolean, "answered_at": time}}.
create table entities (
  organization_id integer not null,
  stack_id integer not null,
  id uuid not null,
  external_id text collate "C",
  active boolean not null,
  version integer not null,
  first_name text,
  last_name text,
  email text,
  mobile_prefix text,
  mobile_number text,
  date_of_birth text collate "C",
  language text,
  email_consent boolean,
  sms_consent boolean,
  push_notification_consent boolean,
  answers jsonb not null default '{}',
  attributes jsonb not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (organization_id, stack_id, id),
  unique (organization_id, stack_id, external_id)
) with (fillfactor = 85);

-- A link may briefly outlive its target. Readers join entities, and a background task removes dangling links.
create table links (
  organization_id integer not null,
  source_id uuid not null,
  attribute_id integer not null,
  target_stack_id integer not null,
  target_id uuid not null,
  position integer not null,
  primary key (organization_id, source_id, attribute_id, target_id)
);
create index links_by_target on links (organization_id, target_id, attribute_id, source_id);

-- One row per effective write of an entity (stack_id and entity_id) or a definition (definition_id), inserted in the
-- transaction of the write. `before` and `after` have the keys that changed.
create table changes (
  organization_id integer not null,
  sequence bigint not null,
  at timestamptz not null,
  subject text not null check (subject in ('entity', 'stack', 'attribute', 'consent_type')),
  stack_id integer,
  entity_id uuid,
  definition_id integer,
  operation text not null check (operation in ('create', 'update', 'delete')),
  version integer,
  before jsonb,
  after jsonb,
  actor text not null,
  request_id text not null,
  primary key (organization_id, sequence)
);
create index changes_deletions on changes (organization_id, sequence) where operation = 'delete';

-- The evidence of consent: every answer ever given. Rows are appended, never updated or deleted.
create table consent_history (
  organization_id integer not null,
  person_id uuid not null,
  version integer not null,
  consent_type_id integer not null,
  channel text not null check (channel in ('email', 'sms')),
  previous_state boolean,
  state boolean not null,
  source text not null check (source in ('entry', 'flag')),
  at timestamptz not null,
  actor text not null,
  request_id text not null,
  primary key (organization_id, person_id, version, consent_type_id, channel)
);

-- The change number up to which the links of deleted entities are removed, per organization. It is not in change_heads,
-- because the background task must not wait for writers.
create table sweeps (
  organization_id integer primary key,
  sequence bigint not null
);
