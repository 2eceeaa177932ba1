-- Roles: what a caller may do and which fields of people and records it may read and write.

alter table changes drop constraint changes_subject_check, add constraint changes_subject_check check (subject in
  ('entity', 'stack', 'attribute', 'consent_type', 'webhook', 'settings', 'segment', 'retention_rule', 'hold', 'role'));

create table roles (
  organization_id integer not null,
  id integer not null check (id > 0),
  key text collate "C" not null,
  name text not null,
  scope text not null,
  fields jsonb,
  state text not null check (state in ('active', 'archived')),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (organization_id, id)
);
create unique index roles_key on roles (organization_id, key);
comment on table roles is 'What the clients, tokens and sessions with the role may do, and which fields they may read and write.';
comment on column roles.scope is 'The scopes, separated by spaces. A caller has those that its credential and its role both have.';
comment on column roles.fields is
  'By owner (people, or the key of a stack) the names of the fields to read and to write. Null: all fields. An owner that is not named is closed.';

alter table clients add column role text collate "C";
alter table tokens add column role text collate "C";
alter table sessions add column role text collate "C";
comment on column clients.role is 'The key of its role. Null: no role, so its scopes alone decide.';
comment on column tokens.role is 'The key of its role. Null: no role, so its scopes alone decide.';
comment on column sessions.role is 'The key of its role. Null: no role, so its scopes alone decide.';
