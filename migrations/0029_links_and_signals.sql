-- A webhook whose events of grants that wait for their confirmation carry the links that confirm them.

alter table webhooks add column links boolean not null default false;
comment on column webhooks.links is 'Whether the event of a grant that waits for its confirmation carries the link that confirms it. Links are signed when they are sent, and are not stored.';
comment on column consent_history.evidence is
  'What the client says about the answer: the given ones of method, source, ip, user_agent, text_version, reference and consent_string.';
