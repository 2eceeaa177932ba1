-- Idempotency-Key: the first response to a key, stored for 24 hours. The transaction of the request inserts the row first
-- and completes it last, so no committed row lacks its response.
create table idempotency_keys (
  organization_id integer not null,
  -- SHA-256 of token subject, method, path and key: together they can have 16 KiB, but an index entry only 2.7 kB.
  id bytea not null check (length(id) = 32),
  -- SHA-256 of the request.
  request_sha256 bytea not null check (length(request_sha256) = 32),
  at timestamptz not null,
  status smallint,
  headers jsonb,
  -- JSON of the data, or of a refusal's error code, message and details. It is text, so that the response is repeated exactly.
  body text,
  primary key (organization_id, id)
);
create index idempotency_keys_at on idempotency_keys (organization_id, at);
