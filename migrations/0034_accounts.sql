-- People who sign in to the console by a name and a password, without an identity provider.

create table accounts (
  organization_id integer not null,
  id uuid not null,
  name text not null,
  name_key text collate "C" not null,
  role text collate "C",
  maker text not null,
  password_hash text,
  invitation_sha256 bytea check (length(invitation_sha256) = 32),
  invitation_expires_at timestamptz,
  created_at timestamptz not null default now(),
  last_sign_in_at timestamptz,
  disabled_at timestamptz,
  primary key (organization_id, id),
  check ((invitation_sha256 is null) = (invitation_expires_at is null))
);
create unique index accounts_name on accounts (organization_id, name_key);
comment on table accounts is 'A person who signs in to the console.';
comment on column accounts.name is 'The actor in the change log.';
comment on column accounts.name_key is 'The name with one letter for all that look alike. No two accounts have the same.';
comment on column accounts.role is 'The key of the role of its sessions. Null: all scopes of the console.';
comment on column accounts.maker is 'The actor that made it.';
comment on column accounts.password_hash is
  'The scrypt hash with its parameters and salt, in the PHC format. Null until the person has accepted an invitation.';
comment on column accounts.invitation_sha256 is 'The SHA-256 of the code of an invitation that nobody has accepted. The code has 256 random bits.';

alter table sessions
  add column account_id uuid,
  drop constraint sessions_method_check,
  add constraint sessions_method_check check (method in ('code', 'client', 'issuer', 'account')),
  add check ((method = 'account') = (account_id is not null));
comment on column sessions.account_id is 'The account that signed in.';
