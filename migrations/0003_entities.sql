-- Entities are people (stack 0) and records. They are in one table, because they link to each other, and with two tables two writers
-- could deadlock.

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
  email_key text collate "C",
  mobile_key text collate "C",
  name_key text collate "C",
  primary key (organization_id, stack_id, id),
  unique (organization_id, external_id, stack_id)
) with (fillfactor = 85);
-- A change of one of many values writes all of them. PostgreSQL's compression took half of its processor time (decision 63).
alter table entities alter column attributes set storage external;
-- By its syntax, an email has at most 318 bytes. Only a PATCH that changes the email is not a HOT update.
create index entities_email on entities (organization_id, stack_id, email collate "C", id) where email is not null;
create index entities_email_key on entities (organization_id, stack_id, email_key, id) where email_key is not null;
create index entities_mobile_key on entities (organization_id, stack_id, mobile_key, id) where mobile_key is not null;
create index entities_name_key on entities (organization_id, stack_id, name_key, id) where name_key is not null;
alter table entities alter column organization_id set (n_distinct = 1);
comment on table entities is 'A person, or a record of a stack.';
comment on column entities.stack_id is '0 for people.';
comment on column entities.id is 'The internal identifier. The ObjectId of a record is its first 12 bytes.';
comment on column entities.active is 'False for a placeholder, which a link has created and nobody has written yet.';
-- The lock of the row covers the answers in force.
comment on column entities.answers is
  'The consent answers in force: {"<consent type id>:<channel>": {"state": boolean, "answered_at": time, …}}.';
comment on column entities.email_key is 'The email in lower case, by which a person is recognized.';
comment on column entities.mobile_key is 'The phone in E.164, by which a person is recognized.';
comment on column entities.name_key is 'The name with the date of birth, by which duplicates are found.';

-- The deletion of the target leaves the link, and readers join the target (decision 56).
create table links (
  organization_id integer not null,
  source_id uuid not null,
  attribute_id integer not null,
  target_stack_id integer not null,
  target_id uuid,
  written_id uuid,
  position integer not null,
  primary key (organization_id, source_id, attribute_id, position),
  check (target_id is not null or written_id is not null)
);
create index links_by_target on links (organization_id, target_id, attribute_id, source_id);
create index links_by_written on links (organization_id, written_id, target_id) where written_id is not null;
alter table links alter column organization_id set (n_distinct = 1);
comment on table links is 'A link from an entity to another one, by a relationship attribute.';
comment on column links.target_id is 'Where the link leads. Null if an earlier link of the same list leads there too, after a merge.';
comment on column links.written_id is 'What was written, where a merge leads to another person since (decision 59).';
comment on column links.position is 'The place of the target in the value of the attribute.';

-- An index on entities.attributes would prevent HOT updates, so the values are in a separate table. A value has up to 64 kB and a
-- btree key up to 2.7 kB, so a term is a prefix.
create table terms (
  organization_id integer not null,
  index_id integer not null,
  value text collate "C" not null,
  entity_id uuid not null,
  primary key (organization_id, index_id, value, entity_id)
);
alter table terms alter column organization_id set (n_distinct = 1);
comment on table terms is 'An indexed value of an entity.';
comment on column terms.index_id is 'The index: attributes.index_id or sort_indexes.index_id.';
comment on column terms.value is
  'A prefix of the value. A reader also checks the row of the entity, except for ranges of numbers and times, whose terms are exact.';

create table fills (
  organization_id integer not null,
  index_id integer not null,
  after_id uuid not null,
  indexed integer not null,
  total integer not null,
  primary key (organization_id, index_id)
);
comment on table fills is 'The progress of the backfill of an index from stored values.';
comment on column fills.after_id is 'The last entity that is indexed.';
comment on column fills.total is 'About how many entities there are to index.';

-- The first request that sorts by a field creates its index: nobody can declare the fixed fields, and an attribute is declared as indexed.
create table sort_indexes (
  organization_id integer not null,
  stack_id integer not null,
  field text collate "C" not null,
  index_id integer not null,
  ready boolean not null default false,
  primary key (organization_id, stack_id, field)
);
alter table sort_indexes alter column organization_id set (n_distinct = 1);
comment on table sort_indexes is 'An index that sorts the entities of a stack by a field.';
comment on column sort_indexes.index_id is
  'The number of the index in terms, which has exactly one term of each entity of the stack. No attribute has the same number.';
comment on column sort_indexes.ready is 'Whether terms has all stored values.';
