-- The state of an entity at a past moment. link_targets holds the internal identifiers of the targets that a write linked to, by
-- attribute: {"5": ["…"]}. `after` has only their names, and a name may have passed to another entity at the same moment.
alter table changes add column link_targets jsonb;

-- The definitions at a past moment are those of today without the later changes.
create index changes_definitions on changes (organization_id, sequence) where entity_id is null;

-- A deleted target loses the links to it. They do not return with its restore.
create index changes_restores on changes (organization_id, entity_id, sequence) where operation = 'restore';
