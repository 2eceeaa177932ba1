-- The request counts of all processes, if KITH_RATE_STORE is postgresql. A key is a hash of an organization
-- and a token subject; `expire` is Unix time in milliseconds. The table is unlogged: counting writes no WAL, its commits do
-- not wait for the disk, and a crash loses only the counts of the current second. rate-limiter-flexible defines the columns.
create unlogged table rate_limits (
  key text primary key,
  points integer not null,
  expire bigint
);
