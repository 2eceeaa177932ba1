-- A generic plan serves all organizations. With the true number of organizations, the planner assumes an average size,
-- and scans one large organization among many small ones although an index would be better. With n_distinct = 1 it
-- plans for the largest (an estimate never exceeds the share of the most common value). Takes effect at the next ANALYZE.
alter table entities alter column organization_id set (n_distinct = 1);
alter table links alter column organization_id set (n_distinct = 1);
alter table terms alter column organization_id set (n_distinct = 1);
alter table changes alter column organization_id set (n_distinct = 1);
