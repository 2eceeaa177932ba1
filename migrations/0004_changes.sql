-- The change log, and the followers that do the work behind the writes.

-- The sequence numbers the changes of a set during a COPY that is sent before the client knows the numbers. The transaction that has
-- locked the organization's head sets the sequence to the head's number, and the session caches the next 4096 numbers. Each row of the
-- COPY then takes the next cached number, regardless of other sessions. Its value has no other use, so the sequence is unlogged.
create unlogged sequence change_numbers minvalue 0 cache 4096;

create table changes (
  organization_id integer not null,
  sequence bigint not null default nextval('change_numbers'),
  at timestamptz not null,
  subject text not null check (subject in ('entity', 'stack', 'attribute', 'consent_type', 'webhook', 'settings', 'segment')),
  stack_id integer,
  entity_id uuid,
  definition_id integer,
  operation text not null check (operation in ('create', 'update', 'delete', 'restore', 'merge', 'unmerge', 'erase')),
  version integer,
  before jsonb,
  after jsonb,
  actor text not null,
  request_id text not null,
  links jsonb,
  merge_id integer,
  basis integer[],
  primary key (organization_id, sequence)
);
alter sequence change_numbers owned by changes.sequence;
-- The deletions of people, for the answers in force over time, and the feed of operations that are rare among very many changes.
create index changes_rare_operations on changes (organization_id, sequence) where operation not in ('create', 'update');
-- An entity can take an external_id that another one has left by a deletion or a rename. Its version then continues from the version of
-- that entity, because an If-Match of the earlier entity must not match the new one. This index finds these versions by external_id.
create index changes_names_left on changes (organization_id, stack_id, ((before->>'external_id') collate "C"), version)
  where before->>'external_id' is not null;
-- The changes of one entity, for its history and for its state at a past version.
create unique index changes_entity on changes (organization_id, entity_id, version) where entity_id is not null;
-- The definitions at a past moment are those of today without the later changes. The feed of what is neither a person nor a record.
create index changes_definitions on changes (organization_id, sequence) where entity_id is null;
alter table changes alter column organization_id set (n_distinct = 1);
comment on table changes is 'A write that changed an entity, a definition, a webhook, a segment or the settings of the organization.';
comment on column changes.sequence is 'The number of the change, which rises without gaps in an organization.';
comment on column changes.version is 'The version of the entity after the change.';
comment on column changes.before is 'The values before the change, of the keys that it changed. Values of relationships are in links.';
comment on column changes.after is 'The values after the change, of the keys that it changed. Values of relationships are in links.';
comment on column changes.links is
  'The internal identifiers of the targets, by attribute: {"<attribute id>": {"before": [ids], "after": [ids]}}.';
comment on column changes.merge_id is
  'The merge that made the change, or whose undoing made it: of the merged person and of the survivor.';
comment on column changes.basis is
  'Of every 128th version of an entity: the versions up to it whose changes make its state, the creation, last restore or unmerge first.';

create table followers (
  organization_id integer not null,
  name text collate "C" not null,
  id integer not null default 0,
  sequence bigint not null default 0,
  paused boolean not null default false,
  owner uuid,
  leased_until timestamptz,
  not_before timestamptz,
  wake_at timestamptz,
  failures integer not null default 0,
  failure text,
  primary key (organization_id, name, id)
) with (fillfactor = 50);
comment on table followers is
  'How far a follower of the change log has come in an organization, and the process that works for it now.';
comment on column followers.id is 'Tells several followers of one name apart, such as webhooks. 0 for the only one.';
comment on column followers.owner is 'The process that has the lease.';
comment on column followers.leased_until is 'The end of the lease, by the clock of PostgreSQL.';
comment on column followers.not_before is 'The next work begins no earlier, by the clock of the service.';
comment on column followers.wake_at is 'The next work begins then even without a new change, by the clock of the service.';
