-- The access log: who read or wrote the data of which people and records, and security events.

create table access_batches (
  organization_id integer not null,
  id bigint not null,
  kind text not null check (kind in ('access', 'security')),
  hashes bytea not null,
  entries bytea not null,
  primary key (organization_id, id)
);
create index access_batches_security on access_batches (organization_id, id) where kind = 'security';
alter table access_batches alter hashes set storage external, alter entries set storage external;
comment on table access_batches is 'Some accesses or security events that a process stored together.';
comment on column access_batches.id is 'The time of the first entry in milliseconds of Unix time, times 4096, and a random number below.';
comment on column access_batches.hashes is 'A hash of 32 bits of each entity that an entry lists.';
comment on column access_batches.entries is 'The entries as JSON, compressed with Zstandard.';

create table access_index (
  organization_id integer not null,
  bucket smallint not null check (bucket between 0 and 255),
  last_id bigint not null,
  pairs bytea not null,
  primary key (organization_id, bucket, last_id)
);
alter table access_index alter pairs set storage external;
comment on table access_index is 'Which batches of a part of the access log list the entities of a bucket: those whose hash has this first byte.';
comment on column access_index.last_id is 'The last batch of the part, which begins after the last batch of the part before.';
comment on column access_index.pairs is 'Pairs of a hash (32 bits) and a batch (a double), in little-endian order.';
