-- Organizations are the tenants. The keys of every table with an organization's data begin with organization_id. It isolates the
-- tenants, and it is the distribution column if the tables are spread over the workers of Citus.
--
-- No table has a foreign key: every write of a link would lock its hot target, and the deletion of an entity with many links would
-- be unbounded.

create table organizations (
  id integer primary key generated always as identity,
  key text collate "C" not null unique,
  created_at timestamptz not null default now(),
  deleted_at timestamptz
);
comment on table organizations is 'A tenant of the service.';
comment on column organizations.key is 'The name of the organization in tokens and commands. It stays taken after a deletion.';
comment on column organizations.deleted_at is 'Since when its rows are deleted, or being deleted. Null: it is in use.';

-- A transaction that writes locks the row of its organization and holds the lock until the commit, so change numbers have no gaps and
-- become visible in order. Every write updates the row. The low fillfactor leaves room on the page for HOT updates.
create table change_heads (
  organization_id integer primary key,
  sequence bigint not null default 0,
  schema_version integer not null default 1,
  log_id uuid not null default gen_random_uuid(),
  latest_at timestamptz,
  max_setback interval not null default '0'
) with (fillfactor = 10);
comment on table change_heads is 'The head of the change log of an organization, which each of its writers locks first.';
comment on column change_heads.sequence is 'The number of the last change.';
comment on column change_heads.schema_version is 'The version of the definitions, which rises with each change of one.';
-- A database that was restored from a backup gives out the numbers after the backup a second time.
comment on column change_heads.log_id is 'The name of the numbering of changes. A restored database gets a new one.';
comment on column change_heads.latest_at is 'The latest time of a change.';
-- Zero as long as one clock, which is never set back, gives the times. The last change before a time is searched with it.
comment on column change_heads.max_setback is 'The most by which the time of a change is before the time of a change with a lower number.';

create table organization_settings (
  organization_id integer not null,
  display_name text,
  accent_color text,
  language text,
  privacy_url text,
  contact_email text,
  page_texts jsonb not null default '{}',
  time_zone text,
  updated_at timestamptz not null,
  primary key (organization_id)
);
comment on table organization_settings is 'What an organization shows on the pages that consent links open, and its time zone.';
comment on column organization_settings.page_texts is 'The title and the introduction of the preference page, by language.';
comment on column organization_settings.time_zone is 'The IANA time zone of the days of relative times. Null is UTC.';
