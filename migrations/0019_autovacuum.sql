-- Statistics and visibility after growth. A plan for an empty table would look people up by the wrong index once the table has grown, and an
-- index alone answers only where the pages are known visible. Autovacuum sees to both, earlier than by default: after a twentieth of new rows.
-- The writes did this themselves before, by an ANALYZE of their own.
alter table entities set (autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);
alter table links set (autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);
alter table terms set (autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);
