-- Webhooks: where an organization wants its changes to be sent. A webhook is a follower of the change log, with a row of
-- `followers` that has its id. A deleted webhook keeps its row without address and secrets, so that its id stays its own.
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
  primary key (organization_id, id)
);

-- A change that a webhook sends. Of the waiting deliveries of an entity, only the first has a time of its next attempt, so the
-- changes of an entity are sent in order.
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
create index webhook_deliveries_waiting on webhook_deliveries (organization_id, webhook_id, entity, sequence)
  where status = 'waiting';
create index webhook_deliveries_failed on webhook_deliveries (organization_id, webhook_id, sequence)
  where status = 'failed';
create index webhook_deliveries_old on webhook_deliveries (organization_id, webhook_id, last_attempt_at)
  where status <> 'waiting';
