-- What people are recognized by: the email in lower case, the phone in E.164, and name with date of birth. kith computes these keys
-- with each write. Rows of earlier releases have none until a background fill has computed them.
alter table entities
  add column email_key text collate "C",
  add column mobile_key text collate "C",
  add column name_key text collate "C",
  add column has_keys boolean not null default false;
create index entities_email_key on entities (organization_id, stack_id, email_key, id) where email_key is not null;
create index entities_mobile_key on entities (organization_id, stack_id, mobile_key, id) where mobile_key is not null;
create index entities_name_key on entities (organization_id, stack_id, name_key, id) where name_key is not null;
-- The people that the fill has not reached yet. The index is empty when it is done.
create index entities_without_keys on entities (organization_id, id) where stack_id = 0 and not has_keys;

-- The further external identifiers of a person: those of people who were merged into it, and those by which it was sent when it
-- was found by its email or phone.
create table aliases (
  organization_id integer not null,
  external_id text collate "C" not null,
  person_id uuid not null,
  -- Null: given by a match.
  merge_id integer,
  created_at timestamptz not null,
  primary key (organization_id, external_id)
);
create index aliases_person on aliases (organization_id, person_id);
alter table aliases alter column organization_id set (n_distinct = 1);

create table merges (
  organization_id integer not null,
  id integer not null check (id > 0),
  -- The person who was merged, and the person it was merged into.
  merged_id uuid not null,
  into_id uuid not null,
  -- The person that the internal identifier of the merged one leads to now: another than into_id if that one was merged later.
  person_id uuid not null,
  -- The changes that logged the merge and its undoing.
  sequence bigint not null,
  unmerged_sequence bigint,
  at timestamptz not null,
  -- What unmerge needs: the fields, links and answers that the merge moved.
  undo jsonb,
  primary key (organization_id, id)
);
create unique index merges_merged on merges (organization_id, merged_id) where unmerged_sequence is null;
-- Past states follow merges that were undone, too.
create index merges_of on merges (organization_id, merged_id, sequence);
create index merges_into on merges (organization_id, into_id);
create index merges_person on merges (organization_id, person_id) where unmerged_sequence is null;
alter table merges alter column organization_id set (n_distinct = 1);

-- Which entities ever linked to another one and do so no longer. Their log entries quote its external identifier.
create table past_links (
  organization_id integer not null,
  target_id uuid not null,
  source_id uuid not null,
  primary key (organization_id, target_id, source_id)
);
alter table past_links alter column organization_id set (n_distinct = 1);
insert into past_links (organization_id, target_id, source_id)
select distinct c.organization_id, t.id::uuid, c.entity_id
from changes c cross join lateral jsonb_each(c.link_targets) as a(attribute_id, ids)
  cross join lateral jsonb_array_elements_text(a.ids) as t(id)
where c.link_targets is not null and jsonb_typeof(a.ids) = 'array';

-- The erasures of people, and of their records. A row holds nothing about the person but the internal identifier.
create table erasures (
  organization_id integer not null,
  id integer not null check (id > 0),
  stack_id integer not null,
  entity_id uuid not null,
  at timestamptz not null,
  actor text not null,
  request_id text not null,
  reason text not null,
  records text not null check (records in ('keep', 'linked')),
  -- Null while the log of a person with very many changes is still being erased.
  completed_at timestamptz,
  -- The number of rows that were removed or blanked, by table.
  removed jsonb not null default '{}',
  certificate text,
  primary key (organization_id, id)
);
create index erasures_entity on erasures (organization_id, entity_id);
-- The entities whose log is not wholly erased yet. Reads look here, and almost always find nothing.
create index erasures_incomplete on erasures (organization_id, entity_id) where completed_at is null;

-- Keyed hashes of the external identifiers, emails and phones of erased people. A create that has one of them is refused.
create table tombstones (
  organization_id integer not null,
  hash bytea not null check (length(hash) = 32),
  erasure_id integer not null,
  primary key (organization_id, hash)
);

-- The key of the hashes. It is made with the organization and never leaves the database.
create table tombstone_keys (
  organization_id integer not null,
  secret bytea not null check (length(secret) = 32),
  primary key (organization_id)
);
insert into tombstone_keys (organization_id, secret)
select o.id, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) from organizations o;

-- The records of an event stack are erased this many days after their creation. Null: never.
alter table stacks add column retention_days integer check (retention_days > 0);

-- The rows that exist satisfy the narrower check, so they are not read again.
alter table changes
  drop constraint changes_operation_check,
  add constraint changes_operation_check
    check (operation in ('create', 'update', 'delete', 'restore', 'merge', 'unmerge', 'erase')) not valid;
