-- Clients: programs that request their own tokens from POST /oauth/token. `id` is the client_id, and begins
-- with the key of the organization. The secret has 256 random bits, and only its SHA-256 is stored.
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

-- Rotation: the newest key signs. The other keys verify until the last token that they signed has expired. Only the
-- signing key has a private half. `vouches_until` is never before the expiry of a token that the key signed. It is null for
-- keys that signed before the column existed: these verify without a time limit.
alter table signing_keys alter column private_jwk drop not null, add column vouches_until timestamptz;
