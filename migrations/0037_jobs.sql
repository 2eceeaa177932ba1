-- One change of many people or records runs as a job of the service, which goes on after a crash and can be undone.

create table jobs (
  organization_id integer not null,
  id text collate "C" not null,
  stack_id integer not null,
  actor text not null,
  op text not null check (op in ('patch', 'delete', 'erase')),
  change jsonb,
  filter jsonb,
  ids uuid[],
  started_at timestamptz not null,
  ended_at timestamptz,
  state text not null default 'running' check (state in ('running', 'done', 'cancelled', 'failed')),
  failure text,
  total integer not null,
  position uuid,
  done integer not null default 0,
  unchanged integer not null default 0,
  refused integer not null default 0,
  after_sequence bigint not null,
  last_sequence bigint,
  undo_sequence bigint,
  undone_at timestamptz,
  primary key (organization_id, id)
);
create index jobs_running on jobs (organization_id, started_at, id) where ended_at is null;
alter table jobs alter column organization_id set (n_distinct = 1);
comment on table jobs is 'One change of many people or of the records of a stack, until the log has lost the values of its changes.';
comment on column jobs.id is 'The request_id of its changes.';
comment on column jobs.change is 'What each entity gets, and how. Null when the job has ended, as filter and ids are: they may name a person.';
comment on column jobs.ids is 'The entities that were named, in order, if no filter was given.';
comment on column jobs.failure is 'Why the job failed, such as a filter that names an attribute which is archived now.';
comment on column jobs.total is 'How many entities it was for when it began.';
comment on column jobs.position is 'The last entity that was reached, in order of identifiers. Stored in the transaction that changes it.';
comment on column jobs.after_sequence is 'The number of the log when it began. Its changes have higher numbers.';
comment on column jobs.last_sequence is 'The number of its newest change, or of a later one.';
comment on column jobs.undo_sequence is 'Its changes above this number are taken back, or were left. Null if nothing was.';

create table job_refusals (
  organization_id integer not null,
  job_id text collate "C" not null,
  entity_id uuid not null,
  error text not null,
  message text not null,
  details jsonb not null,
  primary key (organization_id, job_id, entity_id)
);
create index job_refusals_entity on job_refusals (organization_id, entity_id);
alter table job_refusals alter column organization_id set (n_distinct = 1);
comment on table job_refusals is 'An entity that a job was refused to change, and why.';
