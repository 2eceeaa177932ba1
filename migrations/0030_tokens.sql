-- The tokens that callers and the command line make, so that they can be listed and revoked one by one.

create table tokens (
  organization_id integer not null,
  id uuid not null,
  name text not null,
  scope text not null,
  maker text not null,
  ancestors uuid[] not null default '{}',
  client_id text collate "C",
  session_id uuid,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  last_used_at timestamptz,
  revoked_at timestamptz,
  primary key (organization_id, id)
);
create index tokens_newest on tokens (organization_id, created_at desc, id desc);
create index tokens_expiry on tokens (expires_at);
comment on table tokens is 'A token that somebody made, in contrast to those that a client fetches, which end with the client.';
comment on column tokens.id is 'The jti of the token.';
comment on column tokens.name is 'The actor in the change log.';
comment on column tokens.maker is 'The actor that made it.';
comment on column tokens.ancestors is 'The tokens that it ends with: that which made it, and those that this one ends with.';
comment on column tokens.client_id is 'The client that it ends with.';
comment on column tokens.session_id is 'The session that it ends with.';
comment on column tokens.last_used_at is 'The newest minute in which it was used.';
