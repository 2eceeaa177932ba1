-- Clients: programs that fetch their own tokens from POST /oauth/token. `id` is what they call themselves, and begins
-- with the key of their organization. Of the secret, 256 random bits, only the SHA-256 is kept.
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

-- Rotation: the newest key signs, and the others verify until the last token they have signed is over. Only the one
-- that signs has a private half. `vouches_until` is never before the end of a token; null of keys that signed before
-- it was written down: for good.
alter table signing_keys alter column private_jwk drop not null, add column vouches_until timestamptz;
