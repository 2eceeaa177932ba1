-- Views of an organization for SQL, which a login role of PostgreSQL reads: each set is a schema.

create table sql_views (
  organization_id integer not null,
  schema_name text collate "C" not null,
  login text collate "C" not null,
  login_oid oid not null,
  database_oid oid not null,
  is_own_login boolean not null,
  role text collate "C",
  version integer,
  digest text,
  retired text[] not null default '{}',
  created_at timestamptz not null default now(),
  primary key (organization_id, schema_name)
);
comment on table sql_views is 'A schema of views of an organization, and the login role that reads it.';
comment on column sql_views.login_oid is 'The role itself. After a restore on another server, a role of the same name is another one.';
comment on column sql_views.database_oid is 'The database in which the role got its rights. After a restore in another one, it has none.';
comment on column sql_views.is_own_login is 'Whether kith made the role, and drops it with the views.';
comment on column sql_views.role is 'The key of the role of kith whose closed fields the views leave out. Null: all fields.';
comment on column sql_views.version is 'The version of the definitions that the views show. Null: they are not made yet.';
comment on column sql_views.digest is 'The hash of the definitions of the views.';
comment on column sql_views.retired is 'Schemas with earlier views, which are dropped when no query reads them any more.';
