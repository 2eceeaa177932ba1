-- Segments: named filters on people. A follower of the change log keeps who is in a segment, so that the log tells who entered or
-- left it. A deleted segment keeps its row, so that its id stays its own; its other rows are deleted in the background.
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
  -- Whether the other rows of a deleted segment are deleted.
  forgotten boolean not null default false,
  -- The follower's part. The members were computed for this condition (a hash of it), and the change log tells of those who entered or
  -- left after the change `since`. Null until the members are computed.
  members_condition text,
  since bigint,
  primary key (organization_id, id)
);
create unique index segments_key on segments (organization_id, key) where deleted_at is null;
alter table segments alter column organization_id set (n_distinct = 1);

create table segment_members (
  organization_id integer not null,
  person_id uuid not null,
  segment_id integer not null,
  primary key (organization_id, person_id, segment_id)
);
create index segment_members_segment on segment_members (organization_id, segment_id, person_id);
alter table segment_members alter column organization_id set (n_distinct = 1);

-- The people who entered or left a segment by a change of the log.
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

-- The entities that linked to an erased one. The log does not tell that they lost a link.
create table segment_checks (
  organization_id integer not null,
  entity_id uuid not null,
  primary key (organization_id, entity_id)
);
alter table segment_checks alter column organization_id set (n_distinct = 1);

-- The rows that exist satisfy the narrower check, so they are not read again.
alter table changes
  drop constraint changes_subject_check,
  add constraint changes_subject_check
    check (subject in ('entity', 'stack', 'attribute', 'consent_type', 'webhook', 'settings', 'segment')) not valid;
