-- The pages that links lead to: what an organization shows there, and the key that signs its links.
create table organization_settings (
  organization_id integer not null,
  display_name text,
  accent_color text,
  language text,
  privacy_url text,
  contact_email text,
  -- By language: title and introduction of the preference page.
  page_texts jsonb not null default '{}',
  updated_at timestamptz not null,
  primary key (organization_id)
);

-- A link names its key, so a key can be replaced while the links of the older one stay valid.
create table link_keys (
  organization_id integer not null,
  id integer not null check (id > 0),
  secret bytea not null check (length(secret) = 32),
  created_at timestamptz not null,
  primary key (organization_id, id)
);

-- The settings are part of what a person saw, so their changes are in the change log. The rows that exist satisfy the narrower
-- check, so they are not read again.
alter table changes
  drop constraint changes_subject_check,
  add constraint changes_subject_check
    check (subject in ('entity', 'stack', 'attribute', 'consent_type', 'webhook', 'settings')) not valid;
