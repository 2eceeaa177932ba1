-- The secrets of keys are wrapped by a master key, which is in no table. Wrapped bytes are longer, and name their key.

alter table link_keys drop constraint link_keys_secret_check, add check (length(secret) >= 32);

comment on column signing_keys.private_jwk is 'The private half, which only the newest key has, wrapped by the master key. It never leaves the table.';
comment on column ledger_keys.private_jwk is 'The private half, which only the newest key has, wrapped by the master key.';
comment on column link_keys.secret is 'The 32 bytes of the key, wrapped by the master key.';
comment on column webhooks.secrets is 'The secrets that sign, the newest last, wrapped by the master key.';
comment on column webhooks.headers is
  'Headers of each request besides those that kith sets, by name. Their values are wrapped by the master key, and no read shows them.';
comment on column deliverability_sources.secret_path is
  'The random part of the address that the provider sends to, wrapped by the master key.';
comment on column deliverability_sources.secret is
  'What signatures are checked with: a public key, a secret, or the topic of SNS, wrapped by the master key. Null: the address alone.';
