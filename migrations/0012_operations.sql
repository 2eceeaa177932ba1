-- What the service keeps to operate: counts of requests, responses to repeat, and when it was backed up.

-- The table is unlogged: counting writes no WAL, its commits do not wait for the disk, and a crash loses only the counts of the current
-- second. rate-limiter-flexible defines the columns.
create unlogged table rate_limits (
  key text primary key,
  points integer not null,
  expire bigint
);
comment on table rate_limits is
  'How many requests a token subject has sent to all processes in the current second, if KITH_RATE_STORE is postgresql.';
comment on column rate_limits.key is 'A hash of the organization and the token subject.';
comment on column rate_limits.expire is 'When the count ends, as Unix time in milliseconds.';

-- The transaction of the request inserts the row first and completes it last, so no committed row lacks its response.
create table idempotency_keys (
  organization_id integer not null,
  id bytea not null check (length(id) = 32),
  request_sha256 bytea not null check (length(request_sha256) = 32),
  at timestamptz not null,
  status smallint,
  headers jsonb,
  body text,
  primary key (organization_id, id)
);
create index idempotency_keys_at on idempotency_keys (organization_id, at);
comment on table idempotency_keys is 'The first response to an Idempotency-Key, which is stored for 24 hours.';
-- Together they can have 16 KiB, but an index entry only 2.7 kB.
comment on column idempotency_keys.id is 'The SHA-256 of the caller, method, path and key.';
comment on column idempotency_keys.request_sha256 is 'The SHA-256 of the request.';
-- As text, so that the response is repeated exactly.
comment on column idempotency_keys.body is 'The JSON of the data, or of a refusal''s error code, message and details.';

create table backups (
  at timestamptz primary key
);
comment on table backups is 'A snapshot that kith backup has written.';
comment on column backups.at is 'The moment of the snapshot. The metrics and kith doctor read the age of the last one.';
