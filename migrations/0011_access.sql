-- The tables of access: the keys that sign tokens, the programs that request tokens, and the sessions of the console.

create table signing_keys (
  kid text primary key,
  algorithm text not null,
  public_jwk jsonb not null,
  private_jwk jsonb,
  created_at timestamptz not null default now(),
  vouches_until timestamptz not null
);
comment on table signing_keys is
  'A key of the service that signs tokens, or verifies those that it signed before a rotation.';
comment on column signing_keys.private_jwk is 'The private half, which only the newest key has. It never leaves the table.';
comment on column signing_keys.vouches_until is
  'The key verifies until then, which is never before the expiry of a token that it signed.';

create table clients (
  organization_id integer not null,
  id text collate "C" not null,
  name text not null,
  scope text not null,
  secret_sha256 bytea not null check (length(secret_sha256) = 32),
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  primary key (organization_id, id)
);
comment on table clients is 'A program that requests its own tokens from POST /oauth/token.';
comment on column clients.id is 'The client_id, which begins with the key of the organization.';
-- A secret has 256 random bits, so its SHA-256 needs no salt.
comment on column clients.secret_sha256 is 'The SHA-256 of the secret, which itself is not stored.';

-- A cookie and a code begin with the key of the organization and have 256 random bits, and only the SHA-256 of the whole is stored.
create table sessions (
  organization_id integer not null,
  id uuid not null,
  token_sha256 bytea not null check (length(token_sha256) = 32),
  name text not null,
  scope text not null,
  method text collate "C" not null check (method in ('code', 'client', 'issuer')),
  client_id text collate "C",
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  revoked_at timestamptz,
  primary key (organization_id, id),
  check ((method = 'client') = (client_id is not null))
);
create unique index sessions_token on sessions (organization_id, token_sha256);
create index sessions_expiry on sessions (expires_at);
comment on table sessions is 'A session of the console.';
comment on column sessions.token_sha256 is 'The SHA-256 of the cookie.';
comment on column sessions.name is 'The actor in the change log.';
comment on column sessions.method is 'How the session began.';
comment on column sessions.client_id is 'The client that began the session. Its revocation ends the session.';

create table sign_in_codes (
  organization_id integer not null,
  code_sha256 bytea not null check (length(code_sha256) = 32),
  name text not null,
  scope text not null,
  expires_at timestamptz not null,
  primary key (organization_id, code_sha256)
);
create index sign_in_codes_expiry on sign_in_codes (expires_at);
comment on table sign_in_codes is 'The code of a link that starts a session of the console, once.';
