-- The key of an indexed value says all that an equality and an order need (decision 76). Those of texts and dates were prefixes, so their indexes are
-- filled anew.

delete from terms t using attributes d
where d.organization_id = t.organization_id and d.index_id = t.index_id and d.type not in ('number', 'boolean');

delete from fills f using attributes d
where d.organization_id = f.organization_id and d.index_id = f.index_id and d.type not in ('number', 'boolean');

update attributes d set index_ready = false, version = h.schema_version + 1
from change_heads h
where h.organization_id = d.organization_id and d.index_id is not null and d.type not in ('number', 'boolean');

update change_heads h set schema_version = h.schema_version + 1
where exists (
  select from attributes d where d.organization_id = h.organization_id and d.version = h.schema_version + 1
);

comment on column terms.value is
  'The key of the value: its kind and the value itself, or the first 64 characters and a hash of a longer text. Times are their moment.';

-- An index alone answers a count or gives candidates if most of its pages are known to be visible to all, which a vacuum notes.
alter table terms set (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
alter table links set (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
alter table entities set (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_scale_factor = 0.02);
