-- The evidence of consent, the texts that people answer to, and the keys of the links by which they answer.

create table consent_history (
  organization_id integer not null,
  person_id uuid not null,
  version integer not null,
  consent_type_id integer not null,
  channel text not null check (channel in ('email', 'sms')),
  previous_state boolean,
  state boolean not null,
  source text not null check (source in ('entry', 'flag')),
  at timestamptz not null,
  actor text not null,
  request_id text not null,
  collected_at timestamptz,
  evidence jsonb,
  superseded boolean not null default false,
  pending boolean not null default false,
  primary key (organization_id, person_id, version, consent_type_id, channel)
);
comment on table consent_history is 'A consent answer of a person, which no later answer changes.';
comment on column consent_history.version is 'The version of the person that the answer made.';
comment on column consent_history.source is 'Whether the write named the purpose, or had a flag of the person.';
comment on column consent_history.at is 'When the answer was stored.';
comment on column consent_history.collected_at is 'When the person answered, as the client says. Null: when the answer was stored.';
comment on column consent_history.evidence is
  'What the client says about the answer: the given ones of method, source, ip, user_agent, text_version and reference.';
comment on column consent_history.superseded is
  'Whether the answer was collected before the one in force at that time. Then it changed no state.';
comment on column consent_history.pending is 'Whether the answer is a grant that waits for its confirmation.';

create table consent_texts (
  organization_id integer not null,
  consent_type_id integer not null,
  version integer not null,
  language text not null,
  text text not null,
  url text,
  sha256 bytea not null check (length(sha256) = 32),
  created_at timestamptz not null,
  primary key (organization_id, consent_type_id, version)
);
comment on table consent_texts is 'A text that people answer to, which never changes.';

-- A link names its key, so a key can be replaced while the links of the older one stay valid.
create table link_keys (
  organization_id integer not null,
  id integer not null check (id > 0),
  secret bytea not null check (length(secret) = 32),
  created_at timestamptz not null,
  primary key (organization_id, id)
);
comment on table link_keys is 'A key that signs the consent links of an organization.';
