-- The followers of the change log: what happens after a write works through the log by number. A row holds how far a follower has
-- come in an organization, and the process that works for it now. `id` tells several followers of one name apart; it is 0 where
-- an organization has only one. Times of the lease are PostgreSQL's; `not_before` and `wake_at` are the service's.
create table followers (
  organization_id integer not null,
  name text collate "C" not null,
  id integer not null default 0,
  sequence bigint not null default 0,
  paused boolean not null default false,
  owner uuid,
  leased_until timestamptz,
  not_before timestamptz,
  wake_at timestamptz,
  failures integer not null default 0,
  failure text,
  primary key (organization_id, name, id)
) with (fillfactor = 50);

-- The positions of the cleanup of dangling links. The table `sweeps` stays until the next release, because a process of the version
-- before this one reads it while servers are upgraded one at a time, and creates its row with an organization. Both cleanups may
-- work at once: deleting a link twice does nothing.
insert into followers (organization_id, name, sequence) select organization_id, 'dangling_links', sequence from sweeps;
