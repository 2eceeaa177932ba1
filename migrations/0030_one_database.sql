-- Organizations have one database (decision 51). This drops the columns that name the database of an organization, and the tables of
-- moves between databases. A process of an earlier checkout reads them, so it fails while both run. No release reads them, so only
-- checkouts from between two releases are affected: stop their processes before the upgrade.
--
-- The first statement fails, and nothing changes, if an organization lives in another database or is being moved there.
alter table organizations add constraint organizations_have_one_database check (cell = 'main' and moving_to is null);
alter table organizations drop column cell, drop column moving_to, drop column moves;
alter table change_heads drop column moved_to;
drop table this_cell, organization_moves, move_captures;
