-- What the columns of a file became in an earlier import, so that the next file with the same header is read in the same way.

create table import_mappings (
  organization_id integer not null,
  id text collate "C" not null check (length(id) = 64),
  stack_id integer not null,
  header text[] not null,
  fields text[] not null,
  actor text not null,
  saved_at timestamptz not null,
  primary key (organization_id, id)
);
comment on table import_mappings is 'The fields that the columns of files became, by the header line.';
comment on column import_mappings.id is 'The SHA-256 of the owner and the header in hexadecimal digits.';
comment on column import_mappings.fields is 'The field of each column. Null: the column is left out.';
comment on column import_mappings.actor is 'The subject of the token that saved it.';
