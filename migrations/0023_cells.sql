-- Organizations live in cells, which are databases. The table `organizations` of the first cell is the directory: `cell` names the
-- database that holds the rows of an organization. In another cell the column repeats the name of that cell.
alter table organizations add column cell text collate "C" not null default 'main';

-- The name of the cell that this database is, so that an address that leads to another cell is noticed. Empty as long as there
-- is one database only.
create table this_cell (
  name text collate "C" primary key
);
create unique index this_cell_once on this_cell ((true));

-- A move to another cell. In the directory, `moving_to` says that the organization's cell may change at any moment, so that no process
-- caches it; `moves` counts the moves. In the cell that an organization leaves, a row of `organization_moves` belongs to the move, and `has_moved` is the
-- decision: from its commit on the rows there never change again.
alter table organizations add column moving_to text collate "C", add column moves integer not null default 0;
create table organization_moves (
  organization_id integer primary key,
  moved_to text collate "C" not null,
  move_id uuid not null,
  has_moved boolean not null default false
);

-- The keys of the rows that have changed while they are copied. Triggers write them, which exist only during a move.
create table move_captures (
  organization_id integer not null,
  number bigint generated always as identity,
  table_name text not null,
  key jsonb not null,
  primary key (organization_id, number)
);

-- What remains in a cell of an organization that has left it. Its number never grows, so that every write fails.
alter table change_heads add column moved_to text collate "C",
  add constraint change_heads_moved check (moved_to is null or sequence = 0);
