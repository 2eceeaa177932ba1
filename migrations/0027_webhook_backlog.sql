-- How many deliveries of a webhook wait, and which is the oldest: the count of 100,000 takes 10 ms. The organization and the webhook
-- are one expression, so that PostgreSQL cannot choose this index for the statements that read by entity (migrations/0013_delivery_order.sql).
create index webhook_deliveries_waiting on webhook_deliveries ((organization_id::text || ' ' || webhook_id::text), sequence)
  include (organization_id, webhook_id, created_at) where status = 'waiting';
-- The deliveries whose last attempt failed and that are tried again.
create index webhook_deliveries_failing on webhook_deliveries (organization_id, webhook_id, sequence)
  where status = 'waiting' and attempts > 0;
-- The last test events of a webhook, newest first.
alter table webhooks add column tests jsonb not null default '[]';
