-- Segments: named filters on people. A follower of the change log keeps who is in a segment, so that the log tells who entered or
-- left it.

create table segments (
  organization_id integer not null,
  id integer not null check (id > 0),
  key text collate "C" not null,
  name text not null,
  description text,
  filter jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  forgotten boolean not null default false,
  members_condition text,
  since bigint,
  evaluated_at timestamptz,
  version integer not null,
  primary key (organization_id, id)
);
create unique index segments_key on segments (organization_id, key) where deleted_at is null;
alter table segments alter column organization_id set (n_distinct = 1);
comment on table segments is 'A named filter on people.';
comment on column segments.deleted_at is 'A deleted segment keeps its row, so that its id stays its own.';
comment on column segments.forgotten is 'Whether the other rows of a deleted segment are deleted, which happens in the background.';
comment on column segments.members_condition is
  'A hash of the condition for which the members were computed. Null until they are computed.';
comment on column segments.since is
  'The change after which the log tells of those who entered or left. Null until the members are computed.';
comment on column segments.evaluated_at is 'The time that the relative times of the filter counted from when its members were last computed.';
comment on column segments.version is 'The version of the definitions that changed the row last.';

create table segment_members (
  organization_id integer not null,
  person_id uuid not null,
  segment_id integer not null,
  primary key (organization_id, person_id, segment_id)
);
create index segment_members_segment on segment_members (organization_id, segment_id, person_id);
alter table segment_members alter column organization_id set (n_distinct = 1);
comment on table segment_members is 'A person who is in a segment.';

create table segment_changes (
  organization_id integer not null,
  segment_id integer not null,
  sequence bigint not null,
  person_id uuid not null,
  entered boolean not null,
  primary key (organization_id, segment_id, sequence, person_id)
);
create index segment_changes_person on segment_changes (organization_id, person_id);
alter table segment_changes alter column organization_id set (n_distinct = 1);
comment on table segment_changes is 'A person who entered or left a segment by a change of the log.';

create table segment_checks (
  organization_id integer not null,
  entity_id uuid not null,
  primary key (organization_id, entity_id)
);
alter table segment_checks alter column organization_id set (n_distinct = 1);
comment on table segment_checks is
  'An entity that linked to an erased one, and is tested again because the log does not tell that it lost a link.';
