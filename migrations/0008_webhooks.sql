-- Webhooks: where an organization wants its changes to be sent. A webhook is a follower of the change log, with a row of followers that
-- has its id.

create table webhooks (
  organization_id integer not null,
  id integer not null check (id > 0),
  url text not null,
  events jsonb not null,
  stacks jsonb,
  keys jsonb,
  description text,
  payload text not null check (payload in ('full', 'ids')),
  active boolean not null,
  secrets jsonb not null,
  disabled_reason text check (disabled_reason in ('gone', 'failing')),
  disabled_at timestamptz,
  failing_since timestamptz,
  last_success_at timestamptz,
  replay_after bigint,
  replay_until bigint,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  tests jsonb not null default '[]',
  primary key (organization_id, id)
);
comment on table webhooks is 'An address to which an organization wants its changes to be sent.';
comment on column webhooks.events is 'The kinds of changes to send.';
comment on column webhooks.stacks is 'The stacks whose changes are sent. Null: all.';
comment on column webhooks.keys is 'The keys of values: a change is sent if it changes one of them. Null: any change.';
comment on column webhooks.secrets is 'The secrets that sign, the newest last.';
comment on column webhooks.disabled_reason is 'Why the service, and not a client, has deactivated the webhook.';
comment on column webhooks.replay_after is 'The changes after this one are sent again. Null: no replay.';
comment on column webhooks.replay_until is 'The last change of the replay.';
comment on column webhooks.deleted_at is
  'A deleted webhook keeps its row without address and secrets, so that its id stays its own.';
comment on column webhooks.tests is 'The last test events, newest first.';

create table webhook_deliveries (
  organization_id integer not null,
  webhook_id integer not null,
  sequence bigint not null,
  entity text collate "C" not null,
  type text not null,
  status text not null check (status in ('waiting', 'delivered', 'failed')),
  attempts integer not null default 0,
  created_at timestamptz not null,
  next_attempt_at timestamptz,
  last_attempt_at timestamptz,
  response_status integer,
  duration_ms integer,
  response text,
  error text,
  primary key (organization_id, webhook_id, sequence)
);
create index webhook_deliveries_due on webhook_deliveries (organization_id, webhook_id, next_attempt_at, sequence)
  where next_attempt_at is not null;
create index webhook_deliveries_failed on webhook_deliveries (organization_id, webhook_id, sequence)
  where status = 'failed';
create index webhook_deliveries_old on webhook_deliveries (organization_id, webhook_id, last_attempt_at)
  where status <> 'waiting';
-- The waiting deliveries of an entity to a webhook, in order. The index has both in one expression, which the primary key lacks: with
-- two columns, PostgreSQL chose by chance between this index and the primary key, which reads all deliveries of the webhook.
create index webhook_deliveries_order on webhook_deliveries (organization_id, (webhook_id::text || ' ' || entity), sequence)
  where status = 'waiting';
-- How many deliveries of a webhook wait, and which is the oldest: the count of 100,000 takes 10 ms. The organization and the webhook
-- are one expression, so that PostgreSQL cannot choose this index for the statements that read by entity.
create index webhook_deliveries_waiting on webhook_deliveries ((organization_id::text || ' ' || webhook_id::text), sequence)
  include (organization_id, webhook_id, created_at) where status = 'waiting';
-- The deliveries whose last attempt failed and that are tried again.
create index webhook_deliveries_failing on webhook_deliveries (organization_id, webhook_id, sequence)
  where status = 'waiting' and attempts > 0;
comment on table webhook_deliveries is 'A change that a webhook sends or has sent.';
comment on column webhook_deliveries.entity is 'What the change is of. The changes of one entity are sent in order.';
comment on column webhook_deliveries.next_attempt_at is
  'Of the waiting deliveries of an entity, only the first has a time, so that they are sent in order.';
comment on column webhook_deliveries.response is 'The beginning of the body of the last response.';
