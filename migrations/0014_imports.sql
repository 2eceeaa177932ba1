-- The time of an imported answer may be unknown, and an import can be undone.

alter table consent_history add column undated boolean not null default false;
comment on column consent_history.undated is
  'Whether an import gave the answer without its time. Then nobody knows when it was collected, and any answer with a time replaces it.';

create table imports (
  organization_id integer not null,
  id text collate "C" not null,
  stack_id integer not null,
  actor text not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  after_sequence bigint not null,
  last_sequence bigint,
  received integer not null default 0,
  created integer not null default 0,
  updated integer not null default 0,
  unchanged integer not null default 0,
  failed integer not null default 0,
  undo_sequence bigint,
  undone_at timestamptz,
  primary key (organization_id, id)
);
comment on table imports is 'An import of people or of the records of a stack, until the log has lost the values of its changes.';
comment on column imports.id is 'The request_id of its changes.';
comment on column imports.after_sequence is 'The number of the log when it began. Its changes have higher numbers.';
comment on column imports.last_sequence is 'The number of a change up to which the log has all of its changes. Null until it ends.';
comment on column imports.undo_sequence is 'Its changes above this number are taken back, or were left. Null if nothing was.';
