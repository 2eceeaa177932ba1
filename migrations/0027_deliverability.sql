-- What mailboxes and numbers answer to mail: bounces, complaints and deliveries, and whether writing to an address is suppressed.

create table deliverability (
  organization_id integer not null,
  channel text not null check (channel in ('email', 'sms')),
  hash bytea not null,
  address text collate "C",
  events jsonb not null,
  reason text check (reason in ('hard_bounce', 'soft_bounce', 'complaint')),
  suppressed_from timestamptz,
  suppressed_until timestamptz,
  primary key (organization_id, channel, hash)
);
create unique index deliverability_addresses on deliverability (organization_id, channel, address) where address is not null;
create index deliverability_suppressed on deliverability (organization_id, suppressed_from, hash) where suppressed_until is not null;

comment on table deliverability is 'An address that messages were sent to, with the events that decide whether it is written to.';
comment on column deliverability.hash is 'The address as tombstones have it, hashed with the key in tombstone_keys.';
comment on column deliverability.address is
  'The address as in email_key or mobile_key. Null after an erasure of its person, until the address is given to somebody again.';
comment on column deliverability.events is 'The last event of each type, and the soft bounces since the last delivery.';
comment on column deliverability.reason is 'The type of the event that suppresses the address, or did. Null if none ever did.';
comment on column deliverability.suppressed_until is 'The end of the suppression. Infinity for a complaint, null if there was none.';

alter table organization_settings add column suppression_days integer;
comment on column organization_settings.suppression_days is 'How many days a bounce suppresses its address. Null: 180.';

create table deliverability_sources (
  organization_id integer not null,
  key text collate "C" not null,
  provider text not null,
  secret_path text not null,
  secret text,
  created_at timestamptz not null,
  last_event_at timestamptz,
  ignored_events bigint not null default 0,
  confirmed_at timestamptz,
  primary key (organization_id, key)
);
comment on table deliverability_sources is 'A mail provider that sends its events to kith.';
comment on column deliverability_sources.secret_path is 'The random part of the address that the provider sends to.';
comment on column deliverability_sources.secret is
  'What signatures are checked with: a public key, a secret, or the topic of SNS. Null: the address alone.';
comment on column deliverability_sources.last_event_at is 'When it last sent events with a valid signature.';
comment on column deliverability_sources.ignored_events is 'How many events it sent that kith has no use for.';
comment on column deliverability_sources.confirmed_at is 'When its subscription was confirmed, of a provider that asks for it.';

create table deliverability_tokens (
  organization_id integer not null,
  hash bytea not null,
  used_at timestamptz not null,
  primary key (organization_id, hash)
);
create index deliverability_tokens_used on deliverability_tokens (organization_id, used_at);
comment on table deliverability_tokens is 'A request of a mail provider that arrived, so that it is not taken twice.';
comment on column deliverability_tokens.hash is 'The hash of its token or signature.';
