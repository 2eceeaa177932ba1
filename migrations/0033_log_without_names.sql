-- The log has the identifiers of the targets of links alone. Their names are read with it (decision 57).

-- The targets before a change are those after the last change that wrote the attribute.
update changes c set links = (
  select jsonb_object_agg(l.key, l.value || coalesce((
    select case when p.links->l.key ? 'after' then jsonb_build_object('before', p.links->l.key->'after') end from changes p
    where p.organization_id = c.organization_id and p.entity_id = c.entity_id and p.version < c.version and p.links ? l.key
    order by p.version desc limit 1
  ), '{}')) from jsonb_each(c.links) as l(key, value)
) where c.operation = 'update' and c.links <> '{}';

update changes c set links = (
  select jsonb_object_agg(x.key, jsonb_build_object('before', x.ids)) from (
    select distinct on (l.key) l.key, l.value->'after' as ids from changes p cross join jsonb_each(p.links) as l(key, value)
    where p.organization_id = c.organization_id and p.entity_id = c.entity_id and p.version < c.version
    order by l.key, p.version desc
  ) x where x.ids is not null
) where c.operation in ('delete', 'merge') and c.links is null and c.before ? 'attribute_values';

with named as (
  select c.organization_id, c.sequence, array_agg(a.key) filter (where l.value ? 'before') as before,
    array_agg(a.key) filter (where l.value ? 'after') as after
  from changes c cross join jsonb_each(c.links) as l(key, value)
    join attributes a on a.organization_id = c.organization_id and a.id = l.key::integer
  group by c.organization_id, c.sequence
)
update changes c set
  before = case when c.before ? 'attribute_values' and n.before is not null
    then jsonb_set(c.before, '{attribute_values}', (c.before->'attribute_values') - n.before) else c.before end,
  after = case when c.after ? 'attribute_values' and n.after is not null
    then jsonb_set(c.after, '{attribute_values}', (c.after->'attribute_values') - n.after) else c.after end
from named n where c.organization_id = n.organization_id and c.sequence = n.sequence;

-- An erasure of earlier checkouts may wait for the names in the log of others, which has none now.
update erasures set removed = jsonb_set(removed #- '{pending,quotes}', '{pending,hasLinks}', to_jsonb(removed->'pending' ? 'quotes'))
where completed_at is null and removed ? 'pending';

drop table past_links;
