-- The tables of identity: aliases and merges of people, the versions of released names, and what an erasure keeps.

create table aliases (
  organization_id integer not null,
  external_id text collate "C" not null,
  person_id uuid not null,
  merge_id integer,
  created_at timestamptz not null,
  primary key (organization_id, external_id)
);
create index aliases_person on aliases (organization_id, person_id);
alter table aliases alter column organization_id set (n_distinct = 1);
comment on table aliases is 'An external identifier that a person has besides its own.';
comment on column aliases.merge_id is
  'The merge that gave the identifier. Null: the person was sent under it, and found by its email or phone.';

create table merges (
  organization_id integer not null,
  id integer not null check (id > 0),
  merged_id uuid not null,
  into_id uuid not null,
  person_id uuid not null,
  sequence bigint not null,
  unmerged_sequence bigint,
  at timestamptz not null,
  undo jsonb,
  moving uuid[],
  primary key (organization_id, id)
);
create unique index merges_merged on merges (organization_id, merged_id) where unmerged_sequence is null;
-- Past states follow merges that were undone, too.
create index merges_of on merges (organization_id, merged_id, sequence);
create index merges_into on merges (organization_id, into_id);
create index merges_moving on merges (organization_id, merged_id) where moving is not null;
create index merges_person on merges (organization_id, person_id) where unmerged_sequence is null;
alter table merges alter column organization_id set (n_distinct = 1);
comment on table merges is 'A merge of a person into another one, undone or not.';
comment on column merges.person_id is
  'The person that the internal identifier of the merged one leads to now: another than into_id if that one was merged later.';
comment on column merges.sequence is 'The change that logged the merge.';
comment on column merges.unmerged_sequence is 'The change that logged its undoing.';
comment on column merges.undo is 'What an unmerge needs: the fields, links and answers that the merge moved.';
comment on column merges.moving is
  'The people to whom others link, after a merge or its undoing with many links: some of these do not lead to where they should yet. Null once all do.';

create table name_versions (
  organization_id integer not null,
  hash bytea not null check (length(hash) = 32),
  version integer not null,
  primary key (organization_id, hash)
);
comment on table name_versions is
  'The highest version under a name that no change tells, because an erasure has blanked the changes or a deletion took an alias.';
comment on column name_versions.hash is 'The name, hashed with the key in tombstone_keys.';
comment on column name_versions.version is 'The next entity of that name continues from it.';

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
  completed_at timestamptz,
  removed jsonb not null default '{}',
  certificate text,
  primary key (organization_id, id)
);
create index erasures_entity on erasures (organization_id, entity_id);
-- The entities whose log is not wholly erased yet. Reads look here, and almost always find nothing.
create index erasures_incomplete on erasures (organization_id, entity_id) where completed_at is null;
comment on table erasures is
  'An erasure of a person or record, which holds nothing about the erased one but the internal identifier.';
comment on column erasures.records is 'Whether the records that link to the person were kept or erased as well.';
comment on column erasures.completed_at is 'Null while the log of a person with very many changes is still being erased.';
comment on column erasures.removed is 'The numbers of rows that were removed or blanked, by table.';

create table tombstones (
  organization_id integer not null,
  hash bytea not null check (length(hash) = 32),
  erasure_id integer not null,
  primary key (organization_id, hash)
);
comment on table tombstones is
  'An external identifier, email or phone of an erased person, as a keyed hash: a create that has it is refused.';
comment on column tombstones.hash is 'The value, hashed with the key in tombstone_keys.';

create table tombstone_keys (
  organization_id integer not null,
  secret bytea not null check (length(secret) = 32),
  primary key (organization_id)
);
comment on table tombstone_keys is
  'The key of the hashes of an organization, which is made with the organization and never leaves the database.';
