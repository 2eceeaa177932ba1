-- The waiting deliveries of an entity to a webhook, in order. The index has both in one expression, which the primary key lacks: with
-- two columns, PostgreSQL chose by chance between this index and the primary key, which reads all deliveries of the webhook.
create index webhook_deliveries_order on webhook_deliveries (organization_id, (webhook_id::text || ' ' || entity), sequence)
  where status = 'waiting';
drop index webhook_deliveries_waiting;
