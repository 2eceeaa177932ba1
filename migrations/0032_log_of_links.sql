-- The log has the targets of links before a change too (docs/changes.md): {attribute id: {"before": [ids], "after": [ids]}}.
alter table changes rename column link_targets to links;
update changes c set links = (
  select coalesce(jsonb_object_agg(t.key, case when t.value = '[]' then '{}' else jsonb_build_object('after', t.value) end), '{}')
  from jsonb_each(c.links) as t(key, value)
) where c.links is not null;
