-- Sessions of the console, and the codes of the links that start one. Both are global, as clients are: they are in the first cell
-- only. A cookie and a code begin with the key of the organization and have 256 random bits, and only the SHA-256 of the whole is
-- stored. `name` is the actor in the change log.
create table sessions (
  organization_id integer not null,
  id uuid not null,
  token_sha256 bytea not null check (length(token_sha256) = 32),
  name text not null,
  scope text not null,
  -- How the session began. A session that a client began ends with the revocation of the client.
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

create table sign_in_codes (
  organization_id integer not null,
  code_sha256 bytea not null check (length(code_sha256) = 32),
  name text not null,
  scope text not null,
  expires_at timestamptz not null,
  primary key (organization_id, code_sha256)
);
create index sign_in_codes_expiry on sign_in_codes (expires_at);
