-- Headers of a webhook's requests, such as the Authorization that a receiver or a gateway asks for.

alter table webhooks add column headers jsonb not null default '{}';
comment on column webhooks.headers is 'Headers of each request besides those that kith sets, by name. Their values are secrets: no read shows them.';
