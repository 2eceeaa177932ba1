-- The moments of the snapshots that `kith backup` has written. The metrics and `kith doctor` read the age of the last one.
create table backups (
  at timestamptz primary key
);
