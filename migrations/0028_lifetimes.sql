-- Lifetimes: rules that erase or delete people who have been in a segment for long, and legal holds that keep people from it.

alter table changes drop constraint changes_subject_check, add constraint changes_subject_check check (subject in
  ('entity', 'stack', 'attribute', 'consent_type', 'webhook', 'settings', 'segment', 'retention_rule', 'hold'));
alter table changes drop constraint changes_operation_check, add constraint changes_operation_check check (operation in
  ('create', 'update', 'delete', 'restore', 'merge', 'unmerge', 'erase', 'retention_due'));

-- Of those who are members already, it is unknown since when: they count from the moment of this migration.
alter table segment_members add column entered_at timestamptz not null default now();
comment on column segment_members.entered_at is
  'Since when the person has been in the segment without a break. A new computation keeps it; another filter does not begin it anew.';
alter table segments add column filter_changed_at timestamptz not null default now();
comment on column segments.filter_changed_at is 'When the segment got its filter. For a retention rule, no time in the segment before it counts.';

create table retention_rules (
  organization_id integer not null,
  id integer not null check (id > 0),
  key text collate "C" not null,
  segment_id integer not null,
  after_days integer not null check (after_days between 1 and 36500),
  action text not null check (action in ('erase', 'delete')),
  daily_limit integer not null check (daily_limit > 0),
  active boolean not null,
  paused_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  primary key (organization_id, id)
);
create unique index retention_rules_key on retention_rules (organization_id, key) where deleted_at is null;
comment on table retention_rules is 'A rule that erases or deletes people who have been in a segment for a number of days.';
comment on column retention_rules.paused_at is
  'When the rule stopped itself, because it would have taken more than a tenth of all people in a day. Null unless it has.';
comment on column retention_rules.deleted_at is 'A deleted rule keeps its row, so that its id stays its own.';

create table retention_notices (
  organization_id integer not null,
  rule_id integer not null,
  person_id uuid not null,
  entered_at timestamptz not null,
  due_at timestamptz not null,
  primary key (organization_id, rule_id, person_id)
);
create index retention_notices_due on retention_notices (organization_id, rule_id, due_at);
create index retention_notices_person on retention_notices (organization_id, person_id);
alter table retention_notices alter column organization_id set (n_distinct = 1);
comment on table retention_notices is 'A person of whom the log has told that a rule will erase or delete it.';
comment on column retention_notices.entered_at is 'The stay in the segment that the notice is for, as segment_members has it.';
comment on column retention_notices.due_at is 'The rule does so no earlier.';

create table retention_runs (
  organization_id integer not null,
  rule_id integer not null,
  day date not null,
  told integer not null default 0,
  done integer not null default 0,
  logged boolean not null default false,
  updated_at timestamptz not null,
  primary key (organization_id, rule_id, day)
);
comment on table retention_runs is 'What a rule has done on a day, which its daily limit counts.';
comment on column retention_runs.day is 'The day in UTC.';
comment on column retention_runs.logged is 'Whether the log tells of these numbers.';

create table person_holds (
  organization_id integer not null,
  id integer not null check (id > 0),
  people uuid[] not null,
  reason text not null,
  until timestamptz,
  actor text not null,
  created_at timestamptz not null,
  released_at timestamptz,
  primary key (organization_id, id)
);
create index person_holds_people on person_holds using gin (people) where released_at is null;
comment on table person_holds is 'A legal hold, which keeps a person from being erased by a rule or without saying so.';
comment on column person_holds.people is 'The person, with those who were merged into it when it was held: an unmerge leaves each of them held. An erased person is taken out of it.';
