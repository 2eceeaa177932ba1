-- Organizations have one database (decision 51): drops the directory of their databases, and what moved them between these.
-- An older process reads `organizations.cell` and `change_heads.moved_to` with most requests, so it fails while both run. No release
-- has these columns: only checkouts from between two releases are affected. Stop their processes before the upgrade.
--
-- The first statement fails, and nothing changes, where an organization lives in another database or is being moved there.
alter table organizations add check (cell = 'main' and moving_to is null);
alter table organizations drop column cell, drop column moving_to, drop column moves;
alter table change_heads drop column moved_to;
drop table this_cell, organization_moves, move_captures;
