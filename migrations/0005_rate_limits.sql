-- Requests counted for all processes together, where KITH_RATE_STORE is postgresql. A key is a hash of an organization
-- and a token subject; `expire` is Unix time in milliseconds. Unlogged: counting writes nothing to the log, its commits wait
-- for no disk, and a crash forgets the running second. The columns are what rate-limiter-flexible asks for.
create unlogged table rate_limits (
  key text primary key,
  points integer not null,
  expire bigint
);
