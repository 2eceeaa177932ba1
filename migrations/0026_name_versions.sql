-- The highest version that could be read under a name, where no change tells it: an erasure has blanked the changes, or a deletion
-- took an alias. The next entity of that name continues from it. The name is a hash under the key of the tombstones.
create table name_versions (
  organization_id integer not null,
  hash bytea not null check (length(hash) = 32),
  version integer not null,
  primary key (organization_id, hash)
);
