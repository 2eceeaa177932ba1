-- The ledger: a transparency log of the consent answers of each organization, which a follower of the change log seals.

-- The keys that sign checkpoints. Only the newest has its private half. The public halves stay, so that old checkpoints verify.
create table ledger_keys (
  kid text primary key,
  public_jwk jsonb not null,
  private_jwk jsonb,
  created_at timestamptz not null default now(),
  retired_at timestamptz
);

-- The newest sealed state. `edge` has the hashes of the partial tiles, from the lowest level up: their widths follow from the size.
create table ledgers (
  organization_id integer primary key,
  size bigint not null check (size > 0),
  edge bytea not null,
  checkpoint text not null,
  sealed_at timestamptz not null
) with (fillfactor = 50);

-- The sealed answers: the number of the change, type and channel find the answer in the consent history. `hash` is the data of
-- the leaf, SHA-256(salt || answer). An erasure sets the salt to null, and the log still verifies.
create table ledger_entries (
  organization_id integer not null,
  index bigint not null,
  sequence bigint not null,
  consent_type_id integer not null,
  channel text not null check (channel in ('email', 'sms')),
  salt bytea check (length(salt) = 32),
  hash bytea not null check (length(hash) = 32),
  primary key (organization_id, index),
  unique (organization_id, sequence, consent_type_id, channel)
);

-- The full tiles, 256 hashes each. A row never changes. Hashes cannot be compressed.
create table ledger_tiles (
  organization_id integer not null,
  level integer not null,
  index bigint not null,
  data bytea not null check (length(data) = 8192),
  primary key (organization_id, level, index)
);
alter table ledger_tiles alter column data set storage external;
