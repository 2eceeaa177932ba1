-- The ledger: a transparency log of the consent answers of each organization, which a follower of the change log seals.

create table ledger_keys (
  kid text primary key,
  public_jwk jsonb not null,
  private_jwk jsonb,
  created_at timestamptz not null default now(),
  retired_at timestamptz
);
comment on table ledger_keys is 'A key that signs or has signed checkpoints and backups.';
comment on column ledger_keys.public_jwk is 'The public half, which stays so that old checkpoints verify.';
comment on column ledger_keys.private_jwk is 'The private half, which only the newest key has.';

create table ledgers (
  organization_id integer primary key,
  size bigint not null check (size > 0),
  edge bytea not null,
  checkpoint text not null,
  sealed_at timestamptz not null
) with (fillfactor = 50);
comment on table ledgers is 'The newest sealed state of the ledger of an organization.';
comment on column ledgers.size is 'The number of entries.';
comment on column ledgers.edge is
  'The hashes of the partial tiles, from the lowest level up. Their widths follow from the size.';
comment on column ledgers.checkpoint is 'The signed checkpoint, as a note.';

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
comment on table ledger_entries is
  'A sealed answer, which the number of its change, its consent type and its channel find in the consent history.';
comment on column ledger_entries.salt is 'An erasure sets it to null, and the ledger still verifies.';
comment on column ledger_entries.hash is 'The data of the leaf: SHA-256(salt || answer).';

create table ledger_tiles (
  organization_id integer not null,
  level integer not null,
  index bigint not null,
  data bytea not null check (length(data) = 8192),
  primary key (organization_id, level, index)
);
-- Hashes cannot be compressed.
alter table ledger_tiles alter column data set storage external;
comment on table ledger_tiles is 'A full tile of the tree: 256 hashes, which never change.';

-- The follower that seals puts these leaves into the ledger in the place of the answers, and deletes them here.
create table erased_answers (
  organization_id integer not null,
  sequence bigint not null,
  consent_type_id integer not null,
  channel text not null check (channel in ('email', 'sms')),
  hash bytea not null check (length(hash) = 32),
  primary key (organization_id, sequence, consent_type_id, channel)
);
alter table erased_answers alter column organization_id set (n_distinct = 1);
comment on table erased_answers is 'The leaf of an answer that was erased before the ledger sealed it.';
comment on column erased_answers.hash is 'The hash of the answer with a salt that nothing keeps.';
