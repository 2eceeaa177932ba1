-- Plans are made once for all organizations. With the true number of them the planner takes each for an average one,
-- and one large organization beside many small ones is scanned where an index would do. Told that there is one, it
-- plans for the largest (an estimate is never above the share of the most common value). Counts from the next ANALYZE.
alter table entities alter column organization_id set (n_distinct = 1);
alter table links alter column organization_id set (n_distinct = 1);
alter table terms alter column organization_id set (n_distinct = 1);
alter table changes alter column organization_id set (n_distinct = 1);
