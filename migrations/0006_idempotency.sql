-- Idempotency-Key: the first answer to a key, kept for 24 hours. The row is the first statement of the transaction
-- that does the work and is completed by its last, so that no committed row lacks its answer.
create table idempotency_keys (
  organization_id integer not null,
  -- SHA-256 of token subject, method, address and key: together they may have 16 KiB, and an index entry 2.7.
  id bytea not null check (length(id) = 32),
  -- SHA-256 of what was asked.
  request_sha256 bytea not null check (length(request_sha256) = 32),
  at timestamptz not null,
  status smallint,
  headers jsonb,
  -- Of a success the data, of a refusal its word, message and details: JSON as text, for it is answered as it was.
  body text,
  primary key (organization_id, id)
);
create index idempotency_keys_at on idempotency_keys (organization_id, at);
