-- What a client says about an answer: when and how it was given, and to which text. `at`, actor and request_id are the service's own.
alter table consent_history
  -- Null: the time of the write.
  add column collected_at timestamptz,
  -- The given ones of method, source, ip, user_agent, text_version and reference.
  add column evidence jsonb,
  -- An answer that was collected before the one that stands. It changed no state.
  add column superseded boolean not null default false,
  -- A grant that waits for its confirmation.
  add column pending boolean not null default false;

-- The texts that people answer to. A row never changes.
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
